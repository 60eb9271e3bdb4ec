/* Tasks as rows of one table; PostgreSQL keeps long values beside it. */
#include <stdlib.h>
#include <string.h>

#include "columns.h"
#include "rows.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"

_Static_assert(TASK_COLUMN_COUNT + TASK_BULK_COUNT + 3 == TASK_PLACEHOLDER_COUNT,
               "each column of a task has its placeholder");
#define KEEPER_COUNT 2 /* values of a keeper */
_Static_assert(TASK_PLACEHOLDER_COUNT + KEEPER_COUNT <= VALUES_MAX,
               "a statement takes the whole task");

/* The first column of the bulk: behind the sequence and the columns. */
#define BULK (1 + TASK_COLUMN_COUNT)
#define BODY (BULK + 5)
#define ROW_BYTES 1024 /* of the short columns, and of the indexes */

/* ---- reading ---- */

static void take(char **field, const PGresult *rows, int row, int column)
{
    task_set_text(field, row_bytes(rows, row, column));
}

#define READ_TEXT(field) take(&task->field, rows, row, column)
#define READ_FIXED(field) row_copy(task->field, sizeof task->field, rows, row, column)
#define READ_NUMBER(field) task->field = row_number(rows, row, column)
#define READ_FLAG(field) task->field = row_number(rows, row, column) != 0
#define READ_STATE(field) task->field = (enum task_state)row_number(rows, row, column)
#define READ_FAILURE(field) task->field = (enum task_failure)row_number(rows, row, column)
#define READ_OUTCOME(field) task->field = (enum task_outcome)row_number(rows, row, column)
#define READ(kind, name, field)                                                                    \
    READ_##kind(field);                                                                            \
    column++;

struct task *task_row_read(const PGresult *rows, int row)
{
    struct task *task = task_create(TASK_PENDING);
    int column = 1;
    TASK_COLUMN_TABLE(READ)
    char **const bulk[] = {&task->arguments, &task->meta, &task->other_params,
                           &task->original_arguments, &task->shown};
    for (size_t i = 0; i < sizeof bulk / sizeof *bulk; i++)
        take(bulk[i], rows, row, column++);
    return task;
}

#define READ_WAITING(kind, name) READ(kind, name, name)

struct task *task_row_read_waiting(const PGresult *rows, int row)
{
    struct task *task = task_create(TASK_PENDING);
    int column = 1;
    WAITING_COLUMN_TABLE(READ_WAITING)
    take(&task->shown, rows, row, column);
    return task;
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

enum row_result postgres_task_get(struct database *database, struct str id, struct task **task)
{
    PGresult *rows = connection_read(database, STATEMENT_TASK_GET, VALUES(STRING(id)));
    enum row_result result = rows_any(rows);
    if (result == ROW_FOUND) {
        struct task *found = task_row_read(rows, 0);
        task_set_request(found, row_bytes(rows, 0, BODY));
        struct str outcome = row_bytes(rows, 0, BODY + 1);
        take(&found->mirrored_headers, rows, 0, BODY + 2);
        if (found->outcome != TASK_OUTCOME_NONE) {
            found->outcome_text = memory_copy_str(outcome);
            found->outcome_length = outcome.length;
        }
        *task = found;
        result = check_row(task);
    }
    PQclear(rows);
    return result;
}

/* ---- writing ---- */

static struct value outcome_of(const struct task *task)
{
    if (task->outcome == TASK_OUTCOME_NONE)
        return (struct value){.kind = VALUE_NOTHING};
    return BYTES(str_slice(task->outcome_text, task->outcome_length));
}

#define WRITE_TEXT(field) TEXT(task->field)
#define WRITE_FIXED(field) TEXT(task->field)
#define WRITE_NUMBER(field) NUMBER(task->field)
#define WRITE_FLAG(field) NUMBER(task->field)
#define WRITE_STATE(field) NUMBER(task->field)
#define WRITE_FAILURE(field) NUMBER(task->field)
#define WRITE_OUTCOME(field) NUMBER(task->field)
#define WRITE(kind, name, field) WRITE_##kind(field),

/* About what a row takes, without the outcome. */
static int64_t bytes_of(const struct task *task)
{
    size_t bytes = ROW_BYTES + task->request_length + strlen(task->arguments) + strlen(task->meta) +
                   strlen(task->other_params) + strlen(task->shown) + strlen(task->terms) +
                   strlen(task->mirrored_headers) + strlen(task->brief);
    return (int64_t)bytes;
}

bool postgres_task_insert(struct database *database, const struct task *task,
                          const struct keeper *keeper)
{
    int64_t bytes = bytes_of(task) + (int64_t)task->outcome_length;
    /* Said by the database, it would be the fault of all that are committed together. */
    if (known_has_id(&database->known, task->id))
        return error_set(&database->error, "there is a task %s already", task->id);
    id_list_add(&database->known.ids, str_from(task->id));
    database->counted.bytes += bytes;
    const struct value values[] = {TIME(task_next_deadline_ms(task)),
                                   TIME(task_purge_ms(task)),
                                   NUMBER(bytes),
                                   TASK_COLUMN_TABLE(WRITE) TEXT(task->arguments),
                                   TEXT(task->meta),
                                   TEXT(task->other_params),
                                   TEXT(task->original_arguments),
                                   TEXT(task->shown),
                                   BYTES(str_slice(task->request, task->request_length)),
                                   outcome_of(task),
                                   BYTES(str_from(task->mirrored_headers)),
                                   TEXT(keeper ? keeper->replica : ""),
                                   NUMBER(keeper ? keeper->epoch : 0)};
    _Static_assert(sizeof values / sizeof *values == TASK_PLACEHOLDER_COUNT + KEEPER_COUNT,
                   "the keeper stands behind the task");
    return connection_write(database, keeper ? STATEMENT_TASK_INSERT_KEPT : STATEMENT_TASK_INSERT,
                            values, TASK_PLACEHOLDER_COUNT + (keeper ? KEEPER_COUNT : 0));
}

enum row_result postgres_task_move(struct database *database, const struct task *task,
                                   enum task_state from, bool with_outcome)
{
    enum row_result result = connection_change(
        database, STATEMENT_TASK_MOVE,
        VALUES(TEXT(task->id), NUMBER(from), NUMBER(task->state), NUMBER(task->updated_ms),
               NUMBER(task->execute_by_ms), NUMBER(task->decided_ms), NUMBER(task->ended_ms),
               TEXT(task->decided_by), TEXT(task->reason), TEXT(task->status_message),
               TEXT(task->upstream_task), NUMBER(task->failure), NUMBER(task->outcome),
               TIME(task_next_deadline_ms(task)), TIME(task_purge_ms(task)),
               TEXT(task->refused_credentials), NUMBER(task->started_ms)),
        NULL);
    if (result != ROW_FOUND || !with_outcome)
        return result;
    int64_t bytes = (int64_t)task->outcome_length;
    database->counted.bytes += bytes;
    return connection_write(database, STATEMENT_TASK_SET_OUTCOME,
                            VALUES(TEXT(task->id), outcome_of(task), NUMBER(bytes)))
               ? ROW_FOUND
               : ROW_FAILED;
}

bool postgres_task_end_request(struct database *database, struct task *task, bool is_redacted)
{
    int64_t bytes = (int64_t)(task->request_length + strlen(task->mirrored_headers));
    task_set_request(task, STR_EMPTY);
    task_set_text(&task->mirrored_headers, STR_EMPTY);
    database->counted.bytes -= bytes;
    return connection_write(database, STATEMENT_TASK_END_REQUEST,
                            VALUES(TEXT(task->id), TEXT(task->arguments), TEXT(task->meta),
                                   TEXT(task->other_params), NUMBER(is_redacted),
                                   TEXT(task->original_arguments), NUMBER(bytes)));
}

bool postgres_task_edit(struct database *database, const struct task *task)
{
    return connection_write(database, STATEMENT_TASK_EDIT,
                            VALUES(TEXT(task->id), TEXT(task->arguments_digest),
                                   TEXT(task->request_digest), TEXT(task->original_digest),
                                   TEXT(task->original_request_digest), TEXT(task->arguments),
                                   TEXT(task->original_arguments),
                                   BYTES(str_slice(task->request, task->request_length))));
}

bool postgres_task_set_votes(struct database *database, const struct task *task)
{
    return connection_write(database, STATEMENT_TASK_SET_VOTES,
                            VALUES(TEXT(task->id), TEXT(task->votes), NUMBER(task->updated_ms)));
}

bool postgres_task_set_grant(struct database *database, const struct task *task)
{
    return connection_write(database, STATEMENT_TASK_SET_GRANT,
                            VALUES(TEXT(task->id), TEXT(task->grant)));
}

bool postgres_task_set_upstream(struct database *database, const struct task *task)
{
    return connection_write(database, STATEMENT_TASK_SET_UPSTREAM,
                            VALUES(TEXT(task->id), TEXT(task->upstream_task)));
}

bool postgres_task_set_message(struct database *database, const struct task *task)
{
    return connection_write(database, STATEMENT_TASK_SET_MESSAGE,
                            VALUES(TEXT(task->id), TEXT(task->status_message)));
}

bool postgres_task_set_reach(struct database *database, const struct task *task)
{
    return connection_write(
        database, STATEMENT_TASK_SET_REACH,
        VALUES(TEXT(task->id), TEXT(task->owner), NUMBER(task->promised), NUMBER(task->on_result)));
}
