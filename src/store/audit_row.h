/*
 * A row of the audit trail as a value, and its canonical JSON, which the chain is made of.
 */
#pragma once

#include <sqlite3.h>

#include "taskgate/core/buffer.h"
#include "taskgate/core/str.h"

/* In the order of AUDIT_COLUMNS, which the statements select. */
enum audit_column {
#define AUDIT_COLUMN(column, key, kind) AUDIT_##column,
#include "audit_columns.h"
#undef AUDIT_COLUMN
    AUDIT_COLUMN_COUNT
};

/* Texts are borrowed. */
struct audit_row {
    struct str texts[AUDIT_COLUMN_COUNT]; /* but for the two numbers; empty: not in the JSON */
    int64_t sequence, at_ms;
};

/* AUDIT_COLUMNS of a stepped statement; valid until the next step. */
void audit_row_read(struct audit_row *row, sqlite3_stmt *statement);
/* For an INSERT of AUDIT_COLUMNS; the texts must live until it has run. */
void audit_row_bind(const struct audit_row *row, sqlite3_stmt *statement);
/* Appends the canonical JSON: with `hash` as operators see it, without as it is hashed. */
void audit_row_write(const struct audit_row *row, bool with_hash, struct buffer *out);
