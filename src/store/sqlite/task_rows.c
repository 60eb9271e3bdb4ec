/* Tasks as rows of three tables. */
#include "task_rows.h"

#include <stdio.h>
#include <stdlib.h>

#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"

static void take(char **field, sqlite3_stmt *row, int column)
{
    task_set_text(field, database_column_bytes(row, column));
}

static void copy_fixed(char *field, size_t size, sqlite3_stmt *row, int column)
{
    snprintf(field, size, "%.*s", STR_ARGS(database_column_bytes(row, column)));
}

static bool flag(sqlite3_stmt *row, int column)
{
    return sqlite3_column_int(row, column) != 0;
}

/* Of clients. */
static void take_texts(struct task *task, sqlite3_stmt *row)
{
    take(&task->arguments, row, TASK_COLUMN_COUNT);
    take(&task->meta, row, TASK_COLUMN_COUNT + 1);
    take(&task->other_params, row, TASK_COLUMN_COUNT + 2);
    take(&task->original_arguments, row, TASK_COLUMN_COUNT + 3);
    take(&task->shown, row, TASK_COLUMN_COUNT + 4);
}

struct task *task_rows_read(sqlite3_stmt *row)
{
    struct task *task = task_create((enum task_state)sqlite3_column_int(row, 2));
    copy_fixed(task->id, sizeof task->id, row, 1);
    take(&task->source, row, 3);
    take(&task->owner, row, 4);
    take(&task->session, row, 5);
    take(&task->principal, row, 6);
    take(&task->tool, row, 7);
    take(&task->workflow, row, 8);
    take(&task->action, row, 9);
    copy_fixed(task->arguments_digest, sizeof task->arguments_digest, row, 10);
    copy_fixed(task->definition_digest, sizeof task->definition_digest, row, 11);
    take(&task->progress_token, row, 12);
    task->on_result = flag(row, 13);
    task->accelerated = flag(row, 14);
    task->keep_task = flag(row, 15);
    task->ttl_ms = sqlite3_column_int64(row, 16);
    task->poll_interval_ms = sqlite3_column_int64(row, 17);
    task->created_ms = sqlite3_column_int64(row, 18);
    task->decide_by_ms = sqlite3_column_int64(row, 19);
    task->updated_ms = sqlite3_column_int64(row, 20);
    task->execute_by_ms = sqlite3_column_int64(row, 21);
    task->decided_ms = sqlite3_column_int64(row, 22);
    task->ended_ms = sqlite3_column_int64(row, 23);
    take(&task->decided_by, row, 24);
    take(&task->reason, row, 25);
    take(&task->status_message, row, 26);
    take(&task->upstream_task, row, 27);
    task->failure = (enum task_failure)sqlite3_column_int(row, 28);
    task->outcome = (enum task_outcome)sqlite3_column_int(row, 29);
    take(&task->client_name, row, 30);
    take(&task->client_version, row, 31);
    task->promoted = flag(row, 32);
    task->retention_ms = sqlite3_column_int64(row, 33);
    task->expired_retention_ms = sqlite3_column_int64(row, 34);
    copy_fixed(task->request_digest, sizeof task->request_digest, row, 35);
    copy_fixed(task->headers_digest, sizeof task->headers_digest, row, 36);
    take(&task->refused_credentials, row, 37);
    take(&task->rule, row, 38);
    copy_fixed(task->policy_digest, sizeof task->policy_digest, row, 39);
    copy_fixed(task->owner_email, sizeof task->owner_email, row, 40);
    take(&task->terms, row, 41);
    take(&task->votes, row, 42);
    copy_fixed(task->rule_digest, sizeof task->rule_digest, row, 43);
    copy_fixed(task->bound_digest, sizeof task->bound_digest, row, 44);
    take(&task->grant, row, 45);
    copy_fixed(task->original_digest, sizeof task->original_digest, row, 46);
    copy_fixed(task->original_request_digest, sizeof task->original_request_digest, row, 47);
    take(&task->trace, row, 48);
    take(&task->maker, row, 49);
    task->started_ms = sqlite3_column_int64(row, 50);
    take(&task->brief, row, 51);
    task->promised = flag(row, 52);
    take_texts(task, row);
    return task;
}

#define WAITING_TEXT(name) take(&task->name, row, column)
#define WAITING_FIXED(name) copy_fixed(task->name, sizeof task->name, row, column)
#define WAITING_NUMBER(name) task->name = sqlite3_column_int64(row, column)
#define READ_WAITING(kind, name)                                                                   \
    WAITING_##kind(name);                                                                          \
    column++;

struct task *task_rows_read_waiting(sqlite3_stmt *row)
{
    struct task *task = task_create(TASK_PENDING);
    int column = 1;
    WAITING_COLUMN_TABLE(READ_WAITING)
    take(&task->shown, row, column);
    return task;
}

static void read_bulk(struct task *task, sqlite3_stmt *row)
{
    task_set_request(task, database_column_bytes(row, TASK_COLUMN_COUNT + 5));
    take(&task->mirrored_headers, row, TASK_COLUMN_COUNT + 7);
    if (task->outcome == TASK_OUTCOME_NONE)
        return;
    struct str outcome = database_column_bytes(row, TASK_COLUMN_COUNT + 6);
    task->outcome_text = memory_copy_str(outcome);
    task->outcome_length = outcome.length;
}

/* A damaged row cannot be judged, so it counts as absent. */
static enum row_result check_row(struct task **task)
{
    struct error error;
    if (task_check(*task, &error))
        return ROW_FOUND;
    log_error("A stored task is damaged and left alone", LOG_TEXT("reason", error.message));
    task_unref(*task);
    *task = NULL;
    return ROW_ABSENT;
}

enum row_result task_rows_get(struct database *database, struct str id, struct task **task)
{
    enum row_result result = ROW_FAILED;
    sqlite3_stmt *statement = database_statement(database, STATEMENT_TASK_GET);
    database_bind_str(statement, 1, id);
    int code = sqlite3_step(statement);
    if (code == SQLITE_DONE) {
        result = ROW_ABSENT;
    } else if (code == SQLITE_ROW) {
        *task = task_rows_read(statement);
        read_bulk(*task, statement);
        result = check_row(task);
    }
    database_release(statement);
    return result;
}

static bool insert_task(struct database *database, const struct task *task)
{
    sqlite3_stmt *row = database_statement(database, STATEMENT_TASK_INSERT);
    const char *const texts[] = {task->source,
                                 task->owner,
                                 task->session,
                                 task->principal,
                                 task->tool,
                                 task->workflow,
                                 task->action,
                                 task->arguments_digest,
                                 task->definition_digest,
                                 task->progress_token};
    const int64_t numbers[] = {task->on_result,    task->accelerated,      task->keep_task,
                               task->ttl_ms,       task->poll_interval_ms, task->created_ms,
                               task->decide_by_ms, task->updated_ms,       task->execute_by_ms,
                               task->decided_ms,   task->ended_ms};
    int index = 1;
    database_bind_text(row, index++, task->id);
    sqlite3_bind_int(row, index++, (int)task->state);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        database_bind_text(row, index++, texts[i]);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sqlite3_bind_int64(row, index++, numbers[i]);
    database_bind_text(row, index++, task->decided_by);
    database_bind_text(row, index++, task->reason);
    database_bind_text(row, index++, task->status_message);
    database_bind_text(row, index++, task->upstream_task);
    sqlite3_bind_int(row, index++, (int)task->failure);
    sqlite3_bind_int(row, index++, (int)task->outcome);
    database_bind_time(row, index++, task_next_deadline_ms(task));
    database_bind_time(row, index++, task_purge_ms(task));
    database_bind_text(row, index++, task->client_name);
    database_bind_text(row, index++, task->client_version);
    sqlite3_bind_int(row, index++, task->promoted);
    sqlite3_bind_int64(row, index++, task->retention_ms);
    sqlite3_bind_int64(row, index++, task->expired_retention_ms);
    database_bind_text(row, index++, task->request_digest);
    database_bind_text(row, index++, task->headers_digest);
    database_bind_text(row, index++, task->rule);
    database_bind_text(row, index++, task->policy_digest);
    database_bind_text(row, index++, task->owner_email);
    database_bind_text(row, index++, task->terms);
    database_bind_text(row, index++, task->rule_digest);
    database_bind_text(row, index++, task->bound_digest);
    database_bind_text(row, index++, task->trace);
    database_bind_text(row, index++, task->maker);
    database_bind_text(row, index, task->brief);
    return database_run(row);
}

static bool put_outcome(struct database *database, const struct task *task, int64_t sequence)
{
    sqlite3_stmt *row = database_statement(database, STATEMENT_OUTCOME_PUT);
    sqlite3_bind_int64(row, 1, sequence);
    database_bind_bytes(row, 2, str_slice(task->outcome_text, task->outcome_length));
    return database_run(row);
}

static bool put_keeper(struct database *database, const struct task *task,
                       const struct keeper *keeper)
{
    sqlite3_stmt *row = database_statement(database, STATEMENT_CLAIM_KEEP);
    database_bind_text(row, 1, task->id);
    database_bind_text(row, 2, keeper->replica);
    sqlite3_bind_int64(row, 3, keeper->epoch);
    return database_run(row);
}

bool task_rows_insert(struct database *database, const struct task *task,
                      const struct keeper *keeper)
{
    if (!insert_task(database, task))
        return false;
    int64_t sequence = sqlite3_last_insert_rowid(database->handle);
    sqlite3_stmt *row = database_statement(database, STATEMENT_REQUEST_INSERT);
    sqlite3_bind_int64(row, 1, sequence);
    database_bind_text(row, 2, task->arguments);
    database_bind_bytes(row, 3, str_slice(task->request, task->request_length));
    database_bind_text(row, 4, task->meta);
    database_bind_text(row, 5, task->other_params);
    database_bind_text(row, 6, task->mirrored_headers);
    database_bind_text(row, 7, task->shown);
    return database_run(row) &&
           (task->outcome == TASK_OUTCOME_NONE || put_outcome(database, task, sequence)) &&
           (!keeper || put_keeper(database, task, keeper));
}

bool task_rows_end_request(struct database *database, struct task *task, bool is_redacted)
{
    sqlite3_stmt *row = database_statement(database, STATEMENT_REQUEST_END);
    database_bind_text(row, 1, task->id);
    database_bind_text(row, 2, task->arguments);
    database_bind_text(row, 3, task->meta);
    database_bind_text(row, 4, task->other_params);
    sqlite3_bind_int(row, 5, is_redacted);
    database_bind_text(row, 6, task->original_arguments);
    task_set_request(task, STR_EMPTY);
    task_set_text(&task->mirrored_headers, STR_EMPTY);
    return database_run(row);
}

bool task_rows_edit(struct database *database, const struct task *task)
{
    sqlite3_stmt *row = database_statement(database, STATEMENT_TASK_EDIT);
    database_bind_text(row, 1, task->id);
    database_bind_text(row, 2, task->arguments_digest);
    database_bind_text(row, 3, task->request_digest);
    database_bind_text(row, 4, task->original_digest);
    database_bind_text(row, 5, task->original_request_digest);
    if (!database_run(row))
        return false;
    row = database_statement(database, STATEMENT_REQUEST_EDIT);
    database_bind_text(row, 1, task->id);
    database_bind_text(row, 2, task->arguments);
    database_bind_text(row, 3, task->original_arguments);
    database_bind_bytes(row, 4, str_slice(task->request, task->request_length));
    return database_run(row);
}

static bool find_sequence(struct database *database, const char *id, int64_t *sequence)
{
    sqlite3_stmt *row = database_statement(database, STATEMENT_TASK_SEQUENCE);
    database_bind_text(row, 1, id);
    bool found = sqlite3_step(row) == SQLITE_ROW;
    if (found)
        *sequence = sqlite3_column_int64(row, 0);
    database_release(row);
    return found;
}

enum row_result task_rows_move(struct database *database, const struct task *task,
                               enum task_state from, bool with_outcome)
{
    sqlite3_stmt *row = database_statement(database, STATEMENT_TASK_MOVE);
    database_bind_text(row, 1, task->id);
    sqlite3_bind_int(row, 2, (int)from);
    sqlite3_bind_int(row, 3, (int)task->state);
    sqlite3_bind_int64(row, 4, task->updated_ms);
    sqlite3_bind_int64(row, 5, task->execute_by_ms);
    sqlite3_bind_int64(row, 6, task->decided_ms);
    sqlite3_bind_int64(row, 7, task->ended_ms);
    database_bind_text(row, 8, task->decided_by);
    database_bind_text(row, 9, task->reason);
    database_bind_text(row, 10, task->status_message);
    database_bind_text(row, 11, task->upstream_task);
    sqlite3_bind_int(row, 12, (int)task->failure);
    sqlite3_bind_int(row, 13, (int)task->outcome);
    database_bind_time(row, 14, task_next_deadline_ms(task));
    database_bind_time(row, 15, task_purge_ms(task));
    database_bind_text(row, 16, task->refused_credentials);
    sqlite3_bind_int64(row, 17, task->started_ms);
    if (!database_run(row))
        return ROW_FAILED;
    if (sqlite3_changes(database->handle) == 0)
        return ROW_ABSENT;
    int64_t sequence;
    if (with_outcome &&
        (!find_sequence(database, task->id, &sequence) || !put_outcome(database, task, sequence)))
        return ROW_FAILED;
    return ROW_FOUND;
}

/* ---- one text of a task ---- */

static bool set_text(struct database *database, unsigned which, const struct task *task,
                     const char *text)
{
    sqlite3_stmt *row = database_statement(database, which);
    database_bind_text(row, 1, task->id);
    database_bind_text(row, 2, text);
    return database_run(row);
}

bool task_rows_set_votes(struct database *database, const struct task *task)
{
    sqlite3_stmt *row = database_statement(database, STATEMENT_TASK_SET_VOTES);
    database_bind_text(row, 1, task->id);
    database_bind_text(row, 2, task->votes);
    sqlite3_bind_int64(row, 3, task->updated_ms);
    return database_run(row);
}

bool task_rows_set_grant(struct database *database, const struct task *task)
{
    return set_text(database, STATEMENT_TASK_SET_GRANT, task, task->grant);
}

bool task_rows_set_upstream(struct database *database, const struct task *task)
{
    return set_text(database, STATEMENT_TASK_SET_UPSTREAM, task, task->upstream_task);
}

bool task_rows_set_message(struct database *database, const struct task *task)
{
    return set_text(database, STATEMENT_TASK_SET_MESSAGE, task, task->status_message);
}

bool task_rows_set_reach(struct database *database, const struct task *task)
{
    sqlite3_stmt *row = database_statement(database, STATEMENT_TASK_SET_REACH);
    database_bind_text(row, 1, task->id);
    database_bind_text(row, 2, task->owner);
    sqlite3_bind_int(row, 3, task->promised);
    sqlite3_bind_int(row, 4, task->on_result);
    return database_run(row);
}
