/* The rows of the outbox: targets, notices, and a delivery of a notice for each target. */
#include <stdio.h>
#include <stdlib.h>

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

static bool set_targets(struct database *database, const struct store_outbox_target *targets,
                        size_t count)
{
    bool done = connection_write(database, STATEMENT_OUTBOX_TARGET_CLEAR, NO_VALUES);
    database->known.has_targets = false;
    for (size_t i = 0; done && i < count; i++)
        done = connection_write(database, STATEMENT_OUTBOX_TARGET_INSERT,
                                VALUES(TEXT(targets[i].key), NUMBER(targets[i].events),
                                       NUMBER(targets[i].with_arguments)));
    return done;
}

/* ---- notices ---- */

static const unsigned inserts[] = {
    [OUTBOX_WANTING] = STATEMENT_OUTBOX_INSERT,
    [OUTBOX_OTHERS] = STATEMENT_OUTBOX_INSERT_OTHERS,
};

static enum outbox_wanted wanted(struct database *database, enum outbox_whom whom, unsigned events)
{
    enum outbox_wanted wanted = OUTBOX_NOTHING;
    const struct known *known = &database->known;
    if (!known_ask(database, STATEMENT_OUTBOX_TARGETS, SENT_TARGETS, &known->has_targets))
        return OUTBOX_FAILED;
    for (size_t i = 0; i < known->target_count; i++) {
        const struct known_target *target = &known->targets[i];
        bool wants = (target->events & events) != 0;
        if (wants != (whom == OUTBOX_WANTING))
            continue;
        if (wanted != OUTBOX_WITH_ARGUMENTS)
            wanted = target->with_arguments ? OUTBOX_WITH_ARGUMENTS : OUTBOX_NOTICE;
    }
    return wanted;
}

static bool insert(struct database *database, enum outbox_whom whom, const struct outbox_note *note)
{
    const struct task *task = note->task;
    return connection_write(
        database, inserts[whom],
        VALUES(TEXT(task->id), TEXT(task->source), TEXT(task->tool), TEXT(task->workflow),
               TEXT(task->principal), TEXT(task->arguments_digest), TEXT(task->decided_by),
               TEXT(task->reason), TEXT(task->status_message), TEXT(note->arguments),
               NUMBER(note->at_ms), NUMBER(task->state), NUMBER(task->created_ms),
               NUMBER(task->decide_by_ms), NUMBER(task->decided_ms), NUMBER(note->is_emergency),
               TEXT(note->anchor), NUMBER(note->events)));
}

/* ---- what is due ---- */

static void take(char **field, const PGresult *rows, int row, int column)
{
    task_set_text(field, row_bytes(rows, row, column));
}

static struct store_delivery read_delivery(const PGresult *rows, int row)
{
    struct store_delivery delivery = {
        .sequence = row_number(rows, row, 0),
        .event = (unsigned)row_number(rows, row, 2),
        .attempts = row_number(rows, row, 3),
        .at_ms = row_number(rows, row, 4),
        .task = task_create((enum task_state)row_number(rows, row, 6)),
        .is_emergency = row_number(rows, row, EMERGENCY_COLUMN) != 0,
    };
    struct task *task = delivery.task;
    row_copy(delivery.id, sizeof delivery.id, rows, row, 1);
    row_copy(task->id, sizeof task->id, rows, row, 5);
    take(&task->source, rows, row, 7);
    take(&task->tool, rows, row, 8);
    take(&task->workflow, rows, row, 9);
    take(&task->principal, rows, row, 10);
    row_copy(task->arguments_digest, sizeof task->arguments_digest, rows, row, 11);
    take(&task->decided_by, rows, row, 12);
    take(&task->reason, rows, row, 13);
    take(&task->status_message, rows, row, 14);
    take(&task->arguments, rows, row, 15);
    task->created_ms = row_number(rows, row, 16);
    task->decide_by_ms = row_number(rows, row, 17);
    task->decided_ms = row_number(rows, row, 18);
    take(&task->shown, rows, row, SHOWN_COLUMN);
    take(&task->owner, rows, row, OWNER_COLUMN);
    take(&task->terms, rows, row, TERMS_COLUMN);
    take(&task->votes, rows, row, VOTES_COLUMN);
    take(&task->meta, rows, row, META_COLUMN);
    take(&task->other_params, rows, row, OTHER_PARAMS_COLUMN);
    row_copy(task->request_digest, sizeof task->request_digest, rows, row, REQUEST_DIGEST_COLUMN);
    if (row_bytes(rows, row, ANCHOR_COLUMN).length > 0)
        delivery.anchor = row_text(rows, row, ANCHOR_COLUMN);
    return delivery;
}

static bool find_due(struct database *database, const char *target, int64_t now_ms, size_t limit,
                     struct store_delivery *deliveries, size_t *count)
{
    PGresult *rows = connection_read(database, STATEMENT_OUTBOX_DUE,
                                     VALUES(TEXT(target), NUMBER(now_ms), NUMBER((int64_t)limit)));
    for (int i = 0; rows && i < PQntuples(rows); i++) {
        struct store_delivery *delivery = &deliveries[(*count)++];
        *delivery = read_delivery(rows, i);
        if (!PQgetisnull(rows, i, REFERENCE_COLUMN))
            delivery->reference = row_text(rows, i, REFERENCE_COLUMN);
    }
    PQclear(rows);
    return rows != NULL;
}

static bool find_overdue(struct database *database, int64_t at_ms, size_t limit, int64_t *sequences,
                         size_t *count)
{
    PGresult *rows = connection_read(database, STATEMENT_OUTBOX_OVERDUE,
                                     VALUES(NUMBER(at_ms), NUMBER((int64_t)limit)));
    for (int i = 0; rows && i < PQntuples(rows); i++)
        sequences[(*count)++] = row_number(rows, i, 0);
    PQclear(rows);
    return rows != NULL;
}

static bool next_due(struct database *database, const char *target, int64_t now_ms, int64_t *due_ms)
{
    return rows_take_number(
        connection_read(database, STATEMENT_OUTBOX_NEXT, VALUES(TEXT(target), NUMBER(now_ms))),
        due_ms);
}

static enum row_result get(struct database *database, int64_t sequence,
                           struct store_delivery *delivery)
{
    PGresult *rows = connection_read(database, STATEMENT_OUTBOX_GET, VALUES(NUMBER(sequence)));
    enum row_result result = rows_any(rows);
    if (result == ROW_FOUND)
        *delivery = read_delivery(rows, 0);
    PQclear(rows);
    return result;
}

/* ---- how an attempt went ---- */

static bool set_reference(struct database *database, int64_t sequence, const char *reference)
{
    return connection_write(database, STATEMENT_OUTBOX_THREAD_PUT,
                            VALUES(NUMBER(sequence), TEXT(reference)));
}

static bool postpone(struct database *database, int64_t sequence, int64_t due_ms)
{
    return connection_write(database, STATEMENT_OUTBOX_POSTPONE,
                            VALUES(NUMBER(sequence), NUMBER(due_ms)));
}

static bool remove_delivery(struct database *database, int64_t sequence)
{
    return connection_write(database, STATEMENT_OUTBOX_THREAD_END, VALUES(NUMBER(sequence))) &&
           connection_write(database, STATEMENT_OUTBOX_DELETE, VALUES(NUMBER(sequence)));
}

/* ---- what endpoints keep ---- */

static bool take_messages(PGresult *rows, struct store_message **messages, size_t *count)
{
    if (!rows)
        return false;
    *count = (size_t)PQntuples(rows);
    *messages = *count > 0 ? memory_alloc_array(*count, sizeof **messages) : NULL;
    for (int i = 0; i < (int)*count; i++)
        (*messages)[i] = (struct store_message){
            .target = row_text(rows, i, 0),
            .task_id = row_text(rows, i, 1),
            .reference = row_text(rows, i, 2),
            .seen = row_text(rows, i, 3),
        };
    PQclear(rows);
    return true;
}

static bool find_messages(struct database *database, const char *target, size_t limit,
                          struct store_message **messages, size_t *count)
{
    return take_messages(connection_read(database, STATEMENT_OUTBOX_MESSAGES,
                                         VALUES(TEXT(target), NUMBER((int64_t)limit))),
                         messages, count);
}

static bool find_messages_of(struct database *database, const char *task_id,
                             struct store_message **messages, size_t *count)
{
    return take_messages(connection_read(database, STATEMENT_OUTBOX_MESSAGES_OF,
                                         VALUES(TEXT(task_id), NUMBER(MOST_OF_TASK))),
                         messages, count);
}

static bool see(struct database *database, const char *task_id, const char *target,
                const char *seen)
{
    return connection_write(database, STATEMENT_OUTBOX_SEE,
                            VALUES(TEXT(task_id), TEXT(target), TEXT(seen)));
}

const struct outbox_rows postgres_outbox_rows = {
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
