/*
 * Values, records and statements: of whatever database. A record says which columns of a table a
 * structure has, so that a list of columns, a row that is read, the values of one that is written,
 * a copy and the end of the structure are made of one list in record.c.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "taskgate/core/str.h"
#include "taskgate/task/task.h"

/* ---- values ---- */

/* Of a statement, or in a row. NULL is VALUE_NOTHING, an empty text, and INT64_MAX: never. */
struct value {
    enum { VALUE_TEXT, VALUE_BYTES, VALUE_NUMBER, VALUE_NOTHING } kind;
    struct str text; /* borrowed */
    int64_t number;
};
#define VALUES_MAX 65 /* of a statement, and of a row */
#define TEXT(given) ((struct value){.kind = VALUE_TEXT, .text = str_from(given)})
#define STRING(given) ((struct value){.kind = VALUE_TEXT, .text = (given)})
#define BYTES(given) ((struct value){.kind = VALUE_BYTES, .text = (given)})
#define NUMBER(given) ((struct value){.kind = VALUE_NUMBER, .number = (given)})
#define NOTHING ((struct value){.kind = VALUE_NOTHING, .number = INT64_MAX})
/* INT64_MAX means never and becomes NULL. */
#define TIME(given)                                                                                \
    ((struct value){.kind = (given) == INT64_MAX ? VALUE_NOTHING : VALUE_NUMBER, .number = (given)})
/* The values of a statement, which has at least one. */
#define VALUES(...)                                                                                \
    (const struct value[]){__VA_ARGS__},                                                           \
        sizeof((const struct value[]){__VA_ARGS__}) / sizeof(struct value)
#define NO_VALUES NULL, 0

/* ---- records ---- */

struct column {
    const char *name;
    enum column_kind {
        COLUMN_TEXT,      /* char *, owned */
        COLUMN_TASK_TEXT, /* the same, by task_set_text() */
        COLUMN_FIXED,     /* an array that is large enough */
        COLUMN_NUMBER,    /* int64_t */
        COLUMN_FLAG,      /* bool */
        COLUMN_UNSIGNED,  /* unsigned */
    } kind;
    size_t offset;
    size_t size; /* of COLUMN_FIXED */
};

struct record {
    const char *table; /* as statements name it */
    size_t bytes;      /* of the structure */
    bool has_sequence; /* the first column, which the database gives */
    const struct column *columns;
    size_t count;
    /* Names of columns that only statements have, before and after those. NULL: none. */
    const char *before, *after;
};

extern const struct record grant_record, block_record, definition_record, session_record,
    sign_in_record, message_record, entry_record;
/* Without its sequence; and what a list of those that wait has. */
extern const struct record task_record, task_waiting_record;
/* Without its texts; without its arguments. */
extern const struct record definition_list_record, grant_list_record;
/* The record of a table, as statements name it. NULL: there is none. */
const struct record *record_of(struct str table);
/* How many values a statement writes, without the sequence. */
size_t record_width(const struct record *record);
/* A row with all columns of the record. The texts are owned. */
void record_read(const struct record *record, const struct value *row, void *into);
/* The values of all columns but the sequence. Returns their number. */
size_t record_write(const struct record *record, const void *from, struct value *values);
/* A copy of its own, in which no text is NULL. The caller frees it with record_destroy(). */
void *record_copy(const struct record *record, const void *from);
/* NULL is allowed. */
void record_destroy(const struct record *record, void *structure);
/* Frees the texts, and empties it. */
void record_finish(const struct record *record, void *structure);

/* Structures that the holder owns, in `items`, which is one array. */
struct record_list {
    const struct record *record;
    void *items;
    size_t count, capacity;
};
/* A further one, empty; valid until the next is added. */
void *record_list_add(struct record_list *list);
void record_list_finish(struct record_list *list);

/* Ids of tasks; the caller frees `ids`. */
struct id_list {
    char (*ids)[TASK_ID_BYTES];
    size_t count, capacity;
};
void id_list_add(struct id_list *list, struct str id);

/* ---- statements ---- */

/* Each reads or writes one row, or many. */
enum statement {
#define STATEMENT(symbol, sql) STATEMENT_##symbol,
#include "statements.h"
#undef STATEMENT
    STATEMENT_COUNT
};

/* A row is valid during the visit. false ends the reading. */
typedef bool row_visitor(void *context, const struct value *row);
