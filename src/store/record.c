/* Records, and their lists of columns. */
#include "record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "taskgate/core/assert.h"
#include "taskgate/core/memory.h"
#include "taskgate/store/records.h"

/* ---- tables that a structure has whole, but for the sequence, which is the first of most ---- */

#define COLUMN(kind_word, field)                                                                   \
    {                                                                                              \
        .name = #field, .kind = COLUMN_##kind_word, .offset = offsetof(STRUCTURE, field),          \
        .size = sizeof(((STRUCTURE *)NULL)->field)                                                 \
    }
#define COUNT_OF(columns) (sizeof(columns) / sizeof(struct column))

#define STRUCTURE struct store_grant
/* The arguments are the last: what walks over grants is without them, because they may be long. */
static const struct column grant_columns[] = {
    COLUMN(TEXT, id),           COLUMN(TEXT, task_id),
    COLUMN(TEXT, owner),        COLUMN(TEXT, principal),
    COLUMN(TEXT, source),       COLUMN(TEXT, tool),
    COLUMN(TEXT, workflow),     COLUMN(TEXT, rule),
    COLUMN(TEXT, rule_digest),  COLUMN(TEXT, definition_digest),
    COLUMN(TEXT, bound_digest), COLUMN(TEXT, terms),
    COLUMN(TEXT, votes),        COLUMN(TEXT, reason),
    COLUMN(NUMBER, calls),      COLUMN(NUMBER, used),
    COLUMN(NUMBER, for_ms),     COLUMN(NUMBER, created_ms),
    COLUMN(NUMBER, until_ms),   COLUMN(NUMBER, ended_ms),
    COLUMN(TEXT, end_cause),    COLUMN(TEXT, ended_by),
    COLUMN(TEXT, end_reason),   COLUMN(TEXT, arguments)};
const struct record grant_record = {"grant", sizeof(STRUCTURE), true, grant_columns,
                                    COUNT_OF(grant_columns)};
const struct record grant_list_record = {"grant_list", sizeof(STRUCTURE), true, grant_columns,
                                         COUNT_OF(grant_columns) - 1};
#undef STRUCTURE

#define STRUCTURE struct store_block
static const struct column block_columns[] = {
    COLUMN(TEXT, id),           COLUMN(TEXT, task_id),    COLUMN(TEXT, scope),
    COLUMN(TEXT, owner),        COLUMN(TEXT, source),     COLUMN(TEXT, client),
    COLUMN(TEXT, principal),    COLUMN(TEXT, reason),     COLUMN(TEXT, person),
    COLUMN(NUMBER, created_ms), COLUMN(NUMBER, until_ms), COLUMN(NUMBER, ended_ms),
    COLUMN(TEXT, ended_by)};
const struct record block_record = {"block", sizeof(STRUCTURE), true, block_columns,
                                    COUNT_OF(block_columns)};
#undef STRUCTURE

#define STRUCTURE struct store_definition
/* The texts are the last two: lists are without them. */
static const struct column definition_columns[] = {
    COLUMN(TEXT, id),           COLUMN(TEXT, source),     COLUMN(TEXT, kind),
    COLUMN(TEXT, name),         COLUMN(TEXT, digest),     COLUMN(TEXT, accepted),
    COLUMN(TEXT, counted),      COLUMN(TEXT, difference), COLUMN(UNSIGNED, flags),
    COLUMN(FLAG, is_changed),   COLUMN(NUMBER, at_ms),    COLUMN(TEXT, text),
    COLUMN(TEXT, accepted_text)};
const struct record definition_record = {"definition", sizeof(STRUCTURE), true, definition_columns,
                                         COUNT_OF(definition_columns)};
const struct record definition_list_record = {"definition_list", sizeof(STRUCTURE), true,
                                              definition_columns, COUNT_OF(definition_columns) - 2};
#undef STRUCTURE

#define STRUCTURE struct store_session
static const struct column session_columns[] = {
    COLUMN(TEXT, source),         COLUMN(TEXT, id_digest),      COLUMN(TEXT, version),
    COLUMN(TEXT, client_name),    COLUMN(TEXT, client_version), COLUMN(TEXT, client_capabilities),
    COLUMN(FLAG, upstream_tasks), COLUMN(FLAG, upstream_sse),   COLUMN(NUMBER, seen_ms),
    COLUMN(TEXT, owner)};
const struct record session_record = {"session", sizeof(STRUCTURE), false, session_columns,
                                      COUNT_OF(session_columns)};
#undef STRUCTURE

#define STRUCTURE struct store_sign_in
static const struct column sign_in_columns[] = {
    COLUMN(TEXT, digest), COLUMN(TEXT, person),       COLUMN(TEXT, issuer),
    COLUMN(TEXT, claims), COLUMN(NUMBER, created_ms), COLUMN(NUMBER, until_ms)};
const struct record sign_in_record = {"sign_in", sizeof(STRUCTURE), false, sign_in_columns,
                                      COUNT_OF(sign_in_columns)};
#undef STRUCTURE

#define STRUCTURE struct store_message
static const struct column message_columns[] = {COLUMN(TEXT, target), COLUMN(TEXT, task_id),
                                                COLUMN(TEXT, reference), COLUMN(TEXT, seen)};
const struct record message_record = {"outbox_thread", sizeof(STRUCTURE), false, message_columns,
                                      COUNT_OF(message_columns)};
#undef STRUCTURE

#define STRUCTURE struct store_audit_entry
/* Of a task's trail, as clients see it. */
static const struct column entry_columns[] = {COLUMN(NUMBER, at_ms),    COLUMN(TEXT, task_id),
                                              COLUMN(TEXT, event),      COLUMN(TEXT, from_state),
                                              COLUMN(TEXT, to_state),   COLUMN(TEXT, actor_kind),
                                              COLUMN(TEXT, actor_name), COLUMN(TEXT, reason)};
const struct record entry_record = {"audit_entry", sizeof(STRUCTURE), true, entry_columns,
                                    COUNT_OF(entry_columns)};
#undef STRUCTURE

#define STRUCTURE struct task
/* The long texts of clients, and the outcome, are beside them. */
static const struct column task_columns[] = {
    COLUMN(FIXED, id),
    COLUMN(UNSIGNED, state),
    COLUMN(TASK_TEXT, source),
    COLUMN(TASK_TEXT, owner),
    COLUMN(TASK_TEXT, session),
    COLUMN(TASK_TEXT, principal),
    COLUMN(TASK_TEXT, tool),
    COLUMN(TASK_TEXT, workflow),
    COLUMN(TASK_TEXT, action),
    COLUMN(FIXED, arguments_digest),
    COLUMN(FIXED, definition_digest),
    COLUMN(TASK_TEXT, progress_token),
    COLUMN(FLAG, on_result),
    COLUMN(FLAG, accelerated),
    COLUMN(FLAG, keep_task),
    COLUMN(NUMBER, ttl_ms),
    COLUMN(NUMBER, poll_interval_ms),
    COLUMN(NUMBER, created_ms),
    COLUMN(NUMBER, decide_by_ms),
    COLUMN(NUMBER, updated_ms),
    COLUMN(NUMBER, execute_by_ms),
    COLUMN(NUMBER, decided_ms),
    COLUMN(NUMBER, ended_ms),
    COLUMN(TASK_TEXT, decided_by),
    COLUMN(TASK_TEXT, reason),
    COLUMN(TASK_TEXT, status_message),
    COLUMN(TASK_TEXT, upstream_task),
    COLUMN(UNSIGNED, failure),
    COLUMN(UNSIGNED, outcome),
    COLUMN(TASK_TEXT, client_name),
    COLUMN(TASK_TEXT, client_version),
    COLUMN(FLAG, promoted),
    COLUMN(NUMBER, retention_ms),
    COLUMN(NUMBER, expired_retention_ms),
    COLUMN(FIXED, request_digest),
    COLUMN(FIXED, headers_digest),
    COLUMN(TASK_TEXT, refused_credentials),
    COLUMN(TASK_TEXT, rule),
    COLUMN(FIXED, policy_digest),
    COLUMN(FIXED, owner_email),
    COLUMN(TASK_TEXT, terms),
    COLUMN(TASK_TEXT, votes),
    COLUMN(FIXED, rule_digest),
    COLUMN(FIXED, bound_digest),
    {"grant_facts", COLUMN_TASK_TEXT, offsetof(STRUCTURE, grant), 0},
    COLUMN(FIXED, original_digest),
    COLUMN(FIXED, original_request_digest),
    COLUMN(TASK_TEXT, trace),
    COLUMN(TASK_TEXT, maker),
    COLUMN(NUMBER, started_ms),
    COLUMN(TASK_TEXT, brief),
    COLUMN(FLAG, promised)};
const struct record task_record = {"task", sizeof(STRUCTURE), false, task_columns,
                                   COUNT_OF(task_columns)};
/* Of a call that waits, for a list of all of them: what its row and the verdict on a vote need. */
static const struct column waiting_columns[] = {COLUMN(FIXED, id),
                                                COLUMN(TASK_TEXT, source),
                                                COLUMN(TASK_TEXT, owner),
                                                COLUMN(TASK_TEXT, principal),
                                                COLUMN(TASK_TEXT, tool),
                                                COLUMN(TASK_TEXT, workflow),
                                                COLUMN(TASK_TEXT, rule),
                                                COLUMN(FIXED, request_digest),
                                                COLUMN(FIXED, definition_digest),
                                                COLUMN(FIXED, owner_email),
                                                COLUMN(TASK_TEXT, maker),
                                                COLUMN(TASK_TEXT, terms),
                                                COLUMN(TASK_TEXT, votes),
                                                COLUMN(TASK_TEXT, brief),
                                                COLUMN(NUMBER, created_ms),
                                                COLUMN(NUMBER, decide_by_ms)};
const struct record task_waiting_record = {"task_waiting", sizeof(STRUCTURE), false,
                                           waiting_columns, COUNT_OF(waiting_columns)};
#undef STRUCTURE

static const struct record *const of_structures[] = {
    &grant_record,           &grant_list_record, &block_record,        &definition_record,
    &definition_list_record, &session_record,    &sign_in_record,      &message_record,
    &entry_record,           &task_record,       &task_waiting_record, NULL};

/* ---- tables of which only statements have all columns ---- */

static const struct column audit_columns[] = {
#define AUDIT_COLUMN(column, key, kind) {#column, COLUMN_TEXT, 0, 0},
#include "audit_columns.h"
#undef AUDIT_COLUMN
};
#define OF(table_columns) .columns = (table_columns), .count = COUNT_OF(table_columns)

static const struct record of_statements[] = {
    /* What SQLite's table of tasks has, and what PostgreSQL's has. */
    {"task_row", OF(task_columns), .before = "deadline_ms, purge_ms"},
    {"task_whole", OF(task_columns), .before = "deadline_ms, purge_ms, bytes",
     .after = "arguments, meta, other_params, original_arguments, shown, body, "
              "outcome_body, mirrored_headers"},
    {"audit", OF(audit_columns)},
    {"audit_kept", .before = "sequence, arguments, until_ms"},
    {"audit_anchor", .before = "sequence, hash, at_ms, signature, is_start"},
    {"outbox_notice", .has_sequence = true,
     .before = "task_id, source, tool, workflow, principal, arguments_digest, "
               "decided_by, reason, status_message, arguments, at_ms, state, "
               "created_ms, decide_by_ms, decided_ms, is_emergency, anchor"},
    {"outbox_delivery", .has_sequence = true,
     .before = "id, notice, target, task_id, event, attempts, due_ms"},
    {"outbox_target", .before = "key, events, with_arguments"},
    /* A token that a server accepted in a session. */
    {"pair", .before = "source, session_digest, token_digest, accepted_ms"},
    {"tally", .before = "source, tool, owner, day_ms, approved, rejected, expired, failed"},
};

const struct record *record_of(struct str table)
{
    for (const struct record *const *record = of_structures; *record; record++) {
        if (str_equal(table, str_from((*record)->table)))
            return *record;
    }
    for (size_t i = 0; i < sizeof of_statements / sizeof *of_statements; i++) {
        if (str_equal(table, str_from(of_statements[i].table)))
            return &of_statements[i];
    }
    return NULL;
}

static size_t count_names(const char *names)
{
    size_t count = names != NULL;
    for (; names && *names; names++)
        count += *names == ',';
    return count;
}

size_t record_width(const struct record *record)
{
    size_t width = count_names(record->before) + record->count + count_names(record->after);
    ASSERT_NUMBERS(width, <=, VALUES_MAX);
    return width;
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
