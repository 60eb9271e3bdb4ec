/* The share of an address has room for two principals at least. */
#include "task_room.h"

#include <string.h>

#include "state/quota.h"
#include "state/task_places.h"

static int64_t most_of_address(const struct config_limits *limits)
{
    int64_t share = quota_share(limits, limits->pending_total);
    int64_t least = 2 * limits->pending_per_principal;
    return share > least ? share : least;
}

/* A token that the server accepts may be one of many that its holder has made up. */
static bool has_room(const struct call *call, const char *id)
{
    return call->identity || !call->exchange ||
           task_places_take(call->worker->gateway->task_places, str_from(id),
                            http_peer(call->exchange),
                            most_of_address(&call->snapshot->config->limits));
}

struct store_limits task_room_take(const struct call *call, const char *id)
{
    const struct config_limits *limits = &call->snapshot->config->limits;
    return (struct store_limits){
        .pending_per_principal = limits->pending_per_principal,
        .pending_total = has_room(call, id) ? limits->pending_total : 0,
        .store_bytes = limits->store_bytes,
        .pending_bytes_per_principal = limits->pending_bytes_per_principal,
    };
}

void task_room_give_back(struct gateway *gateway, const char *id)
{
    task_places_give_back(gateway->task_places, str_from(id));
}

void task_room_note_task(struct gateway *gateway, const struct task *task)
{
    bool runs_as_decided = task->state == TASK_EXECUTING && !task->accelerated && !task->promoted;
    if (runs_as_decided || task_state_is_terminal(task->state))
        task_places_give_back(gateway->task_places, str_from(task->id));
}
