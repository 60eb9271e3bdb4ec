/* When people are told again of a task. */
#include "rows.h"

static sqlite3_stmt *of_task(struct database *database, unsigned which, const char *task_id,
                             unsigned event)
{
    sqlite3_stmt *row = database_statement(database, which);
    database_bind_text(row, 1, task_id);
    sqlite3_bind_int64(row, 2, event);
    return row;
}

static bool insert(struct database *database, const char *task_id, unsigned event, int64_t due_ms)
{
    sqlite3_stmt *row = of_task(database, STATEMENT_REMINDER_INSERT, task_id, event);
    sqlite3_bind_int64(row, 3, due_ms);
    return database_run(row);
}

static bool find_due(struct database *database, unsigned event, int64_t now_ms, size_t limit,
                     struct id_list *list)
{
    sqlite3_stmt *row = database_statement(database, STATEMENT_REMINDER_DUE);
    sqlite3_bind_int64(row, 1, event);
    sqlite3_bind_int64(row, 2, now_ms);
    sqlite3_bind_int64(row, 3, (int64_t)limit);
    return rows_read_ids(row, list);
}

static bool remove_reminder(struct database *database, const char *task_id, unsigned event)
{
    return database_run(of_task(database, STATEMENT_REMINDER_DELETE, task_id, event));
}

static bool next_due(struct database *database, unsigned event, int64_t now_ms, int64_t *due_ms)
{
    sqlite3_stmt *row = database_statement(database, STATEMENT_REMINDER_NEXT);
    sqlite3_bind_int64(row, 1, event);
    sqlite3_bind_int64(row, 2, now_ms);
    return rows_read_number(row, due_ms);
}

const struct reminder_rows sqlite_reminder_rows = {
    .insert = insert,
    .find_due = find_due,
    .remove = remove_reminder,
    .next_due = next_due,
};
