/* Records, and their lists of columns. */
#include "record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "taskgate/core/assert.h"
#include "taskgate/core/memory.h"
#include "taskgate/store/records.h"

/*
 * The columns of tables that a structure has whole: COLUMN(kind, column), of the field of the same
 * name, but for the sequence, which is the first of most.
 */

/* The arguments are the last: what walks over grants is without them, because they may be long. */
#define GRANT_COLUMNS(COLUMN)                                                                      \
    COLUMN(TEXT, id)                                                                               \
    COLUMN(TEXT, task_id)                                                                          \
    COLUMN(TEXT, owner)                                                                            \
    COLUMN(TEXT, principal)                                                                        \
    COLUMN(TEXT, source)                                                                           \
    COLUMN(TEXT, tool)                                                                             \
    COLUMN(TEXT, workflow)                                                                         \
    COLUMN(TEXT, rule)                                                                             \
    COLUMN(TEXT, rule_digest)                                                                      \
    COLUMN(TEXT, definition_digest)                                                                \
    COLUMN(TEXT, bound_digest)                                                                     \
    COLUMN(TEXT, terms)                                                                            \
    COLUMN(TEXT, votes)                                                                            \
    COLUMN(TEXT, reason)                                                                           \
    COLUMN(NUMBER, calls)                                                                          \
    COLUMN(NUMBER, used)                                                                           \
    COLUMN(NUMBER, for_ms)                                                                         \
    COLUMN(NUMBER, created_ms)                                                                     \
    COLUMN(NUMBER, until_ms)                                                                       \
    COLUMN(NUMBER, ended_ms)                                                                       \
    COLUMN(TEXT, end_cause)                                                                        \
    COLUMN(TEXT, ended_by)                                                                         \
    COLUMN(TEXT, end_reason)                                                                       \
    COLUMN(TEXT, arguments)

#define BLOCK_COLUMNS(COLUMN)                                                                      \
    COLUMN(TEXT, id)                                                                               \
    COLUMN(TEXT, task_id)                                                                          \
    COLUMN(TEXT, scope)                                                                            \
    COLUMN(TEXT, owner)                                                                            \
    COLUMN(TEXT, source)                                                                           \
    COLUMN(TEXT, client)                                                                           \
    COLUMN(TEXT, principal)                                                                        \
    COLUMN(TEXT, reason)                                                                           \
    COLUMN(TEXT, person)                                                                           \
    COLUMN(NUMBER, created_ms)                                                                     \
    COLUMN(NUMBER, until_ms)                                                                       \
    COLUMN(NUMBER, ended_ms)                                                                       \
    COLUMN(TEXT, ended_by)

/* The texts are the last two: lists are without them. */
#define DEFINITION_COLUMNS(COLUMN)                                                                 \
    COLUMN(TEXT, id)                                                                               \
    COLUMN(TEXT, source)                                                                           \
    COLUMN(TEXT, kind)                                                                             \
    COLUMN(TEXT, name)                                                                             \
    COLUMN(TEXT, digest)                                                                           \
    COLUMN(TEXT, accepted)                                                                         \
    COLUMN(TEXT, counted)                                                                          \
    COLUMN(TEXT, difference)                                                                       \
    COLUMN(UNSIGNED, flags)                                                                        \
    COLUMN(FLAG, is_changed)                                                                       \
    COLUMN(NUMBER, at_ms)                                                                          \
    COLUMN(TEXT, text)                                                                             \
    COLUMN(TEXT, accepted_text)

#define SESSION_COLUMNS(COLUMN)                                                                    \
    COLUMN(TEXT, source)                                                                           \
    COLUMN(TEXT, id_digest)                                                                        \
    COLUMN(TEXT, version)                                                                          \
    COLUMN(TEXT, client_name)                                                                      \
    COLUMN(TEXT, client_version)                                                                   \
    COLUMN(TEXT, client_capabilities)                                                              \
    COLUMN(FLAG, upstream_tasks)                                                                   \
    COLUMN(FLAG, upstream_sse)                                                                     \
    COLUMN(NUMBER, seen_ms)                                                                        \
    COLUMN(TEXT, owner)

#define SIGN_IN_COLUMNS(COLUMN)                                                                    \
    COLUMN(TEXT, digest)                                                                           \
    COLUMN(TEXT, person)                                                                           \
    COLUMN(TEXT, issuer)                                                                           \
    COLUMN(TEXT, claims)                                                                           \
    COLUMN(NUMBER, created_ms)                                                                     \
    COLUMN(NUMBER, until_ms)

/* The order of its INSERT. */
#define NOTICE_COLUMNS(COLUMN)                                                                     \
    COLUMN(TEXT, task_id)                                                                          \
    COLUMN(TEXT, source)                                                                           \
    COLUMN(TEXT, tool)                                                                             \
    COLUMN(TEXT, workflow)                                                                         \
    COLUMN(TEXT, principal)                                                                        \
    COLUMN(TEXT, arguments_digest)                                                                 \
    COLUMN(TEXT, decided_by)                                                                       \
    COLUMN(TEXT, reason)                                                                           \
    COLUMN(TEXT, status_message)                                                                   \
    COLUMN(TEXT, arguments)                                                                        \
    COLUMN(NUMBER, at_ms)                                                                          \
    COLUMN(NUMBER, state)                                                                          \
    COLUMN(NUMBER, created_ms)                                                                     \
    COLUMN(NUMBER, decide_by_ms)                                                                   \
    COLUMN(NUMBER, decided_ms)                                                                     \
    COLUMN(NUMBER, is_emergency)                                                                   \
    COLUMN(TEXT, anchor)

#define DELIVERY_ROW_COLUMNS(COLUMN)                                                               \
    COLUMN(TEXT, id)                                                                               \
    COLUMN(NUMBER, notice)                                                                         \
    COLUMN(TEXT, target)                                                                           \
    COLUMN(TEXT, task_id)                                                                          \
    COLUMN(NUMBER, event)                                                                          \
    COLUMN(NUMBER, attempts)                                                                       \
    COLUMN(NUMBER, due_ms)

#define TARGET_COLUMNS(COLUMN)                                                                     \
    COLUMN(TEXT, key)                                                                              \
    COLUMN(NUMBER, events)                                                                         \
    COLUMN(NUMBER, with_arguments)

/* A token that a server accepted in a session. */
#define PAIR_COLUMNS(COLUMN)                                                                       \
    COLUMN(TEXT, source)                                                                           \
    COLUMN(TEXT, session_digest)                                                                   \
    COLUMN(TEXT, token_digest)                                                                     \
    COLUMN(NUMBER, accepted_ms)

#define TALLY_COLUMNS(COLUMN)                                                                      \
    COLUMN(TEXT, source)                                                                           \
    COLUMN(TEXT, tool)                                                                             \
    COLUMN(TEXT, owner)                                                                            \
    COLUMN(NUMBER, day_ms)                                                                         \
    COLUMN(NUMBER, approved)                                                                       \
    COLUMN(NUMBER, rejected)                                                                       \
    COLUMN(NUMBER, expired)                                                                        \
    COLUMN(NUMBER, failed)

#define KEPT_COLUMNS(COLUMN)                                                                       \
    COLUMN(NUMBER, sequence)                                                                       \
    COLUMN(TEXT, arguments)                                                                        \
    COLUMN(NUMBER, until_ms)

#define ANCHOR_COLUMNS(COLUMN)                                                                     \
    COLUMN(NUMBER, sequence)                                                                       \
    COLUMN(TEXT, hash)                                                                             \
    COLUMN(NUMBER, at_ms)                                                                          \
    COLUMN(TEXT, signature)                                                                        \
    COLUMN(NUMBER, is_start)

#define MESSAGE_COLUMNS(COLUMN)                                                                    \
    COLUMN(TEXT, target)                                                                           \
    COLUMN(TEXT, task_id)                                                                          \
    COLUMN(TEXT, reference)                                                                        \
    COLUMN(TEXT, seen)

/* Of a task's trail, as clients see it. */
#define ENTRY_COLUMNS(COLUMN)                                                                      \
    COLUMN(NUMBER, at_ms)                                                                          \
    COLUMN(TEXT, task_id)                                                                          \
    COLUMN(TEXT, event)                                                                            \
    COLUMN(TEXT, from_state)                                                                       \
    COLUMN(TEXT, to_state)                                                                         \
    COLUMN(TEXT, actor_kind)                                                                       \
    COLUMN(TEXT, actor_name)                                                                       \
    COLUMN(TEXT, reason)

/* A task: COLUMN(kind, column, field). The long texts of clients, and the outcome, are beside it.
 */
#define TASK_COLUMNS(COLUMN)                                                                       \
    COLUMN(FIXED, id, id)                                                                          \
    COLUMN(UNSIGNED, state, state)                                                                 \
    COLUMN(TASK_TEXT, source, source)                                                              \
    COLUMN(TASK_TEXT, owner, owner)                                                                \
    COLUMN(TASK_TEXT, session, session)                                                            \
    COLUMN(TASK_TEXT, principal, principal)                                                        \
    COLUMN(TASK_TEXT, tool, tool)                                                                  \
    COLUMN(TASK_TEXT, workflow, workflow)                                                          \
    COLUMN(TASK_TEXT, action, action)                                                              \
    COLUMN(FIXED, arguments_digest, arguments_digest)                                              \
    COLUMN(FIXED, definition_digest, definition_digest)                                            \
    COLUMN(TASK_TEXT, progress_token, progress_token)                                              \
    COLUMN(FLAG, on_result, on_result)                                                             \
    COLUMN(FLAG, accelerated, accelerated)                                                         \
    COLUMN(FLAG, keep_task, keep_task)                                                             \
    COLUMN(NUMBER, ttl_ms, ttl_ms)                                                                 \
    COLUMN(NUMBER, poll_interval_ms, poll_interval_ms)                                             \
    COLUMN(NUMBER, created_ms, created_ms)                                                         \
    COLUMN(NUMBER, decide_by_ms, decide_by_ms)                                                     \
    COLUMN(NUMBER, updated_ms, updated_ms)                                                         \
    COLUMN(NUMBER, execute_by_ms, execute_by_ms)                                                   \
    COLUMN(NUMBER, decided_ms, decided_ms)                                                         \
    COLUMN(NUMBER, ended_ms, ended_ms)                                                             \
    COLUMN(TASK_TEXT, decided_by, decided_by)                                                      \
    COLUMN(TASK_TEXT, reason, reason)                                                              \
    COLUMN(TASK_TEXT, status_message, status_message)                                              \
    COLUMN(TASK_TEXT, upstream_task, upstream_task)                                                \
    COLUMN(UNSIGNED, failure, failure)                                                             \
    COLUMN(UNSIGNED, outcome, outcome)                                                             \
    COLUMN(TASK_TEXT, client_name, client_name)                                                    \
    COLUMN(TASK_TEXT, client_version, client_version)                                              \
    COLUMN(FLAG, promoted, promoted)                                                               \
    COLUMN(NUMBER, retention_ms, retention_ms)                                                     \
    COLUMN(NUMBER, expired_retention_ms, expired_retention_ms)                                     \
    COLUMN(FIXED, request_digest, request_digest)                                                  \
    COLUMN(FIXED, headers_digest, headers_digest)                                                  \
    COLUMN(TASK_TEXT, refused_credentials, refused_credentials)                                    \
    COLUMN(TASK_TEXT, rule, rule)                                                                  \
    COLUMN(FIXED, policy_digest, policy_digest)                                                    \
    COLUMN(FIXED, owner_email, owner_email)                                                        \
    COLUMN(TASK_TEXT, terms, terms)                                                                \
    COLUMN(TASK_TEXT, votes, votes)                                                                \
    COLUMN(FIXED, rule_digest, rule_digest)                                                        \
    COLUMN(FIXED, bound_digest, bound_digest)                                                      \
    COLUMN(TASK_TEXT, grant_facts, grant)                                                          \
    COLUMN(FIXED, original_digest, original_digest)                                                \
    COLUMN(FIXED, original_request_digest, original_request_digest)                                \
    COLUMN(TASK_TEXT, trace, trace)                                                                \
    COLUMN(TASK_TEXT, maker, maker)                                                                \
    COLUMN(NUMBER, started_ms, started_ms)                                                         \
    COLUMN(TASK_TEXT, brief, brief)                                                                \
    COLUMN(FLAG, promised, promised)

/* Of a call that waits, for a list of all of them: what its row and the verdict on a vote need. */
#define WAITING_COLUMNS(COLUMN)                                                                    \
    COLUMN(FIXED, id, id)                                                                          \
    COLUMN(TASK_TEXT, source, source)                                                              \
    COLUMN(TASK_TEXT, owner, owner)                                                                \
    COLUMN(TASK_TEXT, principal, principal)                                                        \
    COLUMN(TASK_TEXT, tool, tool)                                                                  \
    COLUMN(TASK_TEXT, workflow, workflow)                                                          \
    COLUMN(TASK_TEXT, rule, rule)                                                                  \
    COLUMN(FIXED, request_digest, request_digest)                                                  \
    COLUMN(FIXED, definition_digest, definition_digest)                                            \
    COLUMN(FIXED, owner_email, owner_email)                                                        \
    COLUMN(TASK_TEXT, maker, maker)                                                                \
    COLUMN(TASK_TEXT, terms, terms)                                                                \
    COLUMN(TASK_TEXT, votes, votes)                                                                \
    COLUMN(TASK_TEXT, brief, brief)                                                                \
    COLUMN(NUMBER, created_ms, created_ms)                                                         \
    COLUMN(NUMBER, decide_by_ms, decide_by_ms)

/* ---- records ---- */

#define COLUMN_OF(kind, column) {#column, COLUMN_##kind, offsetof(STRUCTURE, column), 0},
#define COUNT_OF(columns) (sizeof(columns) / sizeof(struct column))

#define STRUCTURE struct store_grant
static const struct column grant_columns[] = {GRANT_COLUMNS(COLUMN_OF)};
const struct record grant_record = {"grant", sizeof(STRUCTURE), true, grant_columns,
                                    COUNT_OF(grant_columns)};
const struct record grant_list_record = {"grant_list", sizeof(STRUCTURE), true, grant_columns,
                                         COUNT_OF(grant_columns) - 1};
#undef STRUCTURE

#define STRUCTURE struct store_block
static const struct column block_columns[] = {BLOCK_COLUMNS(COLUMN_OF)};
const struct record block_record = {"block", sizeof(STRUCTURE), true, block_columns,
                                    COUNT_OF(block_columns)};
#undef STRUCTURE

#define STRUCTURE struct store_definition
static const struct column definition_columns[] = {DEFINITION_COLUMNS(COLUMN_OF)};
const struct record definition_record = {"definition", sizeof(STRUCTURE), true, definition_columns,
                                         COUNT_OF(definition_columns)};
const struct record definition_list_record = {"definition_list", sizeof(STRUCTURE), true,
                                              definition_columns, COUNT_OF(definition_columns) - 2};
#undef STRUCTURE

#define STRUCTURE struct store_session
static const struct column session_columns[] = {SESSION_COLUMNS(COLUMN_OF)};
const struct record session_record = {"session", sizeof(STRUCTURE), false, session_columns,
                                      COUNT_OF(session_columns)};
#undef STRUCTURE

#define STRUCTURE struct store_sign_in
static const struct column sign_in_columns[] = {SIGN_IN_COLUMNS(COLUMN_OF)};
const struct record sign_in_record = {"sign_in", sizeof(STRUCTURE), false, sign_in_columns,
                                      COUNT_OF(sign_in_columns)};
#undef STRUCTURE

#define STRUCTURE struct store_message
static const struct column message_columns[] = {MESSAGE_COLUMNS(COLUMN_OF)};
const struct record message_record = {"outbox_thread", sizeof(STRUCTURE), false, message_columns,
                                      COUNT_OF(message_columns)};
#undef STRUCTURE

#define STRUCTURE struct store_audit_entry
static const struct column entry_columns[] = {ENTRY_COLUMNS(COLUMN_OF)};
const struct record entry_record = {"audit_entry", sizeof(STRUCTURE), true, entry_columns,
                                    COUNT_OF(entry_columns)};
#undef STRUCTURE

#define COLUMN_OF_TASK(kind, column, field)                                                        \
    {#column, COLUMN_##kind, offsetof(struct task, field), sizeof(((struct task *)NULL)->field)},
static const struct column task_columns[] = {TASK_COLUMNS(COLUMN_OF_TASK)};
const struct record task_record = {"task", sizeof(struct task), false, task_columns,
                                   COUNT_OF(task_columns)};
static const struct column waiting_columns[] = {WAITING_COLUMNS(COLUMN_OF_TASK)};
const struct record task_waiting_record = {"task_waiting", sizeof(struct task), false,
                                           waiting_columns, COUNT_OF(waiting_columns)};

/* No structure has these, only statements. */
#define COLUMN_NAMED(kind, column) {#column, COLUMN_##kind, 0, 0},
#define COLUMN_NAMED_OF_TASK(kind, column, field) {#column, COLUMN_##kind, 0, 0},
/* What SQLite's table of tasks has, and what PostgreSQL's has. */
static const struct column task_row_columns[] = {{"deadline_ms", COLUMN_NUMBER, 0, 0},
                                                 {"purge_ms", COLUMN_NUMBER, 0, 0},
                                                 TASK_COLUMNS(COLUMN_NAMED_OF_TASK)};
static const struct record task_row_record = {"task_row", 0, false, task_row_columns,
                                              COUNT_OF(task_row_columns)};
static const struct column task_whole_columns[] = {
    {"deadline_ms", COLUMN_NUMBER, 0, 0},
    {"purge_ms", COLUMN_NUMBER, 0, 0},
    {"bytes", COLUMN_NUMBER, 0, 0},
    TASK_COLUMNS(COLUMN_NAMED_OF_TASK){"arguments", COLUMN_TEXT, 0, 0},
    {"meta", COLUMN_TEXT, 0, 0},
    {"other_params", COLUMN_TEXT, 0, 0},
    {"original_arguments", COLUMN_TEXT, 0, 0},
    {"shown", COLUMN_TEXT, 0, 0},
    {"body", COLUMN_TEXT, 0, 0},
    {"outcome_body", COLUMN_TEXT, 0, 0},
    {"mirrored_headers", COLUMN_TEXT, 0, 0},
};
static const struct record task_whole_record = {"task_whole", 0, false, task_whole_columns,
                                                COUNT_OF(task_whole_columns)};
_Static_assert(COUNT_OF(task_whole_columns) + 2 <= VALUES_MAX, "a statement takes the whole task");
static const struct column notice_columns[] = {NOTICE_COLUMNS(COLUMN_NAMED)};
static const struct record notice_record = {"outbox_notice", 0, true, notice_columns,
                                            COUNT_OF(notice_columns)};
static const struct column delivery_columns[] = {DELIVERY_ROW_COLUMNS(COLUMN_NAMED)};
static const struct record delivery_record = {"outbox_delivery", 0, true, delivery_columns,
                                              COUNT_OF(delivery_columns)};
static const struct column target_columns[] = {TARGET_COLUMNS(COLUMN_NAMED)};
static const struct record target_record = {"outbox_target", 0, false, target_columns,
                                            COUNT_OF(target_columns)};
static const struct column pair_columns[] = {PAIR_COLUMNS(COLUMN_NAMED)};
static const struct record pair_record = {"pair", 0, false, pair_columns, COUNT_OF(pair_columns)};
static const struct column tally_columns[] = {TALLY_COLUMNS(COLUMN_NAMED)};
static const struct record tally_record = {"tally", 0, false, tally_columns,
                                           COUNT_OF(tally_columns)};
static const struct column kept_columns[] = {KEPT_COLUMNS(COLUMN_NAMED)};
static const struct record kept_record = {"audit_kept", 0, false, kept_columns,
                                          COUNT_OF(kept_columns)};
static const struct column anchor_columns[] = {ANCHOR_COLUMNS(COLUMN_NAMED)};
static const struct record anchor_record = {"audit_anchor", 0, false, anchor_columns,
                                            COUNT_OF(anchor_columns)};
static const struct column audit_columns[] = {
#define AUDIT_COLUMN(column, key, kind) {#column, COLUMN_TEXT, 0, 0},
#include "audit_columns.h"
#undef AUDIT_COLUMN
};
static const struct record audit_record = {"audit", 0, false, audit_columns,
                                           COUNT_OF(audit_columns)};

static const struct record *const records[] = {&grant_record,
                                               &grant_list_record,
                                               &block_record,
                                               &definition_record,
                                               &definition_list_record,
                                               &session_record,
                                               &sign_in_record,
                                               &message_record,
                                               &entry_record,
                                               &notice_record,
                                               &delivery_record,
                                               &target_record,
                                               &pair_record,
                                               &tally_record,
                                               &kept_record,
                                               &anchor_record,
                                               &audit_record,
                                               &task_record,
                                               &task_waiting_record,
                                               &task_row_record,
                                               &task_whole_record,
                                               NULL};

const struct record *record_of(struct str table)
{
    const struct record *const *record = records;
    while (*record && !str_equal(table, str_from((*record)->table)))
        record++;
    return *record;
}

static void *field_at(const struct column *column, const void *structure)
{
    return (char *)structure + column->offset;
}

static void read_column(const struct column *column, const struct value *value, void *field)
{
    switch (column->kind) {
    case COLUMN_TEXT:
        *(char **)field = memory_copy_str(value->text);
        break;
    case COLUMN_TASK_TEXT:
        task_set_text(field, value->text);
        break;
    case COLUMN_FIXED:
        snprintf(field, column->size, "%.*s", STR_ARGS(value->text));
        break;
    case COLUMN_NUMBER:
        *(int64_t *)field = value->number;
        break;
    case COLUMN_FLAG:
        *(bool *)field = value->number != 0;
        break;
    case COLUMN_UNSIGNED:
        *(unsigned *)field = (unsigned)value->number;
        break;
    }
}

static struct value value_of(const struct column *column, const void *field)
{
    switch (column->kind) {
    case COLUMN_NUMBER:
        return NUMBER(*(const int64_t *)field);
    case COLUMN_FLAG:
        return NUMBER(*(const bool *)field);
    case COLUMN_UNSIGNED:
        return NUMBER(*(const unsigned *)field);
    case COLUMN_FIXED:
        return TEXT((const char *)field);
    case COLUMN_TEXT:
    case COLUMN_TASK_TEXT:
        break;
    }
    return TEXT(*(char *const *)field);
}

void record_read(const struct record *record, const struct value *row, void *into)
{
    if (record->has_sequence)
        *(int64_t *)into = row++->number;
    for (size_t i = 0; i < record->count; i++)
        read_column(&record->columns[i], &row[i], field_at(&record->columns[i], into));
}

size_t record_write(const struct record *record, const void *from, struct value *values)
{
    ASSERT_NUMBERS(record->count, <=, VALUES_MAX);
    for (size_t i = 0; i < record->count; i++)
        values[i] = value_of(&record->columns[i], field_at(&record->columns[i], from));
    return record->count;
}

void *record_copy(const struct record *record, const void *from)
{
    ASSERT_NUMBERS(record->bytes, >, 0);
    void *copy = memory_alloc(record->bytes);
    memcpy(copy, from, record->bytes);
    for (size_t i = 0; i < record->count; i++) {
        const struct column *column = &record->columns[i];
        const struct value value = value_of(column, field_at(column, from));
        read_column(column, &value, field_at(column, copy));
    }
    return copy;
}

void record_destroy(const struct record *record, void *structure)
{
    if (structure)
        record_finish(record, structure);
    free(structure);
}

void record_finish(const struct record *record, void *structure)
{
    for (size_t i = 0; i < record->count; i++) {
        if (record->columns[i].kind == COLUMN_TEXT)
            free(*(char **)field_at(&record->columns[i], structure));
    }
    memset(structure, 0, record->bytes);
}

void *record_list_add(struct record_list *list)
{
    const size_t bytes = list->record->bytes;
    ASSERT_NUMBERS(bytes, >, 0); /* it is a record of a structure */
    ASSERT_NUMBERS(list->count, <=, list->capacity);
    if (list->count == list->capacity) {
        list->capacity = list->capacity ? 2 * list->capacity : 8;
        list->items = memory_grow_array(list->items, list->capacity, bytes);
    }
    return memset((char *)list->items + list->count++ * bytes, 0, bytes);
}

void record_list_finish(struct record_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        record_finish(list->record, (char *)list->items + i * list->record->bytes);
    free(list->items);
    list->items = NULL;
    list->count = list->capacity = 0;
}

void id_list_add(struct id_list *list, struct str id)
{
    if (list->count == list->capacity) {
        list->capacity = list->capacity ? 2 * list->capacity : 16;
        list->ids = memory_grow_array(list->ids, list->capacity, sizeof *list->ids);
    }
    ASSERT_NUMBERS(list->count, <, list->capacity);
    snprintf(list->ids[list->count++], TASK_ID_BYTES, "%.*s", STR_ARGS(id));
}
