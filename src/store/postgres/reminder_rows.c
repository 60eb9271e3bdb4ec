/* When people are told again of a task. */
#include "rows.h"

static bool insert(struct database *database, const char *task_id, unsigned event, int64_t due_ms)
{
    return connection_write(database, STATEMENT_REMINDER_INSERT,
                            VALUES(TEXT(task_id), NUMBER(event), NUMBER(due_ms)));
}

static bool find_due(struct database *database, unsigned event, int64_t now_ms, size_t limit,
                     struct id_list *list)
{
    return rows_take_ids(
        connection_read(database, STATEMENT_REMINDER_DUE,
                        VALUES(NUMBER(event), NUMBER(now_ms), NUMBER((int64_t)limit))),
        list);
}

static bool remove_reminder(struct database *database, const char *task_id, unsigned event)
{
    return connection_write(database, STATEMENT_REMINDER_DELETE,
                            VALUES(TEXT(task_id), NUMBER(event)));
}

static bool next_due(struct database *database, unsigned event, int64_t now_ms, int64_t *due_ms)
{
    return rows_take_number(
        connection_read(database, STATEMENT_REMINDER_NEXT, VALUES(NUMBER(event), NUMBER(now_ms))),
        due_ms);
}

const struct reminder_rows postgres_reminder_rows = {
    .insert = insert,
    .find_due = find_due,
    .remove = remove_reminder,
    .next_due = next_due,
};
