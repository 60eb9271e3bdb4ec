/* The rows of the audit trail, what is kept beside them, and anchors. */
#pragma once

#include "row.h"
#include "taskgate/core/buffer.h"
#include "taskgate/core/str.h"
#include "taskgate/store/chain.h"

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

typedef bool audit_visitor(void *context, const struct audit_row *row);

/* After the newest row; after the newest anchor where all rows are gone; else the start. The rows
 * appended in this transaction follow it: nobody else may append meanwhile. */
bool audit_rows_end(struct database *database, struct store_chain *end);
bool audit_rows_insert(struct database *database, const struct audit_row *row);
/* At most `limit` rows after the row `after`, oldest first. The row is valid during the visit;
 * false ends the reading. */
bool audit_rows_page(struct database *database, int64_t after, size_t limit, audit_visitor *visit,
                     void *context);
/* All of them after the row `after`, in pages. */
bool audit_rows_all(struct database *database, int64_t after, audit_visitor *visit, void *context);
/* Arguments that are kept beside a row until `until_ms`. */
bool audit_rows_keep(struct database *database, int64_t sequence, struct str arguments,
                     int64_t until_ms);
/* The caller frees them. */
enum row_result audit_rows_kept(struct database *database, int64_t sequence, char **arguments);
/* The anchor that the chain goes on from, and the newest of all. */
enum row_result audit_rows_anchor_start(struct database *database, struct store_anchor *anchor);
enum row_result audit_rows_anchor_last(struct database *database, struct store_anchor *anchor);
