/* The rows of the outbox: targets, notices, and a delivery of a notice for each target. */
#include <stdio.h>

#include "rows.h"
#include "taskgate/core/memory.h"

/* Of a notice, the last ones. */
#define EMERGENCY_COLUMN 19
#define ANCHOR_COLUMN 20
#define SHOWN_COLUMN 21
#define TERMS_COLUMN 22
#define VOTES_COLUMN 23
#define META_COLUMN 24
#define OTHER_PARAMS_COLUMN 25
#define REQUEST_DIGEST_COLUMN 26
#define OWNER_COLUMN 27
/* Of STATEMENT_OUTBOX_DUE, behind those of the notice. */
#define REFERENCE_COLUMN 28
#define MOST_OF_TASK 100

/* ---- whom to tell ---- */

static bool insert_target(struct database *database, const struct store_outbox_target *target)
{
    sqlite3_stmt *row = database_statement(database, STATEMENT_OUTBOX_TARGET_INSERT);
    database_bind_text(row, 1, target->key);
    sqlite3_bind_int64(row, 2, target->events);
    sqlite3_bind_int(row, 3, target->with_arguments);
    return database_run(row);
}

static bool set_targets(struct database *database, const struct store_outbox_target *targets,
                        size_t count)
{
    bool done = database_simple(database, STATEMENT_OUTBOX_TARGET_CLEAR);
    for (size_t i = 0; done && i < count; i++)
        done = insert_target(database, &targets[i]);
    return done;
}

/* ---- notices ---- */

static const struct {
    unsigned find, insert;
} addressees[] = {
    [OUTBOX_WANTING] = {STATEMENT_OUTBOX_WANTED, STATEMENT_OUTBOX_DELIVERY_INSERT},
    [OUTBOX_OTHERS] = {STATEMENT_OUTBOX_OTHERS, STATEMENT_OUTBOX_DELIVERY_OTHERS},
};

static enum outbox_wanted wanted(struct database *database, enum outbox_whom whom, unsigned events)
{
    enum outbox_wanted wanted = OUTBOX_FAILED;
    sqlite3_stmt *row = database_statement(database, addressees[whom].find);
    sqlite3_bind_int64(row, 1, events);
    if (sqlite3_step(row) == SQLITE_ROW) {
        wanted = sqlite3_column_int(row, 0) ? OUTBOX_WITH_ARGUMENTS : OUTBOX_NOTICE;
        if (sqlite3_column_type(row, 0) == SQLITE_NULL)
            wanted = OUTBOX_NOTHING;
    }
    database_release(row);
    return wanted;
}

static bool insert_notice(struct database *database, const struct outbox_note *note)
{
    const struct task *task = note->task;
    sqlite3_stmt *row = database_statement(database, STATEMENT_OUTBOX_NOTICE_INSERT);
    const char *const texts[] = {task->id,         task->source,    task->tool,
                                 task->workflow,   task->principal, task->arguments_digest,
                                 task->decided_by, task->reason,    task->status_message,
                                 note->arguments};
    const int64_t numbers[] = {note->at_ms,        task->state,      task->created_ms,
                               task->decide_by_ms, task->decided_ms, note->is_emergency};
    int index = 1;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        database_bind_text(row, index++, texts[i]);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sqlite3_bind_int64(row, index++, numbers[i]);
    database_bind_text(row, index, note->anchor);
    return database_run(row);
}

static bool insert(struct database *database, enum outbox_whom whom, const struct outbox_note *note)
{
    if (!insert_notice(database, note))
        return false;
    int64_t notice = sqlite3_last_insert_rowid(database->handle);
    sqlite3_stmt *row = database_statement(database, addressees[whom].insert);
    sqlite3_bind_int64(row, 1, note->events);
    sqlite3_bind_int64(row, 2, notice);
    database_bind_text(row, 3, note->task->id);
    sqlite3_bind_int64(row, 4, note->at_ms);
    return database_run(row);
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
    take(&task->shown, row, SHOWN_COLUMN);
    take(&task->owner, row, OWNER_COLUMN);
    take(&task->terms, row, TERMS_COLUMN);
    take(&task->votes, row, VOTES_COLUMN);
    take(&task->meta, row, META_COLUMN);
    take(&task->other_params, row, OTHER_PARAMS_COLUMN);
    snprintf(task->request_digest, sizeof task->request_digest, "%.*s",
             STR_ARGS(database_column_bytes(row, REQUEST_DIGEST_COLUMN)));
    if (database_column_bytes(row, ANCHOR_COLUMN).length > 0)
        delivery.anchor = database_take_text(row, ANCHOR_COLUMN);
    return delivery;
}

static bool find_due(struct database *database, const char *target, int64_t now_ms, size_t limit,
                     struct store_delivery *deliveries, size_t *count)
{
    sqlite3_stmt *row = database_statement(database, STATEMENT_OUTBOX_DUE);
    database_bind_text(row, 1, target);
    sqlite3_bind_int64(row, 2, now_ms);
    sqlite3_bind_int64(row, 3, (int64_t)limit);
    int code;
    while ((code = sqlite3_step(row)) == SQLITE_ROW) {
        struct store_delivery *delivery = &deliveries[(*count)++];
        *delivery = read_delivery(row);
        if (sqlite3_column_type(row, REFERENCE_COLUMN) != SQLITE_NULL)
            delivery->reference = database_take_text(row, REFERENCE_COLUMN);
    }
    database_release(row);
    return code == SQLITE_DONE;
}

static bool find_overdue(struct database *database, int64_t at_ms, size_t limit, int64_t *sequences,
                         size_t *count)
{
    sqlite3_stmt *row = database_statement(database, STATEMENT_OUTBOX_OVERDUE);
    sqlite3_bind_int64(row, 1, at_ms);
    sqlite3_bind_int64(row, 2, (int64_t)limit);
    int code;
    while ((code = sqlite3_step(row)) == SQLITE_ROW)
        sequences[(*count)++] = sqlite3_column_int64(row, 0);
    database_release(row);
    return code == SQLITE_DONE;
}

static bool next_due(struct database *database, const char *target, int64_t now_ms, int64_t *due_ms)
{
    sqlite3_stmt *row = database_statement(database, STATEMENT_OUTBOX_NEXT);
    database_bind_text(row, 1, target);
    sqlite3_bind_int64(row, 2, now_ms);
    return rows_read_number(row, due_ms);
}

static enum row_result get(struct database *database, int64_t sequence,
                           struct store_delivery *delivery)
{
    sqlite3_stmt *row = database_statement(database, STATEMENT_OUTBOX_GET);
    sqlite3_bind_int64(row, 1, sequence);
    enum row_result result = rows_result(sqlite3_step(row));
    if (result == ROW_FOUND)
        *delivery = read_delivery(row);
    database_release(row);
    return result;
}

/* ---- how an attempt went ---- */

static bool set_reference(struct database *database, int64_t sequence, const char *reference)
{
    sqlite3_stmt *row = database_statement(database, STATEMENT_OUTBOX_THREAD_PUT);
    sqlite3_bind_int64(row, 1, sequence);
    database_bind_text(row, 2, reference);
    return database_run(row);
}

static bool postpone(struct database *database, int64_t sequence, int64_t due_ms)
{
    sqlite3_stmt *row = database_statement(database, STATEMENT_OUTBOX_POSTPONE);
    sqlite3_bind_int64(row, 1, sequence);
    sqlite3_bind_int64(row, 2, due_ms);
    return database_run(row);
}

static bool remove_delivery(struct database *database, int64_t sequence)
{
    return rows_run_with(database, STATEMENT_OUTBOX_THREAD_END, sequence) &&
           rows_run_with(database, STATEMENT_OUTBOX_DELETE, sequence);
}

/* ---- what endpoints keep ---- */

static bool read_messages(sqlite3_stmt *row, struct store_message **messages, size_t *count)
{
    size_t capacity = 0;
    int code;
    while ((code = sqlite3_step(row)) == SQLITE_ROW) {
        if (*count == capacity) {
            capacity = capacity ? 2 * capacity : 16;
            *messages = memory_grow_array(*messages, capacity, sizeof **messages);
        }
        (*messages)[(*count)++] = (struct store_message){
            .target = database_take_text(row, 0),
            .task_id = database_take_text(row, 1),
            .reference = database_take_text(row, 2),
            .seen = database_take_text(row, 3),
        };
    }
    database_release(row);
    return code == SQLITE_DONE;
}

static bool find_messages(struct database *database, const char *target, size_t limit,
                          struct store_message **messages, size_t *count)
{
    sqlite3_stmt *row = database_statement(database, STATEMENT_OUTBOX_MESSAGES);
    database_bind_text(row, 1, target);
    sqlite3_bind_int64(row, 2, (int64_t)limit);
    return read_messages(row, messages, count);
}

static bool find_messages_of(struct database *database, const char *task_id,
                             struct store_message **messages, size_t *count)
{
    sqlite3_stmt *row = database_statement(database, STATEMENT_OUTBOX_MESSAGES_OF);
    database_bind_text(row, 1, task_id);
    sqlite3_bind_int64(row, 2, MOST_OF_TASK);
    return read_messages(row, messages, count);
}

static bool see(struct database *database, const char *task_id, const char *target,
                const char *seen)
{
    sqlite3_stmt *row = database_statement(database, STATEMENT_OUTBOX_SEE);
    database_bind_text(row, 1, task_id);
    database_bind_text(row, 2, target);
    database_bind_text(row, 3, seen);
    return database_run(row);
}

const struct outbox_rows sqlite_outbox_rows = {
    .set_targets = set_targets,
    .wanted = wanted,
    .insert = insert,
    .find_overdue = find_overdue,
    .find_due = find_due,
    .next_due = next_due,
    .get = get,
    .set_reference = set_reference,
    .postpone = postpone,
    .remove = remove_delivery,
    .find_messages = find_messages,
    .find_messages_of = find_messages_of,
    .see = see,
};
