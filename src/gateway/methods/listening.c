/* A listen stream as a part of its call, and its place among those that are open. */
#include <stdlib.h>
#include <string.h>

#include "listen_internal.h"
#include "run/quota.h"

/* Clients without a token cannot be told apart. */
static struct str holder_of(const struct call *call)
{
    return str_from(call->owner);
}

bool listening_takes_place(const struct call *call)
{
    const struct config_limits *limits = &call->snapshot->config->limits;
    bool is_anonymous = strcmp(call->owner, OWNER_ANONYMOUS) == 0;
    return quota_take(call->worker->gateway->listens, holder_of(call),
                      is_anonymous ? limits->listens : limits->listens_per_principal,
                      limits->listens);
}

static void drop(struct call *call, void *object)
{
    struct listening *listening = listening_from(object);
    quota_give_back(call->worker->gateway->listens, holder_of(call));
    list_remove(&listening->node);
    loop_timer_stop(&listening->end);
    loop_timer_stop(&listening->life);
    for (size_t i = 0; i < listening->task_count; i++) {
        buffer_finish(&listening->tasks[i].asked);
        task_unref(listening->tasks[i].task);
    }
    free(listening->tasks);
    MAGIC_CLEAR(listening);
    free(listening);
}

static const struct call_part_kind listening_kind = CALL_PART_KIND(struct listening, drop);

void listening_add(struct call *call, struct listening *listening)
{
    list_append(&call->worker->listens, &listening->node);
    call_part_add(call, &listening->part, &listening_kind);
}

struct listening *listening_find(const struct call *call)
{
    return call_part_find(call, &listening_kind);
}
