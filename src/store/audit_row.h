/*
 * A row of the audit trail as a value, and its canonical JSON, which the chain is made of.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "taskgate/core/buffer.h"
#include "taskgate/core/str.h"

/* In the order in which a backend gives them. */
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

/* The sequence and the time. */
bool audit_row_is_number(int column);
/* Appends the canonical JSON: with `hash` as operators see it, without as it is hashed. */
void audit_row_write(const struct audit_row *row, bool with_hash, struct buffer *out);
/* Appends what decided a call: the gateway's own JSON, in canonical form. But a file that somebody
 * edited may hold anything, which becomes a text. */
void audit_row_write_decision(struct buffer *out, struct str decision);
