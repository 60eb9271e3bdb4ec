/* Work of the store that nobody asks for: deadlines, purging, anchors. */
#include <stdlib.h>
#include <string.h>

#include "audit_rows.h"
#include "effects.h"
#include "replica.h"
#include "task_operations.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"
#include "taskgate/core/metrics.h"
#include "taskgate/core/owned.h"
#include "taskgate/store/tally.h"

/* Per batch, so that callers never wait behind a long one; the rest follows at once. Each task asks
 * the database, which may be far away or busy: hence the time. */
#define EXPIRE_LIMIT 64
#define EXPIRE_MOST_MS 20
#define REMIND_LIMIT 64
#define TRAIL_LIMIT 1024
#define OVERDUE_LIMIT 64
/* How long sessions that nobody uses are remembered. */
#define SESSION_RETENTION_MS INT64_C(2592000000)
/* How long an ended grant or block can be listed; the audit trail has it for longer. */
#define GRANT_RETENTION_MS INT64_C(604800000)
/* The days of taskgate/store/tally.h, of which the last one is not over. */
#define TALLY_RETENTION_MS (STORE_TALLY_DAYS * INT64_C(86400000))
/* An attempt that is under way in the last moment may have its end. */
#define NOTICE_RETENTION_MS (STORE_NOTICE_LIFETIME_MS + 60000)

/* All that goes by its age, and how many rows of it in one sweep. */
static const struct {
    enum statement which;
    unsigned limit;
    int64_t after_ms;
    bool is_of_shared; /* databases only */
    bool is_of_target; /* all of one target: there may be others of another */
} purges[] = {
    {.which = STATEMENT_TASK_PURGE, .limit = 64},
    {.which = STATEMENT_SESSION_PURGE, .limit = 256, .after_ms = SESSION_RETENTION_MS},
    {.which = STATEMENT_PAIR_PURGE, .limit = 256, .after_ms = SESSION_RETENTION_MS},
    {.which = STATEMENT_HOME_PURGE, 256, SESSION_RETENTION_MS, .is_of_shared = true},
    {.which = STATEMENT_SIGN_IN_PURGE, .limit = 256},
    {.which = STATEMENT_ATTEMPT_PURGE, .limit = 256},
    {.which = STATEMENT_GRANT_PURGE, .limit = 256, .after_ms = GRANT_RETENTION_MS},
    {.which = STATEMENT_BLOCK_PURGE, .limit = 256, .after_ms = GRANT_RETENTION_MS},
    {.which = STATEMENT_TALLY_PURGE, .limit = 256, .after_ms = TALLY_RETENTION_MS},
    {.which = STATEMENT_AUDIT_FORGET, .limit = 256},
    {.which = STATEMENT_FEED_PURGE, 1024, REPLICA_FEED_RETENTION_MS, .is_of_shared = true},
    {.which = STATEMENT_STRAY_DELIVERIES_PURGE, .limit = 256, .is_of_target = true},
    {.which = STATEMENT_STRAY_MESSAGES_PURGE, .limit = 256, .is_of_target = true},
};

static bool sweep_expire(struct batch *batch, const char *id)
{
    struct task *task = NULL;
    enum row_result result = task_operations_load(batch, str_from(id), &task);
    task_unref(task);
    return result != ROW_FAILED;
}

bool task_operations_expire(struct batch *batch, bool *has_more)
{
    struct id_list list = {.count = 0};
    int64_t begun_ms = clock_monotonic_ms();
    bool done = rows_ids(batch->database, STATEMENT_TASK_DUE,
                         VALUES(NUMBER(batch->now_ms), NUMBER(EXPIRE_LIMIT)), &list);
    size_t expired = 0;
    while (done && expired < list.count && clock_monotonic_ms() - begun_ms <= EXPIRE_MOST_MS)
        done = sweep_expire(batch, list.ids[expired++]);
    *has_more = list.count == EXPIRE_LIMIT || expired < list.count;
    free(list.ids);
    return done;
}

/* Gauges, for an alarm: the number of waiting tasks says nothing of a busy queue. */
struct measuring {
    int64_t now_ms;
};

static bool sweep_measure(void *context, const struct value *row)
{
    const struct measuring *measuring = context;
    const struct str workflow = row[0].text;
    int64_t waited_ms = measuring->now_ms - row[1].number;
    double used = (double)row[2].number / 1e6;
    used = used < 0 ? 0 : used > 1 ? 1 : used;
    metrics_set(METRIC_TASKS_OLDEST_PENDING, (double)waited_ms / 1000, METRIC_LABELS(workflow));
    metrics_set(METRIC_TASKS_TIME_USED, used, METRIC_LABELS(workflow));
    return true;
}

/* It looks at every task that waits. So where one sweep follows another, as long as a backlog
 * lasts, not each of them measures. */
#define MEASURE_INTERVAL_MS 5000

static bool measure_waits(struct batch *batch, bool is_backlog)
{
    int64_t *measured_ms = &batch->replica->waits_measured_ms;
    if (is_backlog && batch->now_ms - *measured_ms < MEASURE_INTERVAL_MS)
        return true;
    *measured_ms = batch->now_ms;
    metrics_reset(METRIC_TASKS_OLDEST_PENDING);
    metrics_reset(METRIC_TASKS_TIME_USED);
    return rows_read(batch->database, STATEMENT_TASK_WAITS, VALUES(NUMBER(batch->now_ms)),
                     sweep_measure, &(struct measuring){batch->now_ms});
}

/* Told once they are all gone. */
static void note_strays(struct batch *batch, int64_t purged)
{
    int64_t *dropped = &batch->replica->notices_dropped;
    *dropped += purged;
    if (purged > 0 || *dropped == 0)
        return;
    metrics_add(METRIC_NOTIFICATIONS, (double)*dropped, METRIC_LABELS(STR("dropped")));
    log_warn("Notifications for endpoints that are no longer configured were dropped",
             LOG_NUMBER("count", *dropped));
    *dropped = 0;
}

/* `*has_more`: more may be too old. */
static bool purge(struct batch *batch, bool *has_more)
{
    const struct store_backend *backend = batch->backend;
    bool done = true;
    for (size_t i = 0; done && i < sizeof purges / sizeof *purges; i++) {
        int64_t purged;
        if (purges[i].is_of_shared && !backend->is_shared)
            continue;
        done = rows_purge(
            batch->database, purges[i].which,
            VALUES(NUMBER(batch->now_ms - purges[i].after_ms), NUMBER(purges[i].limit)), &purged);
        *has_more = *has_more || purged >= (purges[i].is_of_target ? 1 : purges[i].limit);
        if (done && purges[i].which == STATEMENT_STRAY_DELIVERIES_PURGE)
            note_strays(batch, purged);
    }
    return done && rows_write(batch->database, STATEMENT_LIMITED_PURGE, NO_VALUES);
}

/* ---- the age of the audit trail, and the anchors in its place ---- */

/* For the operators' endpoints, with the members that the log has. */
static bool note_anchor(struct batch *batch, const struct store_anchor *anchor)
{
    OWNED_BUFFER(text);
    store_anchor_write(&text, anchor);
    OWNED char *json = buffer_take(&text, NULL);
    return outbox_note_anchor(batch, json);
}

/* Stores an anchor and leaves it for the log. `is_start`: the rows up to it go. */
static bool put_anchor(struct batch *batch, const struct store_chain *place, bool is_start)
{
    struct store_anchor anchor = {.place = *place, .at_ms = batch->now_ms};
    store_anchor_sign(&anchor, batch->audit->key);
    if (!rows_write(batch->database, STATEMENT_ANCHOR_PUT,
                    VALUES(NUMBER(place->sequence), TEXT(place->hash), NUMBER(anchor.at_ms),
                           TEXT(anchor.signature), NUMBER(is_start))) ||
        !note_anchor(batch, &anchor))
        return false;
    size_t count = batch->anchor_count;
    if (count < sizeof batch->anchors / sizeof *batch->anchors) {
        batch->anchors[count] = anchor;
        batch->anchor_count++;
    }
    return true;
}

/* Makes an anchor when one is due. */
static bool make_anchor(struct batch *batch)
{
    struct store_anchor last = {.at_ms = 0};
    struct store_chain end;
    if (batch->audit->anchor_every_ms == 0)
        return true;
    if (audit_rows_anchor_last(batch->database, &last) == ROW_FAILED)
        return false;
    int64_t since_ms = batch->now_ms - last.at_ms;
    bool was_ahead = since_ms < -batch->audit->anchor_every_ms;
    if (was_ahead)
        log_warn("The last audit anchor was made with a clock that was ahead; another follows",
                 LOG_NUMBER("sequence", last.place.sequence), LOG_NUMBER("by_ms", -since_ms));
    if (since_ms < batch->audit->anchor_every_ms && !was_ahead)
        return true;
    if (!audit_rows_end(batch->database, &end))
        return false;
    return end.sequence <= last.place.sequence || put_anchor(batch, &end, false);
}

struct old {
    int64_t before_ms, ahead_ms;
    struct store_chain last; /* of the oldest rows that are all too old; sequence 0: none is */
    struct store_chain seen;
    size_t count, ahead; /* rows that were looked at; of these those with a clock that was ahead */
};

/* A row that lies further ahead than rows are kept was written with a clock that was ahead. It is
 * no younger than the next one with a time of its own. */
static bool look_at_age(void *context, const struct audit_row *row)
{
    struct old *old = context;
    struct str hash = row->texts[AUDIT_hash];
    bool is_ahead = row->at_ms > old->ahead_ms;
    if (row->at_ms >= old->before_ms && !is_ahead)
        return false;
    old->count++;
    old->ahead += is_ahead;
    old->seen.sequence = row->sequence;
    if (hash.length == sizeof old->seen.hash - 1)
        memcpy(old->seen.hash, hash.bytes, hash.length);
    if (!is_ahead || old->count == TRAIL_LIMIT)
        old->last = old->seen;
    return true;
}

static bool remove_until(struct database *database, int64_t sequence)
{
    int64_t count;
    return rows_purge(database, STATEMENT_AUDIT_REMOVE, VALUES(NUMBER(sequence)), &count) &&
           rows_purge(database, STATEMENT_AUDIT_REMOVE_KEPT, VALUES(NUMBER(sequence)), &count) &&
           rows_write(database, STATEMENT_ANCHOR_REMOVE, VALUES(NUMBER(sequence)));
}

/* Removes rows that the settings call too old. They leave an anchor. */
static bool purge_trail(struct batch *batch)
{
    struct old old = {.before_ms = batch->now_ms - batch->audit->keep_ms,
                      .ahead_ms = batch->now_ms + batch->audit->keep_ms};
    store_chain_init(&old.last);
    store_chain_init(&old.seen);
    if (batch->audit->keep_ms == 0)
        return true;
    if (!audit_rows_page(batch->database, 0, TRAIL_LIMIT, look_at_age, &old))
        return false;
    if (old.last.sequence > 0 && old.ahead > 0)
        log_warn("Audit entries that were written with a clock that was ahead go with those around "
                 "them",
                 LOG_NUMBER("entries", (int64_t)old.ahead));
    return old.last.sequence == 0 ||
           (put_anchor(batch, &old.last, true) && remove_until(batch->database, old.last.sequence));
}

/* How soon the settings want the next sweep. */
static void plan_trail(struct batch *batch)
{
    const int64_t every_ms[] = {batch->audit->keep_arguments_ms, batch->audit->keep_ms,
                                batch->audit->anchor_every_ms};
    for (size_t i = 0; i < sizeof every_ms / sizeof *every_ms; i++) {
        if (every_ms[i] > 0)
            batch_sweep_no_later_than(batch, batch->now_ms + every_ms[i]);
    }
}

static bool run_sweep(struct batch *batch, struct operation *operation)
{
    (void)operation;
    const struct store_backend *backend = batch->backend;
    size_t events_before = batch->event_count;
    int64_t used_bytes = backend->look(batch->database, LOOK_BYTES);
    if (used_bytes >= 0)
        metrics_set(METRIC_STORE_BYTES, (double)used_bytes, NULL);
    if (!replica_holds(batch, LEASE_SWEEP))
        return measure_waits(batch, false);
    bool is_due = false, is_old = false;
    bool done = task_operations_expire(batch, &is_due) && purge(batch, &is_old) &&
                outbox_give_up_overdue(batch, NOTICE_RETENTION_MS, OVERDUE_LIMIT, &is_old);
    bool has_expired = batch->event_count > events_before;
    bool is_backlog = (is_due && has_expired) || is_old;
    done = done && grants_sweep(batch) && purge_trail(batch) && make_anchor(batch) &&
           measure_waits(batch, is_backlog);
    if (is_backlog)
        batch->sweep_again_ms = batch->now_ms;
    else
        done = done && rows_number(batch->database, STATEMENT_TASK_NEXT_DEADLINE,
                                   VALUES(NUMBER(batch->now_ms)), &batch->sweep_again_ms);
    int64_t grant_ms = INT64_MAX, block_ms = INT64_MAX;
    done = done && grants_next_end(batch, &grant_ms) && blocks_sweep(batch, &block_ms);
    batch_sweep_no_later_than(batch, grant_ms);
    batch_sweep_no_later_than(batch, block_ms);
    done = done && reminders_send(batch, REMIND_LIMIT);
    plan_trail(batch);
    return done;
}

/* A write for its own sake: tells whether a database that has failed works again. */
static bool run_probe(struct batch *batch, struct operation *operation)
{
    (void)operation;
    return rows_write(batch->database, STATEMENT_PROBE, VALUES(NUMBER(batch->now_ms)));
}

const struct operation_kind operation_sweep = {"sweep", true, run_sweep, NULL};
const struct operation_kind operation_probe = {"probe", true, run_probe, NULL};
