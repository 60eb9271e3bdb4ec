/* The life of a replica: joining, heartbeats, fencing those that are silent, goodbye. */
#include <stdlib.h>

#include "replica.h"
#include "task_operations.h"
#include "taskgate/core/log.h"

#define SILENCE_MS 20000 /* contract "Replicas" */
#define LEASE_MS 20000
/* A replica that has not read for so long is fenced long since, and begins anew. */
#define FEED_RETENTION_MS 3600000

static const char *const lease_names[LEASE_COUNT] = {
#define LEASE_ROW(symbol, name) [LEASE_##symbol] = (name),
    LEASE_TABLE(LEASE_ROW)
#undef LEASE_ROW
};

/* ---- executions that nobody ends any more ---- */

/* Upstream may have done the work: the call is never run again (design invariant 4). */
static bool end_unknown(struct batch *batch, const char *id)
{
    struct task *task = NULL;
    struct error error;
    enum row_result result = batch->backend->tasks->get(batch->database, str_from(id), &task);
    struct task_change change = {
        .to = TASK_FAILED,
        .failure = TASK_FAILURE_OUTCOME_UNKNOWN,
        .status_message = "The gateway stopped while the call was running: outcome unknown. It may "
                          "have taken effect; it is not run again by itself.",
    };
    if (result == ROW_FOUND && task->promoted)
        change.status_message = "upstream connection lost";
    if (result == ROW_FOUND)
        result = task_operations_move(batch, task, &change, AUDIT_GATEWAY, &error);
    task_unref(task);
    return result != ROW_FAILED;
}

static bool end_lost(struct batch *batch)
{
    struct id_list list = {.count = 0};
    bool done = batch->backend->replicas->find_lost(batch->database, &list);
    for (size_t i = 0; done && i < list.count; i++)
        done = end_unknown(batch, list.ids[i]);
    if (done && list.count > 0)
        log_warn("Calls were running when the gateway stopped; their outcome is unknown",
                 LOG_NUMBER("tasks", (int64_t)list.count));
    free(list.ids);
    return done;
}

/* ---- life ---- */

/* A new epoch. What an earlier one has claimed is lost. */
static bool join(struct batch *batch)
{
    struct replica *self = batch->replica;
    const struct replica_rows *rows = batch->backend->replicas;
    self->watching_since_ms = batch->now_ms;
    return rows->join(batch->database, self->id, batch->now_ms, &self->epoch) &&
           rows->feed_end(batch->database, &self->feed_seen);
}

/* Of a database that is this process's alone nobody else is alive. */
static bool run_join(struct batch *batch, struct operation *operation)
{
    (void)operation;
    const struct replica *self = batch->replica;
    return join(batch) &&
           (batch->backend->is_shared ||
            batch->backend->replicas->fence(batch->database, self->id, INT64_MAX)) &&
           end_lost(batch);
}

static bool take_leases(struct batch *batch)
{
    struct replica *self = batch->replica;
    for (size_t i = 0; i < LEASE_COUNT; i++) {
        const struct lease_wish wish = {lease_names[i], self->id, self->epoch,
                                        batch->now_ms + LEASE_MS};
        enum row_result result =
            batch->backend->replicas->lease(batch->database, &wish, batch->now_ms);
        if (result == ROW_FAILED)
            return false;
        self->lease_until_ms[i] = result == ROW_FOUND ? wish.until_ms : 0;
    }
    return true;
}

static bool beat(struct batch *batch)
{
    struct replica *self = batch->replica;
    enum row_result alive =
        batch->backend->replicas->beat(batch->database, self->id, self->epoch, batch->now_ms);
    if (alive != ROW_ABSENT)
        return alive == ROW_FOUND;
    log_warn("This replica was taken for dead; it goes on in a new epoch",
             LOG_TEXT("replica", self->id));
    return join(batch);
}

static bool run_heartbeat(struct batch *batch, struct operation *operation)
{
    (void)operation;
    struct replica *self = batch->replica;
    if (self->watching_since_ms == 0)
        self->watching_since_ms = batch->now_ms;
    bool may_judge = batch->now_ms - self->watching_since_ms >= SILENCE_MS;
    return beat(batch) &&
           (!may_judge || batch->backend->replicas->fence(batch->database, self->id,
                                                          batch->now_ms - SILENCE_MS)) &&
           end_lost(batch) && take_leases(batch) &&
           batch->backend->replicas->feed_purge(batch->database, batch->now_ms - FEED_RETENTION_MS);
}

/* Nothing but what begins every transaction: to hear of the others. */
static bool run_catch_up(struct batch *batch, struct operation *operation)
{
    (void)batch, (void)operation;
    return true;
}

static bool run_leave(struct batch *batch, struct operation *operation)
{
    (void)operation;
    const struct replica *self = batch->replica;
    return batch->backend->replicas->beat(batch->database, self->id, self->epoch, 0) != ROW_FAILED;
}

const struct operation_kind operation_join = {"join", true, run_join};
const struct operation_kind operation_heartbeat = {"heartbeat", true, run_heartbeat};
const struct operation_kind operation_catch_up = {"catch up", false, run_catch_up};
const struct operation_kind operation_leave = {"leave", true, run_leave};
