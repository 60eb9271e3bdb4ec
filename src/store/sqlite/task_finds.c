/* Tasks that time, a session or a count is about. */
#include "task_rows.h"

static bool find_due(struct database *database, int64_t now_ms, size_t limit, struct id_list *list)
{
    sqlite3_stmt *statement = database_statement(database, STATEMENT_TASK_DUE);
    sqlite3_bind_int64(statement, 1, now_ms);
    sqlite3_bind_int64(statement, 2, (int64_t)limit);
    return rows_read_ids(statement, list);
}

static bool next_deadline(struct database *database, int64_t now_ms, int64_t *deadline_ms)
{
    sqlite3_stmt *row = database_statement(database, STATEMENT_TASK_NEXT_DEADLINE);
    sqlite3_bind_int64(row, 1, now_ms);
    return rows_read_number(row, deadline_ms);
}

static bool find_of_session(struct database *database, const char *owner, const char *source,
                            struct id_list *list)
{
    sqlite3_stmt *statement = database_statement(database, STATEMENT_TASK_OF_SESSION);
    database_bind_text(statement, 1, owner);
    database_bind_text(statement, 2, source);
    return rows_read_ids(statement, list);
}

static enum row_result hand_over_ended(struct database *database, const char *owner,
                                       const char *source, const char *heir, size_t most,
                                       bool (*visit)(void *context, const struct ended_task *task),
                                       void *context)
{
    sqlite3_stmt *row = database_statement(database, STATEMENT_TASK_HAND_OVER_ENDED);
    enum row_result result = ROW_ABSENT;
    int code;
    database_bind_text(row, 1, owner);
    database_bind_text(row, 2, source);
    database_bind_text(row, 3, heir);
    sqlite3_bind_int64(row, 4, (int64_t)most);
    while (result != ROW_FAILED && (code = sqlite3_step(row)) != SQLITE_DONE) {
        const struct ended_task task = {
            .tool = database_column_bytes(row, 0),
            .state = (enum task_state)sqlite3_column_int(row, 1),
            .approved_ms = sqlite3_column_int64(row, 2),
            .ended_ms = sqlite3_column_int64(row, 3),
        };
        result = code == SQLITE_ROW && visit(context, &task) ? ROW_FOUND : ROW_FAILED;
    }
    database_release(row);
    return result;
}

static bool count_waiting(struct database *database, int64_t now_ms, int64_t *count)
{
    sqlite3_stmt *row = database_statement(database, STATEMENT_TASK_WAITING_COUNT);
    sqlite3_bind_int64(row, 1, now_ms);
    return rows_read_number(row, count);
}

static bool forget_limited(struct database *database)
{
    return database_simple(database, STATEMENT_LIMITED_PURGE);
}

static bool expect_inserts(struct database *database, const struct task *const *tasks, size_t count)
{
    (void)database, (void)tasks, (void)count;
    return true;
}

static bool count_limited(struct database *database, const char *owner,
                          struct limited_counts *counts)
{
    sqlite3_stmt *row = database_statement(database, STATEMENT_LIMITED_COUNT);
    database_bind_text(row, 1, owner);
    bool read = sqlite3_step(row) == SQLITE_ROW;
    if (read)
        *counts =
            (struct limited_counts){sqlite3_column_int64(row, 0), sqlite3_column_int64(row, 1),
                                    sqlite3_column_int64(row, 2), sqlite3_column_int64(row, 3)};
    database_release(row);
    return read;
}

static bool add_limited_to(struct database *database, const char *owner,
                           const struct limited_change *change)
{
    sqlite3_stmt *row = database_statement(database, STATEMENT_LIMITED_ADD);
    database_bind_text(row, 1, owner);
    sqlite3_bind_int64(row, 2, change->tasks);
    sqlite3_bind_int64(row, 3, change->pending);
    sqlite3_bind_int64(row, 4, change->bytes);
    return database_run(row);
}

static bool find_waits(struct database *database, int64_t now_ms,
                       void (*visit)(void *context, struct str workflow, int64_t created_ms,
                                     int64_t used_millionths),
                       void *context)
{
    sqlite3_stmt *row = database_statement(database, STATEMENT_TASK_WAITS);
    sqlite3_bind_int64(row, 1, now_ms);
    int code;
    while ((code = sqlite3_step(row)) == SQLITE_ROW)
        visit(context, database_column_bytes(row, 0), sqlite3_column_int64(row, 1),
              sqlite3_column_int64(row, 2));
    database_release(row);
    return code == SQLITE_DONE;
}

const struct task_rows sqlite_task_rows = {
    .get = task_rows_get,
    .insert = task_rows_insert,
    .move = task_rows_move,
    .end_request = task_rows_end_request,
    .edit = task_rows_edit,
    .set_votes = task_rows_set_votes,
    .set_grant = task_rows_set_grant,
    .set_upstream = task_rows_set_upstream,
    .set_message = task_rows_set_message,
    .set_reach = task_rows_set_reach,
    .find_due = find_due,
    .next_deadline = next_deadline,
    .find_of_session = find_of_session,
    .hand_over_ended = hand_over_ended,
    .forget_limited = forget_limited,
    .expect_inserts = expect_inserts,
    .count_limited = count_limited,
    .add_limited_to = add_limited_to,
    .find_waits = find_waits,
    .list = task_rows_list,
    .list_waiting = task_rows_list_waiting,
    .count_waiting = count_waiting,
};
