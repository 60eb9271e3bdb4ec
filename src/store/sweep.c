/* Work of the store that nobody asks for: deadlines, purging, recovery after a crash. */
#include <stdlib.h>

#include "grants.h"
#include "reminders.h"
#include "task_operations.h"
#include "taskgate/core/log.h"
#include "taskgate/core/metrics.h"

/* Per batch, so that callers never wait behind a long one; the rest follows at once. */
#define EXPIRE_LIMIT 64
#define PURGE_LIMIT 64
#define REMIND_LIMIT 64
/* How long sessions that nobody uses are remembered. */
#define SESSION_RETENTION_MS INT64_C(2592000000)

static bool expire(struct batch *batch, const char *id)
{
    struct task *task = NULL;
    enum row_result result = task_operations_load(batch, str_from(id), &task);
    task_unref(task);
    return result != ROW_FAILED;
}

bool task_operations_expire(struct batch *batch, size_t limit)
{
    sqlite3_stmt *statement = database_statement(batch->database, STATEMENT_TASK_DUE);
    sqlite3_bind_int64(statement, 1, batch->now_ms);
    sqlite3_bind_int64(statement, 2, (int64_t)limit);
    struct id_list list;
    bool done = task_operations_ids(statement, &list);
    for (size_t i = 0; done && i < list.count; i++)
        done = expire(batch, list.ids[i]);
    free(list.ids);
    return done;
}

static bool purge_tasks(struct batch *batch, int *purged)
{
    sqlite3_stmt *statement = database_statement(batch->database, STATEMENT_TASK_PURGE);
    sqlite3_bind_int64(statement, 1, batch->now_ms);
    sqlite3_bind_int64(statement, 2, PURGE_LIMIT);
    bool done = database_run(statement);
    *purged = sqlite3_changes(batch->database->handle);
    return done;
}

static bool run_with_time(struct batch *batch, enum statement which, int64_t time_ms)
{
    sqlite3_stmt *statement = database_statement(batch->database, which);
    sqlite3_bind_int64(statement, 1, time_ms);
    return database_run(statement);
}

static bool find_next_deadline(struct batch *batch, int64_t *deadline_ms)
{
    sqlite3_stmt *row = database_statement(batch->database, STATEMENT_TASK_NEXT_DEADLINE);
    sqlite3_bind_int64(row, 1, batch->now_ms);
    bool read = sqlite3_step(row) == SQLITE_ROW;
    *deadline_ms = INT64_MAX;
    if (read && sqlite3_column_type(row, 0) != SQLITE_NULL)
        *deadline_ms = sqlite3_column_int64(row, 0);
    database_release(row);
    return read;
}

/* A gauge, for an alarm: the number of waiting tasks says nothing of a busy queue. */
static bool measure_oldest(struct batch *batch)
{
    sqlite3_stmt *row = database_statement(batch->database, STATEMENT_TASK_OLDEST);
    int code;
    metrics_reset(METRIC_TASKS_OLDEST_PENDING);
    while ((code = sqlite3_step(row)) == SQLITE_ROW) {
        int64_t waited_ms = batch->now_ms - sqlite3_column_int64(row, 1);
        metrics_set(METRIC_TASKS_OLDEST_PENDING, (double)waited_ms / 1000,
                    METRIC_LABELS(database_column_bytes(row, 0)));
    }
    database_release(row);
    return code == SQLITE_DONE;
}

static bool run_sweep(struct batch *batch, struct operation *operation)
{
    (void)operation;
    int64_t before_ms = batch->now_ms - SESSION_RETENTION_MS;
    size_t events_before = batch->event_count;
    int purged = 0;
    int64_t used_bytes;
    if (database_used_bytes(batch->database, &used_bytes))
        metrics_set(METRIC_STORE_BYTES, (double)used_bytes, NULL);
    bool done = task_operations_expire(batch, EXPIRE_LIMIT) && purge_tasks(batch, &purged) &&
                run_with_time(batch, STATEMENT_SESSION_PURGE, before_ms) &&
                run_with_time(batch, STATEMENT_PAIR_PURGE, before_ms) &&
                run_with_time(batch, STATEMENT_SIGN_IN_PURGE, batch->now_ms) &&
                grants_sweep(batch) && audit_purge(batch) && audit_anchor(batch) &&
                measure_oldest(batch);
    if (batch->event_count - events_before == EXPIRE_LIMIT || purged == PURGE_LIMIT)
        batch->sweep_again_ms = batch->now_ms;
    else
        done = done && find_next_deadline(batch, &batch->sweep_again_ms);
    int64_t grant_ms = INT64_MAX;
    done = done && grants_next_end(batch, &grant_ms);
    if (grant_ms < batch->sweep_again_ms)
        batch->sweep_again_ms = grant_ms;
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
    return run_with_time(batch, STATEMENT_PROBE, batch->now_ms);
}

/* Upstream may have done the work: the call is never run again (design invariant 4). */
static bool end_unknown(struct batch *batch, const char *id)
{
    struct task *task = NULL;
    struct error error;
    enum row_result result = task_rows_get(batch->database, str_from(id), &task);
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

static bool run_recover(struct batch *batch, struct operation *operation)
{
    (void)operation;
    sqlite3_stmt *statement = database_statement(batch->database, STATEMENT_TASK_IN_STATE);
    sqlite3_bind_int(statement, 1, TASK_EXECUTING);
    struct id_list list;
    bool done = task_operations_ids(statement, &list);
    for (size_t i = 0; done && i < list.count; i++)
        done = end_unknown(batch, list.ids[i]);
    if (done && list.count > 0)
        log_warn("Calls were running when the gateway stopped; their outcome is unknown",
                 LOG_NUMBER("tasks", (int64_t)list.count));
    free(list.ids);
    return done;
}

const struct operation_kind operation_sweep = {"sweep", true, run_sweep};
const struct operation_kind operation_probe = {"probe", true, run_probe};
const struct operation_kind operation_recover = {"recover", true, run_recover};
