/* Creating, reading and changing single tasks. */
#include "task_operations.h"

#include <stdio.h>
#include <stdlib.h>

#include "grants.h"
#include "outbox.h"
#include "reminders.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"

static bool is_gateway(struct audit_actor actor)
{
    return str_equal(str_from(actor.kind), STR("gateway"));
}

static bool redact(const struct store_redaction *redaction, char **value, const char *workflow)
{
    struct buffer kept;
    buffer_init(&kept);
    bool is_redacted = redaction->write(redaction->context, &kept, str_from(*value), workflow);
    task_set_text(value, buffer_str(&kept));
    buffer_finish(&kept);
    return is_redacted;
}

/* Contract "limits.store_bytes": an ended task keeps digest, result and redacted arguments. */
static bool end_request(struct batch *batch, struct task *task)
{
    char **const values[] = {&task->arguments, &task->meta, &task->other_params};
    bool is_redacted = false;
    for (size_t i = 0; batch->redaction->write && i < sizeof values / sizeof *values; i++)
        is_redacted |= redact(batch->redaction, values[i], task->workflow);
    return task_rows_end_request(batch->database, task, is_redacted);
}

/* All of a move but the event. */
static enum row_result move(struct batch *batch, struct task *task,
                            const struct task_change *change, struct audit_actor actor,
                            struct error *error)
{
    enum task_state from = task->state;
    if (!task_transition(task, change, batch->now_ms, error))
        return ROW_ABSENT;
    enum row_result moved =
        task_rows_move(batch->database, task, from, change->outcome != TASK_OUTCOME_NONE);
    if (moved == ROW_FOUND && task_state_is_terminal(task->state))
        moved = end_request(batch, task) ? ROW_FOUND : ROW_FAILED;
    if (moved != ROW_FOUND)
        return ROW_FAILED; /* read in this very transaction, so it cannot have moved */
    const char *reason = change->reason;
    if (!reason && is_gateway(actor))
        reason = task->status_message;
    if (!audit_append(batch, task, task_move_name(from, task->state), task_state_name(from), actor,
                      reason) ||
        !outbox_note_moved(batch, task, from))
        return ROW_FAILED;
    pending_note_moved(batch->pending, task, from);
    return ROW_FOUND;
}

enum row_result task_operations_move(struct batch *batch, struct task *task,
                                     const struct task_change *change, struct audit_actor actor,
                                     struct error *error)
{
    enum row_result moved = move(batch, task, change, actor, error);
    if (moved == ROW_FOUND)
        batch_add_event(batch, task, false);
    return moved;
}

bool task_operations_decide_new(struct batch *batch, struct task *task,
                                const struct task_change *change, struct audit_actor actor)
{
    struct error error;
    return move(batch, task, change, actor, &error) == ROW_FOUND;
}

enum row_result task_operations_load(struct batch *batch, struct str id, struct task **task)
{
    enum row_result result = task_rows_get(batch->database, id, task);
    struct task_change change;
    if (result != ROW_FOUND || !task_due(*task, batch->now_ms, &change))
        return result;
    struct error error;
    return task_operations_move(batch, *task, &change, AUDIT_GATEWAY, &error) == ROW_FOUND
               ? ROW_FOUND
               : ROW_FAILED;
}

bool task_operations_ids(sqlite3_stmt *statement, struct id_list *list)
{
    size_t capacity = 0;
    *list = (struct id_list){NULL, 0};
    int code;
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
        if (list->count == capacity) {
            capacity = capacity ? 2 * capacity : 16;
            list->ids = memory_grow_array(list->ids, capacity, sizeof *list->ids);
        }
        snprintf(list->ids[list->count++], TASK_ID_BYTES, "%.*s",
                 STR_ARGS(database_column_bytes(statement, 0)));
    }
    database_release(statement);
    return code == SQLITE_DONE;
}

/* ---- create ---- */

static enum store_status refuse(enum store_status status, const char *limit)
{
    metrics_count(METRIC_LIMITS_REACHED, str_from(limit));
    return status;
}

/* false: the database failed. */
static bool check_limits(struct batch *batch, const struct operation *operation,
                         enum store_status *status)
{
    const struct store_limits *limits = &operation->limits;
    const struct task *task = operation->task;
    int64_t used = 0, more = (int64_t)task_rows_bytes(task);
    if (!database_used_bytes(batch->database, &used))
        return false;
    *status = STORE_OK;
    if (pending_of_owner(batch->pending, task->owner) >= limits->pending_per_principal)
        *status = refuse(STORE_LIMIT_PRINCIPAL, "pending_per_principal");
    else if (batch->pending->limited_total >= limits->pending_total)
        *status = refuse(STORE_LIMIT_TOTAL, "pending_total");
    else if (used > limits->store_bytes - more)
        *status = refuse(STORE_LIMIT_BYTES, "store_bytes");
    return true;
}

static bool run_create(struct batch *batch, struct operation *operation)
{
    struct task *task = operation->task;
    struct error error;
    if (!task_check(task, &error)) {
        log_error("A task was not stored", LOG_TEXT("reason", error.message));
        operation->reply.status = STORE_FAILED;
        return true;
    }
    if (!check_limits(batch, operation, &operation->reply.status))
        return false;
    if (operation->reply.status != STORE_OK)
        return true;
    bool is_granted;
    if (!task_rows_insert(batch->database, task) ||
        !audit_append(batch, task, "create", "", (struct audit_actor){"client", task->owner, NULL},
                      ""))
        return false;
    pending_note_created(batch->pending, task);
    /* Nobody is asked about a call that a grant decides. */
    if (!grants_apply(batch, task, &is_granted) ||
        (!is_granted &&
         (!outbox_note_created(batch, task) || !reminders_note_created(batch, task))))
        return false;
    batch_add_event(batch, task, true);
    operation->reply.task = task_ref(task);
    return true;
}

/* ---- get ---- */

/* Reads the task that the operation is about, into the reply. false: there is nothing to change,
 * and
 * `*done` is what the operation returns. */
static bool load(struct batch *batch, struct operation *operation, bool *done)
{
    enum row_result result =
        task_operations_load(batch, str_from(operation->id), &operation->reply.task);
    if (result == ROW_ABSENT)
        operation->reply.status = STORE_NOT_FOUND;
    *done = result != ROW_FAILED;
    return result == ROW_FOUND;
}

static bool run_get(struct batch *batch, struct operation *operation)
{
    bool done;
    load(batch, operation, &done);
    return done;
}

/* ---- change ---- */

static bool run_change(struct batch *batch, struct operation *operation)
{
    bool done;
    if (!load(batch, operation, &done))
        return done;
    struct task *task = operation->reply.task;
    if (!task_can_change(task, &operation->change)) {
        operation->reply.status = STORE_CONFLICT;
        return true;
    }
    struct error error;
    struct audit_actor actor = {operation->actor_kind, operation->actor_name, NULL};
    enum row_result result = task_operations_move(batch, task, &operation->change, actor, &error);
    if (result == ROW_ABSENT) { /* the caller's mistake: the change lacks something */
        log_error("A change was not stored", LOG_TEXT("reason", error.message));
        operation->reply.status = STORE_FAILED;
        return true;
    }
    return result == ROW_FOUND;
}

/* ---- one text of a task that is in `state` ---- */

static bool set_text(struct batch *batch, struct operation *operation, enum task_state state,
                     char **(*field)(struct task *task), const char *text, enum statement statement)
{
    bool done;
    if (!load(batch, operation, &done))
        return done;
    struct task *task = operation->reply.task;
    if (task->state != state) {
        operation->reply.status = STORE_CONFLICT;
        return true;
    }
    task_set_text(field(task), str_from(text));
    sqlite3_stmt *row = database_statement(batch->database, statement);
    database_bind_text(row, 1, task->id);
    database_bind_text(row, 2, text);
    return database_run(row);
}

static char **upstream_task_of(struct task *task)
{
    return &task->upstream_task;
}

static bool run_set_upstream(struct batch *batch, struct operation *operation)
{
    return set_text(batch, operation, TASK_EXECUTING, upstream_task_of, operation->upstream_task,
                    STATEMENT_TASK_SET_UPSTREAM);
}

static char **status_message_of(struct task *task)
{
    return &task->status_message;
}

/* Why an approved task does not run. */
static bool run_set_message(struct batch *batch, struct operation *operation)
{
    if (!set_text(batch, operation, TASK_APPROVED, status_message_of, operation->reason,
                  STATEMENT_TASK_SET_MESSAGE))
        return false;
    if (operation->reply.status == STORE_OK)
        batch_add_event(batch, operation->reply.task, false);
    return true;
}

/* ---- what moves it nowhere ---- */

static bool run_note(struct batch *batch, struct operation *operation)
{
    bool done, has;
    if (!load(batch, operation, &done))
        return done;
    struct task *task = operation->reply.task;
    const struct audit_actor actor = {operation->actor_kind, operation->actor_name, NULL};
    if (task->state != TASK_PENDING && task->state != TASK_APPROVED) {
        operation->reply.status = STORE_CONFLICT;
        return true;
    }
    if (!audit_has(batch, task, operation->event, &has) || has)
        return has;
    int64_t updated_ms = task->updated_ms;
    task->updated_ms = batch->now_ms; /* the time of the entry, not of the task */
    done = audit_append(batch, task, operation->event, task_state_name(task->state), actor,
                        operation->reason);
    task->updated_ms = updated_ms;
    return done;
}

/* ---- the end of a session ---- */

static bool cancel(struct batch *batch, const char *id, struct audit_actor actor)
{
    struct task *task = NULL;
    enum row_result result = task_operations_load(batch, str_from(id), &task);
    const struct task_change change = {.to = TASK_CANCELLED,
                                       .status_message = "Cancelled: the session has ended"};
    struct error error;
    /* A task that has just expired stays expired. */
    if (result == ROW_FOUND && task_can_move(task->state, change.to))
        result = task_operations_move(batch, task, &change, actor, &error);
    task_unref(task);
    return result != ROW_FAILED;
}

static bool run_cancel_session(struct batch *batch, struct operation *operation)
{
    sqlite3_stmt *statement = database_statement(batch->database, STATEMENT_TASK_OF_SESSION);
    database_bind_text(statement, 1, operation->owner);
    database_bind_text(statement, 2, operation->source);
    struct id_list list;
    bool done = task_operations_ids(statement, &list);
    for (size_t i = 0; done && i < list.count; i++)
        done = cancel(batch, list.ids[i], (struct audit_actor){"client", operation->owner, NULL});
    free(list.ids);
    return done;
}

const struct operation_kind operation_task_create = {"create", true, run_create};
const struct operation_kind operation_task_get = {"get", false, run_get};
const struct operation_kind operation_task_change = {"change", true, run_change};
const struct operation_kind operation_task_set_upstream = {"set upstream", true, run_set_upstream};
const struct operation_kind operation_task_set_message = {"set message", true, run_set_message};
const struct operation_kind operation_task_note = {"note", true, run_note};
const struct operation_kind operation_task_cancel_session = {"cancel session", true,
                                                             run_cancel_session};
