/* Tasks that time, a session or a count is about. */
#include <string.h>

#include "rows.h"
#include "taskgate/core/buffer.h"

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

static enum row_result hand_over_ended(struct database *database, const char *owner,
                                       const char *source, const char *heir, size_t most,
                                       bool (*visit)(void *context, const struct ended_task *task),
                                       void *context)
{
    database->written++;
    PGresult *rows =
        connection_read(database, STATEMENT_TASK_HAND_OVER_ENDED,
                        VALUES(TEXT(owner), TEXT(source), TEXT(heir), NUMBER((int64_t)most)));
    enum row_result result = rows_any(rows);
    for (int i = 0; result == ROW_FOUND && i < PQntuples(rows); i++) {
        const struct ended_task task = {
            .tool = row_bytes(rows, i, 0),
            .state = (enum task_state)row_number(rows, i, 1),
            .approved_ms = row_number(rows, i, 2),
            .ended_ms = row_number(rows, i, 3),
        };
        if (!visit(context, &task))
            result = ROW_FAILED;
    }
    PQclear(rows);
    return result;
}

static bool count_waiting(struct database *database, int64_t now_ms, int64_t *count)
{
    return rows_take_number(
        connection_read(database, STATEMENT_TASK_WAITING_COUNT, VALUES(NUMBER(now_ms))), count);
}

static bool forget_limited(struct database *database)
{
    return connection_write(database, STATEMENT_LIMITED_PURGE, NO_VALUES);
}

/* ---- what limits count ---- */

static bool ask_of_owner(struct database *database, const char *owner, struct str ids)
{
    return connection_ask(database, STATEMENT_LIMITED_GET, VALUES(TEXT(owner), STRING(ids)),
                          SENT_OWNER);
}

static bool is_asked(const struct task *const *tasks, size_t count, const char *owner)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(tasks[i]->owner, owner) == 0)
            return true;
    }
    return false;
}

/* A statement for each owner; the first asks for the ids of all. */
static bool expect_inserts(struct database *database, const struct task *const *tasks, size_t count)
{
    struct buffer ids;
    bool done = true;
    buffer_init(&ids);
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            buffer_append_char(&ids, ',');
        buffer_append_text(&ids, tasks[i]->id);
    }
    for (size_t i = 0; done && i < count; i++) {
        if (!is_asked(tasks, i, tasks[i]->owner))
            done = ask_of_owner(database, tasks[i]->owner, i == 0 ? buffer_str(&ids) : STR_EMPTY);
    }
    buffer_finish(&ids);
    return done;
}

/* NULL: the database has failed. */
static const struct known_owner *know_owner(struct database *database, const char *owner)
{
    const struct known_owner *known = known_find_owner(&database->known, str_from(owner));
    if (!known && ask_of_owner(database, owner, STR_EMPTY) && connection_settle(database))
        known = known_find_owner(&database->known, str_from(owner));
    return known;
}

static bool count_limited(struct database *database, const char *owner,
                          struct limited_counts *counts)
{
    if (!totals_know(database))
        return false;
    const struct known_owner *known = *owner ? know_owner(database, owner) : NULL;
    if (*owner && !known)
        return false;
    const struct totals *totals = &database->known.totals, *counted = &database->counted;
    const struct limited_change owed = owed_of(&database->owed, str_from(owner));
    *counts = (struct limited_counts){
        .of_owner = known ? known->tasks + owed.tasks : 0,
        .bytes = known ? known->bytes + owed.bytes : 0,
        .of_all = totals->tasks + counted->tasks,
        .pending = totals->pending + counted->pending,
    };
    return true;
}

static bool add_limited_to(struct database *database, const char *owner,
                           const struct limited_change *change)
{
    if (!*owner) {
        database->counted.tasks += change->tasks;
        database->counted.pending += change->pending;
    } else if (change->tasks != 0 || change->bytes != 0) {
        owed_add(&database->owed, str_from(owner), change);
    }
    return true;
}

static bool find_waits(struct database *database, int64_t now_ms,
                       void (*visit)(void *context, struct str workflow, int64_t created_ms,
                                     int64_t used_millionths),
                       void *context)
{
    PGresult *rows = connection_read(database, STATEMENT_TASK_WAITS, VALUES(NUMBER(now_ms)));
    for (int i = 0; rows && i < PQntuples(rows); i++)
        visit(context, row_bytes(rows, i, 0), row_number(rows, i, 1), row_number(rows, i, 2));
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
    .set_reach = postgres_task_set_reach,
    .find_due = find_due,
    .next_deadline = next_deadline,
    .find_of_session = find_of_session,
    .hand_over_ended = hand_over_ended,
    .forget_limited = forget_limited,
    .expect_inserts = expect_inserts,
    .count_limited = count_limited,
    .add_limited_to = add_limited_to,
    .find_waits = find_waits,
    .list = postgres_task_list,
    .list_waiting = postgres_task_list_waiting,
    .count_waiting = count_waiting,
};
