/* Tasks that time, a session or a count is about. */
#include <stdlib.h>
#include <string.h>

#include "rows.h"
#include "taskgate/core/memory.h"

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
    database->written++;
    PGresult *rows = connection_read(database, STATEMENT_TASK_PURGE,
                                     VALUES(NUMBER(now_ms), NUMBER((int64_t)limit)));
    *purged = rows ? (size_t)row_number(rows, 0, 1) : 0;
    return totals_give_back(database, rows) &&
           connection_write(database, STATEMENT_LIMITED_PURGE, NO_VALUES);
}

/* ---- what limits count ---- */

static bool know_owner(struct database *database, const char *owner)
{
    struct known *known = &database->known;
    if (known->has_owner && strcmp(known->owner, owner) == 0)
        return true;
    PGresult *rows = connection_read(database, STATEMENT_LIMITED_GET, VALUES(TEXT(owner)));
    enum row_result result = rows_any(rows);
    known->owner_tasks = result == ROW_FOUND ? row_number(rows, 0, 0) : 0;
    PQclear(rows);
    free(known->owner);
    known->owner = memory_copy_text(owner);
    known->has_owner = result != ROW_FAILED;
    return known->has_owner;
}

static bool count_limited(struct database *database, const char *owner,
                          struct limited_counts *counts)
{
    if (!totals_know(database) || (*owner && !know_owner(database, owner)))
        return false;
    const struct totals *totals = &database->known.totals, *counted = &database->counted;
    *counts = (struct limited_counts){
        .of_owner = *owner ? database->known.owner_tasks : 0,
        .of_all = totals->tasks + counted->tasks,
        .pending = totals->pending + counted->pending,
    };
    return true;
}

static bool add_limited(struct database *database, const char *owner, int64_t limited,
                        int64_t pending)
{
    database->counted.tasks += limited;
    database->counted.pending += pending;
    if (limited == 0)
        return true;
    if (database->known.has_owner && strcmp(database->known.owner, owner) == 0)
        database->known.owner_tasks += limited;
    return connection_write(database, STATEMENT_LIMITED_ADD, VALUES(TEXT(owner), NUMBER(limited)));
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
