/* The outbox as the notifier sees it: its targets, the due deliveries, and the outcome of an
 * attempt. */
#include <stdlib.h>

#include "audit.h"
#include "outbox.h"
#include "replica.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"

static bool run_configure(struct batch *batch, struct operation *operation)
{
    batch->sweep_again_ms = batch->now_ms; /* it removes deliveries to others */
    return batch->backend->outbox->set_targets(batch->database, operation->targets,
                                               operation->target_count);
}

static bool run_due(struct batch *batch, struct operation *operation)
{
    const struct outbox_rows *outbox = batch->backend->outbox;
    struct store_reply *reply = &operation->reply;
    struct store_delivery *deliveries = memory_alloc_array(operation->limit, sizeof *deliveries);
    reply->deliveries = deliveries;
    reply->next_due_ms = batch->now_ms + REPLICA_HEARTBEAT_MS;
    if (!replica_holds(batch, LEASE_OUTBOX))
        return true;
    return outbox->find_due(batch->database, operation->id, batch->now_ms, operation->limit,
                            deliveries, &reply->delivery_count) &&
           outbox->next_due(batch->database, operation->id, batch->now_ms, &reply->next_due_ms);
}

/* A delivery is gone already if its target is no longer configured. */
static bool run_delivered(struct batch *batch, struct operation *operation)
{
    const struct outbox_rows *outbox = batch->backend->outbox;
    if (operation->reason &&
        !outbox->set_reference(batch->database, operation->sequence, operation->reason))
        return false;
    return outbox->remove(batch->database, operation->sequence);
}

static bool run_postpone(struct batch *batch, struct operation *operation)
{
    return batch->backend->outbox->postpone(batch->database, operation->sequence,
                                            operation->time_ms);
}

/* An anchor that did not arrive is about no task. */
static bool note_given_up(struct batch *batch, const struct store_delivery *delivery,
                          const char *reason)
{
    struct task *task = delivery->task;
    task->updated_ms = batch->now_ms; /* the entry's time */
    if (delivery->anchor)
        *task->id = '\0';
    const char *state = delivery->anchor ? "" : task_state_name(task->state);
    return audit_append(batch, task, "notification_given_up", state, AUDIT_GATEWAY, reason);
}

static bool give_up(struct batch *batch, int64_t sequence, const char *reason)
{
    const struct outbox_rows *outbox = batch->backend->outbox;
    struct store_delivery delivery = {.task = NULL};
    enum row_result result = outbox->get(batch->database, sequence, &delivery);
    if (result != ROW_FOUND)
        return result == ROW_ABSENT;
    bool done =
        note_given_up(batch, &delivery, reason) && outbox->remove(batch->database, sequence);
    free(delivery.anchor);
    task_unref(delivery.task);
    free(delivery.reference);
    return done;
}

static bool run_give_up(struct batch *batch, struct operation *operation)
{
    return give_up(batch, operation->sequence, operation->reason);
}

bool outbox_give_up_overdue(struct batch *batch, int64_t age_ms, size_t limit, bool *has_more)
{
    const struct outbox_rows *outbox = batch->backend->outbox;
    size_t count = 0, given_up = 0;
    int64_t *sequences = memory_alloc_array(limit, sizeof *sequences);
    bool done =
        outbox->find_overdue(batch->database, batch->now_ms - age_ms, limit, sequences, &count);
    while (done && given_up < count)
        done = give_up(batch, sequences[given_up++], "its endpoint did not take it in time");
    free(sequences);
    *has_more = *has_more || count == limit;
    if (done && count > 0)
        metrics_add(METRIC_NOTIFICATIONS, (double)count, METRIC_LABELS(STR("given_up")));
    return done;
}

const struct operation_kind operation_outbox_configure = {"outbox configure", true, run_configure};
const struct operation_kind operation_outbox_due = {"outbox due", false, run_due};
const struct operation_kind operation_outbox_delivered = {"outbox delivered", true, run_delivered};
const struct operation_kind operation_outbox_postpone = {"outbox postpone", true, run_postpone};
const struct operation_kind operation_outbox_give_up = {"outbox give up", true, run_give_up};
