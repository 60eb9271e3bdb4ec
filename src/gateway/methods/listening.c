/* A listen stream as a part of its call, and its place among those that are open. */
#include <stdio.h>
#include <stdlib.h>

#include "listen_internal.h"
#include "state/quota.h"

static struct str holder_of(const struct call *call)
{
    return str_from(call->owner);
}

bool listening_takes_place(const struct call *call, char address[LISTENING_ADDRESS_BYTES])
{
    const struct config_limits *limits = &call->snapshot->config->limits;
    struct gateway *gateway = call->worker->gateway;
    bool is_anybody = owner_is_anybody(call->owner);
    *address = '\0';
    /* Clients without a token cannot be told apart, and tokens can be made up. */
    if (call_is_unknown(call)) {
        snprintf(address, LISTENING_ADDRESS_BYTES, "%.*s", STR_ARGS(http_peer(call->exchange)));
        if (!quota_take(gateway->unknown_listens, str_from(address),
                        quota_share(limits, limits->listens), INT64_MAX))
            return false;
    }
    bool is_free =
        quota_take(gateway->listens, holder_of(call),
                   is_anybody ? limits->listens : limits->listens_per_principal, limits->listens);
    if (*address && !is_free)
        quota_give_back(gateway->unknown_listens, str_from(address));
    return is_free;
}

static void drop(struct call *call, void *object)
{
    struct listening *listening = listening_from(object);
    listener_stop(listening->listener);
    quota_give_back(call->worker->gateway->listens, holder_of(call));
    if (*listening->address)
        quota_give_back(call->worker->gateway->unknown_listens, str_from(listening->address));
    list_remove(&listening->node);
    atomic_fetch_sub(&call->worker->gateway->listening, 1);
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
    atomic_fetch_add(&call->worker->gateway->listening, 1);
    call_part_add(call, &listening->part, &listening_kind);
}

struct listening *listening_find(const struct call *call)
{
    return call_part_find(call, &listening_kind);
}
