/* Work of the store that nobody asks for: deadlines, purging. */
#include <stdlib.h>

#include "blocks.h"
#include "grants.h"
#include "outbox.h"
#include "reminders.h"
#include "replica.h"
#include "task_operations.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"
#include "taskgate/core/metrics.h"
#include "taskgate/store/tally.h"

/* Per batch, so that callers never wait behind a long one; the rest follows at once. Each task asks
 * the database, which may be far away or busy: hence the time. */
#define EXPIRE_LIMIT 64
#define EXPIRE_MOST_MS 20
#define REMIND_LIMIT 64
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
    done = done && grants_sweep(batch) && audit_purge(batch) && audit_anchor(batch) &&
           measure_waits(batch, is_backlog);
    if (is_backlog)
        batch->sweep_again_ms = batch->now_ms;
    else
        done = done && rows_number(batch->database, STATEMENT_TASK_NEXT_DEADLINE,
                                   VALUES(NUMBER(batch->now_ms)), &batch->sweep_again_ms);
    int64_t grant_ms = INT64_MAX, block_ms = INT64_MAX;
    done = done && grants_next_end(batch, &grant_ms) && blocks_sweep(batch, &block_ms);
    if (grant_ms < batch->sweep_again_ms)
        batch->sweep_again_ms = grant_ms;
    if (block_ms < batch->sweep_again_ms)
        batch->sweep_again_ms = block_ms;
    done = done && reminders_send(batch, REMIND_LIMIT);
    int64_t audit_ms = audit_sweep_again_ms(batch);
    if (audit_ms < batch->sweep_again_ms)
        batch->sweep_again_ms = audit_ms;
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
