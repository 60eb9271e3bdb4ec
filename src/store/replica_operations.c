/* The life of a replica: joining, heartbeats, fencing those that are silent, goodbye. */
#include <stdlib.h>
#include <string.h>

#include "replica.h"
#include "replica_rows.h"
#include "task_operations.h"
#include "taskgate/core/log.h"

#define PEER_ALIVE_MS (INT64_C(2) * REPLICA_HEARTBEAT_MS)
/* So long others hear of a replica that is gone. */
#define GONE_RETENTION_MS 3600000

static const char *const lease_names[LEASE_COUNT] = {
#define LEASE_ROW(symbol, name) [LEASE_##symbol] = (name),
    LEASE_TABLE(LEASE_ROW)
#undef LEASE_ROW
};

/* ---- executions that nobody ends any more ---- */

/* Upstream may have done the work: the call is never run again (behaviour 1.4). */
bool replica_end_unknown(struct batch *batch, const char *id)
{
    struct task *task = NULL;
    struct error error;
    enum row_result result = task_rows_get(batch->database, str_from(id), &task);
    struct task_change change = {
        .to = TASK_FAILED,
        .failure = TASK_FAILURE_OUTCOME_UNKNOWN,
        .status_message = REPLICA_LOST_EXECUTING,
    };
    if (result == ROW_FOUND && task->promoted)
        change.status_message = REPLICA_LOST_PROMOTED;
    if (result == ROW_FOUND)
        result = task_operations_move(batch, task, &change, AUDIT_GATEWAY, &error);
    task_unref(task);
    return result != ROW_FAILED;
}

static bool end_lost(struct batch *batch)
{
    struct id_list list = {.count = 0};
    bool done = rows_ids(batch->database, STATEMENT_CLAIM_LOST, NO_VALUES, &list);
    for (size_t i = 0; done && i < list.count; i++)
        done = replica_end_unknown(batch, list.ids[i]);
    if (done && list.count > 0)
        log_warn("Calls were running when the gateway stopped; their outcome is unknown",
                 LOG_NUMBER("tasks", (int64_t)list.count));
    free(list.ids);
    return done;
}

/* After a failover an approved task may stand there that has run before: nobody runs it again. */
static bool end_forgotten(struct batch *batch, const char *id)
{
    struct task *task = NULL;
    enum row_result result = task_rows_get(batch->database, str_from(id), &task);
    bool may_run =
        result == ROW_FOUND && (task->state == TASK_PENDING || task->state == TASK_APPROVED);
    task_unref(task);
    return may_run ? replica_end_unknown(batch, id) : result != ROW_FAILED;
}

/* Ends what the process has claimed and the database does not know of any more. */
static bool replica_end_forgotten_claims(struct batch *batch)
{
    const struct claims *claims = &batch->replica->claims;
    size_t count = claims->count < CLAIMS_KEPT ? claims->count : CLAIMS_KEPT;
    for (size_t i = 0; i < count; i++) {
        if (!end_forgotten(batch, claims->ids[i]))
            return false;
    }
    return true;
}

/* ---- another process with this one's id ---- */

/* Its epoch is 0 where nobody has the id. */
static bool find_own(struct batch *batch, struct rival *found)
{
    struct record_list list;
    bool done = replica_rows_list(batch->database, &list);
    const struct replica_row *row = replica_rows_find(&list, batch->replica->id);
    *found = row ? (struct rival){.epoch = row->epoch, .alive_ms = row->alive_ms}
                 : (struct rival){.epoch = 0};
    record_list_finish(&list);
    return done;
}

static bool refuse_to_join(struct batch *batch, const char *format)
{
    return error_set(&batch->refusal, format, batch->replica->id);
}

/* Whether nobody else has the id. Somebody who has told of himself lately is watched for a
 * heartbeat: if he tells again, he was here first. A process that was killed does not. */
static bool is_alone(struct batch *batch)
{
    struct replica *self = batch->replica;
    struct rival found, *rival = &self->rival;
    if (!find_own(batch, &found))
        return false;
    if (found.alive_ms == 0 || found.epoch == self->last_epoch ||
        batch->now_ms - found.alive_ms >= REPLICA_SILENCE_MS)
        return true;
    if (rival->epoch != found.epoch) {
        *rival = found;
        rival->since_ms = batch->now_ms;
        log_info("A replica of this name was there a moment ago; this one waits to see whether it "
                 "still is",
                 LOG_TEXT("replica", self->id));
    }
    self->yields = found.alive_ms != rival->alive_ms;
    if (self->yields)
        return refuse_to_join(batch, "another living replica has the name %s; give each a name of "
                                     "its own in replica.id");
    return batch->now_ms - rival->since_ms >= REPLICA_RIVAL_MS ||
           refuse_to_join(batch, "a replica of the name %s may still live");
}

/* ---- life ---- */

/* A new epoch. Claims of an earlier epoch are lost. Of a database that is this process's alone
 * nobody else is alive. A replica that comes back goes on reading the feed where it has stopped. */
bool replica_join(struct batch *batch)
{
    struct replica *self = batch->replica;
    bool is_shared = batch->backend->is_shared;
    if (self->yields)
        return refuse_to_join(batch, "another living replica has the name %s");
    if (is_shared && !is_alone(batch))
        return false;
    self->watching_since_ms = batch->now_ms;
    int64_t epoch; /* without one, it must have none */
    if (!rows_number(batch->database, STATEMENT_REPLICA_JOIN,
                     VALUES(TEXT(self->id), NUMBER(batch->now_ms)), &epoch))
        return false;
    batch->has_joined = true;
    self->epoch = self->last_epoch = epoch;
    self->rival = (struct rival){.epoch = 0};
    if (batch->seen.sequence == 0) {
        batch->seen.at_ms = batch->now_ms;
        if (!replica_rows_feed_end(batch->database, &batch->seen.sequence))
            return false;
    }
    return replica_rows_is_held(batch->database, &self->is_held) &&
           (is_shared || replica_rows_fence(batch->database, self->id, INT64_MAX, INT64_MAX)) &&
           end_lost(batch);
}

/* A batch joins if the replica has no epoch. */
static bool run_join(struct batch *batch, struct operation *operation)
{
    (void)batch, (void)operation;
    return true;
}

static bool take_leases(struct batch *batch)
{
    struct replica *self = batch->replica;
    for (size_t i = 0; i < LEASE_COUNT; i++) {
        int64_t until_ms = batch->now_ms + REPLICA_LEASE_MS;
        enum row_result result =
            rows_change(batch->database, STATEMENT_LEASE_TAKE,
                        VALUES(TEXT(lease_names[i]), TEXT(self->id), NUMBER(self->epoch),
                               NUMBER(until_ms), NUMBER(batch->now_ms)));
        if (result == ROW_FAILED)
            return false;
        self->lease_until_ms[i] = result == ROW_FOUND ? until_ms : 0;
    }
    return true;
}

static bool beat(struct batch *batch)
{
    struct replica *self = batch->replica;
    enum row_result alive =
        replica_rows_beat(batch->database, self->id, self->epoch, batch->now_ms);
    if (alive != ROW_ABSENT)
        return alive == ROW_FOUND;
    log_warn("This replica was taken for dead; it goes on in a new epoch",
             LOG_TEXT("replica", self->id));
    self->epoch = 0;
    return replica_join(batch);
}

/* Whether nobody may decide, which one of them has said, and somebody takes back. */
static bool look_for_hold(struct batch *batch)
{
    struct replica *self = batch->replica;
    bool was_held = self->is_held;
    if (self->has_lost && (!rows_write(batch->database, STATEMENT_HOLD_PUT,
                                       VALUES(TEXT(self->id), NUMBER(batch->now_ms))) ||
                           !replica_end_forgotten_claims(batch)))
        return false;
    if (!replica_rows_is_held(batch->database, &self->is_held))
        return false;
    self->has_lost = false;
    if (was_held && !self->is_held)
        log_info("The database as it is was accepted; decisions and executions go on",
                 LOG_TEXT("replica", self->id));
    else if (!was_held && self->is_held)
        log_error("Another replica has seen that the database lacks commits; nothing is decided "
                  "or executed until somebody runs taskgate store accept-timeline",
                  LOG_TEXT("replica", self->id));
    return true;
}

/* ---- the others ---- */

static enum store_peer_state state_of(const struct replica_row *row, int64_t now_ms)
{
    if (row->alive_ms == 0)
        return STORE_PEER_GONE;
    return llabs(now_ms - row->alive_ms) < PEER_ALIVE_MS ? STORE_PEER_ALIVE : STORE_PEER_SILENT;
}

static bool look_at_peers(struct batch *batch)
{
    const struct replica *self = batch->replica;
    struct record_list list;
    batch->has_peers = true;
    if (!rows_write(batch->database, STATEMENT_REPLICA_ANNOUNCE,
                    VALUES(TEXT(self->id), TEXT(batch->address))))
        return false;
    bool done = replica_rows_list(batch->database, &list);
    const struct replica_row *rows = list.items;
    for (size_t i = 0; i < list.count; i++) {
        if (strcmp(rows[i].id, self->id) != 0)
            peers_add(&batch->peers, &rows[i], state_of(&rows[i], batch->now_ms));
    }
    record_list_finish(&list);
    return done;
}

/* The times of the others are of a clock that was ahead: each gets its time to beat anew. */
static void watch(struct batch *batch)
{
    struct replica *self = batch->replica;
    bool is_back = batch->now_ms < self->beaten_ms;
    if (is_back)
        log_warn("The database's clock was set back; times that it gave before count for no more "
                 "than their own length",
                 LOG_NUMBER("by_ms", self->beaten_ms - batch->now_ms));
    if (is_back || self->watching_since_ms == 0)
        self->watching_since_ms = batch->now_ms;
    self->beaten_ms = batch->now_ms;
}

static bool fence_silent(struct batch *batch)
{
    const struct replica *self = batch->replica;
    if (batch->now_ms - self->watching_since_ms < REPLICA_SILENCE_MS)
        return true;
    return replica_rows_fence(batch->database, self->id, batch->now_ms - REPLICA_SILENCE_MS,
                              batch->now_ms + REPLICA_SILENCE_MS);
}

static bool run_heartbeat(struct batch *batch, struct operation *operation)
{
    (void)operation;
    watch(batch);
    return beat(batch) && fence_silent(batch) && end_lost(batch) && take_leases(batch) &&
           look_for_hold(batch) && look_at_peers(batch) &&
           rows_write(batch->database, STATEMENT_REPLICA_FORGET,
                      VALUES(NUMBER(batch->now_ms - GONE_RETENTION_MS)));
}

/* Nothing but what begins every transaction: to hear of the others. */
static bool run_catch_up(struct batch *batch, struct operation *operation)
{
    (void)batch, (void)operation;
    return true;
}

static bool run_replica_leave(struct batch *batch, struct operation *operation)
{
    (void)operation;
    const struct replica *self = batch->replica;
    return replica_rows_beat(batch->database, self->id, self->epoch, 0) != ROW_FAILED;
}

const struct operation_kind operation_join = {"join", true, run_join, NULL};
const struct operation_kind operation_heartbeat = {"heartbeat", true, run_heartbeat, NULL};
const struct operation_kind operation_catch_up = {"catch up", false, run_catch_up, NULL};
const struct operation_kind operation_leave = {"leave", true, run_replica_leave, NULL};
