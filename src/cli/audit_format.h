/* Rows of the audit trail as lines for other programs. */
#pragma once

#include <stdbool.h>

#include "taskgate/core/buffer.h"

enum audit_format { AUDIT_FORMAT_JSONL, AUDIT_FORMAT_CSV, AUDIT_FORMAT_CEF };

/* "jsonl", "csv", "cef". */
bool audit_format_parse(const char *text, enum audit_format *format);
/* The line above the rows: the names of the columns in CSV. */
void audit_format_head(enum audit_format format, struct buffer *out);
/* One row with its line end. In CSV a cell that a spreadsheet would take for a formula begins with
 * a quote. */
void audit_format_row(enum audit_format format, struct str row, struct buffer *out);
