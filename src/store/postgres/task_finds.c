/* Tasks that time, a session or a count is about. */
#include "rows.h"

static bool find_due(struct database *database, int64_t now_ms, size_t limit, struct id_list *list)
{
    return rows_take_ids(connection_read(database, STATEMENT_TASK_DUE,
                                         VALUES(NUMBER(now_ms), NUMBER((int64_t)limit))),
                         list);
}

static bool next_deadline(struct database *database, int64_t now_ms, int64_t *deadline_ms)
{
    return rows_take_number(
        connection_read(database, STATEMENT_TASK_NEXT_DEADLINE, VALUES(NUMBER(now_ms))),
        deadline_ms);
}

static bool find_of_session(struct database *database, const char *owner, const char *source,
                            struct id_list *list)
{
    return rows_take_ids(
        connection_read(database, STATEMENT_TASK_OF_SESSION, VALUES(TEXT(owner), TEXT(source))),
        list);
}

static bool purge(struct database *database, int64_t now_ms, size_t limit, size_t *purged)
{
    int64_t count = 0;
    enum row_result result = connection_change(
        database, STATEMENT_TASK_PURGE, VALUES(NUMBER(now_ms), NUMBER((int64_t)limit)), &count);
    *purged = (size_t)count;
    return result != ROW_FAILED && connection_write(database, STATEMENT_LIMITED_PURGE, NO_VALUES);
}

static bool count_limited(struct database *database, const char *owner,
                          struct limited_counts *counts)
{
    PGresult *rows = connection_read(database, STATEMENT_LIMITED_COUNT, VALUES(TEXT(owner)));
    bool read = rows_any(rows) == ROW_FOUND;
    if (read)
        *counts = (struct limited_counts){row_number(rows, 0, 0), row_number(rows, 0, 1),
                                          row_number(rows, 0, 2)};
    PQclear(rows);
    return read;
}

static bool add(struct database *database, const char *owner, int64_t limited, int64_t pending)
{
    return connection_write(database, STATEMENT_LIMITED_ADD,
                            VALUES(TEXT(owner), NUMBER(limited), NUMBER(pending)));
}

/* The row without an owner counts all. */
static bool add_limited(struct database *database, const char *owner, int64_t limited,
                        int64_t pending)
{
    return add(database, owner, limited, pending) && add(database, "", limited, pending);
}

static bool find_oldest(struct database *database,
                        void (*visit)(void *context, struct str workflow, int64_t created_ms),
                        void *context)
{
    PGresult *rows = connection_read(database, STATEMENT_TASK_OLDEST, NO_VALUES);
    for (int i = 0; rows && i < PQntuples(rows); i++)
        visit(context, row_bytes(rows, i, 0), row_number(rows, i, 1));
    PQclear(rows);
    return rows != NULL;
}

const struct task_rows postgres_task_rows = {
    .get = postgres_task_get,
    .insert = postgres_task_insert,
    .move = postgres_task_move,
    .end_request = postgres_task_end_request,
    .edit = postgres_task_edit,
    .set_votes = postgres_task_set_votes,
    .set_grant = postgres_task_set_grant,
    .set_upstream = postgres_task_set_upstream,
    .set_message = postgres_task_set_message,
    .find_due = find_due,
    .next_deadline = next_deadline,
    .find_of_session = find_of_session,
    .purge = purge,
    .count_limited = count_limited,
    .add_limited = add_limited,
    .find_oldest = find_oldest,
    .list = postgres_task_list,
};
