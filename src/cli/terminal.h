/* JSON and tables at a terminal. */
#pragma once

#include <stdio.h>

#include "taskgate/core/buffer.h"

/* JSON for people (json/visible.h) over several lines, indented by two spaces; numbers keep their
 * digits. `hidden` is a JSON array of dot paths, or STR_EMPTY: a value that one of them names is
 * [REDACTED] without quotes, so that no text of an agent can look like it. */
void terminal_append_pretty(struct buffer *out, struct str json, struct str hidden);
/* Writes it all and flushes; false when that failed (said on stderr). */
bool terminal_write(const struct buffer *text);

/* A table: rows of cells, columns as wide as their widest cell. A row that is wider than the
 * terminal goes on in indented lines, from the same column in each row, unless it fits when
 * columns with a `least` are cut to no less than that. */
#define TABLE_COLUMNS_MAX 16
struct table {
    struct buffer *cells; /* row by row; the first row is the heading */
    size_t columns, count;
    size_t room; /* columns of the terminal; 0: it is none, and there is room for all */
    unsigned char least[TABLE_COLUMNS_MAX]; /* of each column; 0: it is not cut */
    /* The control sequence before a cell, colour_end() behind it; or NULL. */
    const char *(*paint)(size_t row, size_t column, struct str cell);
};
void table_init(struct table *table, size_t columns, const char *const *headings);
void table_add(struct table *table, struct str text);       /* made safe */
void table_add_shown(struct table *table, struct str text); /* safe already */
void table_write(const struct table *table, struct buffer *out);
void table_finish(struct table *table);
