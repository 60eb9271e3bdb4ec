/* Rows by the table of columns. */
#include "audit_row.h"

#include "taskgate/core/clock.h"
#include "taskgate/json/canonical.h"
#include "taskgate/json/text.h"

enum kind { KIND_TEXT, KIND_JSON, KIND_TIME, KIND_NUMBER, KIND_HASH };

static const struct {
    const char *key; /* with quotes and colon */
    enum kind kind;
} columns[AUDIT_COLUMN_COUNT] = {
#define AUDIT_COLUMN(column, key, kind) {"\"" key "\":", KIND_##kind},
#include "audit_columns.h"
#undef AUDIT_COLUMN
};

bool audit_row_is_number(int column)
{
    return columns[column].kind == KIND_TIME || columns[column].kind == KIND_NUMBER;
}

static void audit_row_write_value(const struct audit_row *row, int column, struct buffer *out)
{
    char time[CLOCK_TEXT_BYTES];
    switch (columns[column].kind) {
    case KIND_NUMBER:
        buffer_append_format(out, "%lld", (long long)row->sequence);
        break;
    case KIND_TIME:
        buffer_append_char(out, '"');
        buffer_append_text(out, clock_format(row->at_ms, time));
        buffer_append_char(out, '"');
        break;
    case KIND_JSON:
        buffer_append(out, row->texts[column]);
        break;
    case KIND_TEXT:
    case KIND_HASH:
        canonical_write_text(row->texts[column], out);
        break;
    }
}

void audit_row_write(const struct audit_row *row, bool with_hash, struct buffer *out)
{
    char separator = '{';
    for (int i = 0; i < AUDIT_COLUMN_COUNT; i++) {
        enum kind kind = columns[i].kind;
        if ((!audit_row_is_number(i) && row->texts[i].length == 0) ||
            (kind == KIND_HASH && !with_hash))
            continue;
        buffer_append_char(out, separator);
        buffer_append_text(out, columns[i].key);
        audit_row_write_value(row, i, out);
        separator = ',';
    }
    buffer_append_char(out, '}');
}

void audit_row_write_decision(struct buffer *out, struct str decision)
{
    if (decision.length > 0 && json_check(decision, NULL))
        canonical_write(decision, out);
    else if (decision.length > 0)
        canonical_write_text(decision, out);
}
