/* The outbox as the notifier sees it: its targets, the due deliveries, and the outcome of an
 * attempt. */
#include <stdio.h>
#include <stdlib.h>

#include "audit.h"
#include "outbox.h"
#include "taskgate/core/memory.h"

/* Of STATEMENT_OUTBOX_DUE, behind those of the notice. */
#define EMERGENCY_COLUMN 19
#define ANCHOR_COLUMN 20
#define REFERENCE_COLUMN 21

/* ---- whom to tell ---- */

static bool insert_target(struct batch *batch, const struct store_outbox_target *target)
{
    sqlite3_stmt *row = database_statement(batch->database, STATEMENT_OUTBOX_TARGET_INSERT);
    database_bind_text(row, 1, target->key);
    sqlite3_bind_int64(row, 2, target->events);
    sqlite3_bind_int(row, 3, target->with_arguments);
    return database_run(row);
}

static bool run_configure(struct batch *batch, struct operation *operation)
{
    bool done = database_simple(batch->database, STATEMENT_OUTBOX_TARGET_CLEAR);
    for (size_t i = 0; done && i < operation->target_count; i++)
        done = insert_target(batch, &operation->targets[i]);
    done = done && database_simple(batch->database, STATEMENT_OUTBOX_DROP_OTHERS);
    operation->reply.dropped = sqlite3_changes64(batch->database->handle);
    return done && database_simple(batch->database, STATEMENT_OUTBOX_THREAD_PURGE);
}

/* ---- what is due ---- */

static void take(char **field, sqlite3_stmt *row, int column)
{
    task_set_text(field, database_column_bytes(row, column));
}

static struct store_delivery read_delivery(sqlite3_stmt *row)
{
    struct store_delivery delivery = {
        .sequence = sqlite3_column_int64(row, 0),
        .event = (unsigned)sqlite3_column_int(row, 2),
        .attempts = sqlite3_column_int64(row, 3),
        .at_ms = sqlite3_column_int64(row, 4),
        .task = task_create((enum task_state)sqlite3_column_int(row, 6)),
        .is_emergency = sqlite3_column_int(row, EMERGENCY_COLUMN) != 0,
    };
    struct task *task = delivery.task;
    snprintf(delivery.id, sizeof delivery.id, "%.*s", STR_ARGS(database_column_bytes(row, 1)));
    snprintf(task->id, sizeof task->id, "%.*s", STR_ARGS(database_column_bytes(row, 5)));
    take(&task->source, row, 7);
    take(&task->tool, row, 8);
    take(&task->workflow, row, 9);
    take(&task->principal, row, 10);
    snprintf(task->arguments_digest, sizeof task->arguments_digest, "%.*s",
             STR_ARGS(database_column_bytes(row, 11)));
    take(&task->decided_by, row, 12);
    take(&task->reason, row, 13);
    take(&task->status_message, row, 14);
    take(&task->arguments, row, 15);
    task->created_ms = sqlite3_column_int64(row, 16);
    task->decide_by_ms = sqlite3_column_int64(row, 17);
    task->decided_ms = sqlite3_column_int64(row, 18);
    if (database_column_bytes(row, ANCHOR_COLUMN).length > 0)
        delivery.anchor = database_take_text(row, ANCHOR_COLUMN);
    return delivery;
}

static bool find_next(struct batch *batch, struct operation *operation)
{
    sqlite3_stmt *row = database_statement(batch->database, STATEMENT_OUTBOX_NEXT);
    database_bind_text(row, 1, operation->id);
    sqlite3_bind_int64(row, 2, batch->now_ms);
    bool read = sqlite3_step(row) == SQLITE_ROW;
    operation->reply.next_due_ms = INT64_MAX;
    if (read && sqlite3_column_type(row, 0) != SQLITE_NULL)
        operation->reply.next_due_ms = sqlite3_column_int64(row, 0);
    database_release(row);
    return read;
}

static bool run_due(struct batch *batch, struct operation *operation)
{
    sqlite3_stmt *row = database_statement(batch->database, STATEMENT_OUTBOX_DUE);
    database_bind_text(row, 1, operation->id);
    sqlite3_bind_int64(row, 2, batch->now_ms);
    sqlite3_bind_int64(row, 3, (int64_t)operation->limit);
    struct store_delivery *deliveries = memory_alloc_array(operation->limit, sizeof *deliveries);
    operation->reply.deliveries = deliveries;
    int code;
    while ((code = sqlite3_step(row)) == SQLITE_ROW) {
        struct store_delivery *delivery = &deliveries[operation->reply.delivery_count++];
        *delivery = read_delivery(row);
        if (sqlite3_column_type(row, REFERENCE_COLUMN) != SQLITE_NULL)
            delivery->reference = database_take_text(row, REFERENCE_COLUMN);
    }
    database_release(row);
    return code == SQLITE_DONE && find_next(batch, operation);
}

/* ---- how an attempt went ---- */

static sqlite3_stmt *of_delivery(struct batch *batch, const struct operation *operation,
                                 enum statement which)
{
    sqlite3_stmt *row = database_statement(batch->database, which);
    sqlite3_bind_int64(row, 1, operation->sequence);
    return row;
}

static bool keep_reference(struct batch *batch, const struct operation *operation)
{
    sqlite3_stmt *row = of_delivery(batch, operation, STATEMENT_OUTBOX_THREAD_PUT);
    database_bind_text(row, 2, operation->reason);
    return database_run(row);
}

/* A delivery is gone already if its target is no longer configured. */
static bool run_delivered(struct batch *batch, struct operation *operation)
{
    if (operation->reason && !keep_reference(batch, operation))
        return false;
    return database_run(of_delivery(batch, operation, STATEMENT_OUTBOX_THREAD_END)) &&
           database_run(of_delivery(batch, operation, STATEMENT_OUTBOX_DELETE));
}

static bool run_postpone(struct batch *batch, struct operation *operation)
{
    sqlite3_stmt *row = of_delivery(batch, operation, STATEMENT_OUTBOX_POSTPONE);
    sqlite3_bind_int64(row, 2, operation->time_ms);
    return database_run(row);
}

/* An anchor that did not arrive is about no task. */
static bool note_given_up(struct batch *batch, const struct store_delivery *delivery,
                          const char *reason)
{
    struct task *task = delivery->task;
    task->updated_ms = batch->now_ms; /* the entry's time */
    if (delivery->anchor)
        *task->id = '\0';
    const char *state = delivery->anchor ? "" : task_state_name(task->state);
    return audit_append(batch, task, "notification_given_up", state, AUDIT_GATEWAY, reason);
}

static bool run_give_up(struct batch *batch, struct operation *operation)
{
    sqlite3_stmt *row = of_delivery(batch, operation, STATEMENT_OUTBOX_GET);
    struct store_delivery delivery = {.task = NULL};
    int code = sqlite3_step(row);
    if (code == SQLITE_ROW)
        delivery = read_delivery(row);
    database_release(row);
    if (!delivery.task)
        return code == SQLITE_DONE;
    bool done = note_given_up(batch, &delivery, operation->reason) &&
                database_run(of_delivery(batch, operation, STATEMENT_OUTBOX_DELETE));
    free(delivery.anchor);
    task_unref(delivery.task);
    return done;
}

const struct operation_kind operation_outbox_configure = {"outbox configure", true, run_configure};
const struct operation_kind operation_outbox_due = {"outbox due", false, run_due};
const struct operation_kind operation_outbox_delivered = {"outbox delivered", true, run_delivered};
const struct operation_kind operation_outbox_postpone = {"outbox postpone", true, run_postpone};
const struct operation_kind operation_outbox_give_up = {"outbox give up", true, run_give_up};
