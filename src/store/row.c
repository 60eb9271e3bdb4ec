/* Between structures and rows, and the statements as the store uses them. */
#include "row.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend.h"
#include "record_columns.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/memory.h"
#include "taskgate/store/blocks.h"
#include "taskgate/store/definitions.h"
#include "taskgate/store/grants.h"

/* ---- records ---- */

#define COLUMN_OF(kind, column) {#column, COLUMN_##kind, offsetof(STRUCTURE, column), 0},
#define COUNT_OF(columns) (sizeof(columns) / sizeof(struct column))

#define STRUCTURE struct store_grant
static const struct column grant_columns[] = {GRANT_COLUMNS(COLUMN_OF)};
const struct record grant_record = {"grant", sizeof(STRUCTURE), true, grant_columns,
                                    COUNT_OF(grant_columns)};
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

static const struct record *const records[] = {
    &grant_record,           &block_record,      &definition_record,
    &definition_list_record, &session_record,    &sign_in_record,
    &message_record,         &entry_record,      &notice_record,
    &delivery_record,        &target_record,     &pair_record,
    &tally_record,           &kept_record,       &anchor_record,
    &audit_record,           &task_record,       &task_waiting_record,
    &task_row_record,        &task_whole_record, NULL};

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

/* ---- statements ---- */

static const struct store_backend *backend_of(struct database *database)
{
    return *(const struct store_backend *const *)(void *)database;
}

bool rows_write(struct database *database, enum statement which, const struct value *values,
                size_t count)
{
    return backend_of(database)->write(database, which, values, count);
}

bool rows_insert(struct database *database, enum statement which, const struct record *record,
                 const void *from)
{
    struct value values[VALUES_MAX];
    return rows_write(database, which, values, record_write(record, from, values));
}

bool rows_purge(struct database *database, enum statement which, const struct value *values,
                size_t count, int64_t *purged)
{
    return backend_of(database)->change(database, which, values, count, purged);
}

enum row_result rows_change(struct database *database, enum statement which,
                            const struct value *values, size_t count)
{
    int64_t changed;
    if (!backend_of(database)->change(database, which, values, count, &changed))
        return ROW_FAILED;
    return changed > 0 ? ROW_FOUND : ROW_ABSENT;
}

bool rows_read(struct database *database, enum statement which, const struct value *values,
               size_t count, row_visitor *visit, void *context)
{
    return backend_of(database)->read(database, which, values, count, visit, context);
}

struct listing {
    struct record_list *list;
};

bool rows_read_text(struct database *database, const char *sql, const struct value *values,
                    size_t count, row_visitor *visit, void *context)
{
    return backend_of(database)->read_text(database, sql, values, count, visit, context);
}

bool rows_compare_rows(struct database *database)
{
    return backend_of(database)->compares_rows;
}

static bool add_record(void *context, const struct value *row)
{
    const struct listing *listing = context;
    record_read(listing->list->record, row, record_list_add(listing->list));
    return true;
}

bool rows_list(struct database *database, enum statement which, const struct value *values,
               size_t count, struct record_list *list)
{
    return rows_read(database, which, values, count, add_record, &(struct listing){list});
}

static bool row_add_id(void *context, const struct value *row)
{
    id_list_add(context, row->text);
    return true;
}

bool rows_ids(struct database *database, enum statement which, const struct value *values,
              size_t count, struct id_list *list)
{
    return rows_read(database, which, values, count, row_add_id, list);
}

struct finding {
    const struct record *record;
    void *into;
    bool is_there;
};

static bool take_record(void *context, const struct value *row)
{
    struct finding *finding = context;
    if (finding->record)
        record_read(finding->record, row, finding->into);
    finding->is_there = true;
    return false;
}

enum row_result rows_find(struct database *database, enum statement which,
                          const struct value *values, size_t count, const struct record *record,
                          void *into)
{
    struct finding finding = {record, into, false};
    if (!rows_read(database, which, values, count, take_record, &finding))
        return ROW_FAILED;
    return finding.is_there ? ROW_FOUND : ROW_ABSENT;
}

enum row_result rows_find_new(struct database *database, enum statement which,
                              const struct value *values, size_t count, const struct record *record,
                              void **found)
{
    ASSERT_NUMBERS(record->bytes, >, 0);
    void *into = memory_alloc(record->bytes);
    enum row_result result = rows_find(database, which, values, count, record, into);
    *found = result == ROW_FOUND ? into : NULL;
    if (result != ROW_FOUND)
        free(into);
    return result;
}

enum row_result rows_exist(struct database *database, enum statement which,
                           const struct value *values, size_t count)
{
    return rows_find(database, which, values, count, NULL, NULL);
}

struct number {
    int64_t value;
    bool is_there;
};

static bool take_number(void *context, const struct value *row)
{
    *(struct number *)context = (struct number){row->number, true};
    return false;
}

bool rows_number(struct database *database, enum statement which, const struct value *values,
                 size_t count, int64_t *number)
{
    struct number first = {.value = INT64_MAX};
    bool read = rows_read(database, which, values, count, take_number, &first);
    *number = first.value;
    return read && first.is_there;
}
