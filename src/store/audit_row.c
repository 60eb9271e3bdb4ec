/* Rows by the table of columns. */
#include "audit_row.h"

#include <string.h>

#include "sqlite/database.h"
#include "taskgate/core/clock.h"
#include "taskgate/json/canonical.h"

enum kind { KIND_TEXT, KIND_JSON, KIND_TIME, KIND_NUMBER, KIND_HASH };

static const struct {
    const char *key; /* with quotes and colon */
    enum kind kind;
} columns[AUDIT_COLUMN_COUNT] = {
#define AUDIT_COLUMN(column, key, kind) {"\"" key "\":", KIND_##kind},
#include "audit_columns.h"
#undef AUDIT_COLUMN
};

void audit_row_read(struct audit_row *row, sqlite3_stmt *statement)
{
    for (int i = 0; i < AUDIT_COLUMN_COUNT; i++) {
        bool is_number = columns[i].kind == KIND_TIME || columns[i].kind == KIND_NUMBER;
        row->texts[i] = is_number ? STR_EMPTY : database_column_bytes(statement, i);
    }
    row->sequence = sqlite3_column_int64(statement, AUDIT_sequence);
    row->at_ms = sqlite3_column_int64(statement, AUDIT_at_ms);
}

void audit_row_bind(const struct audit_row *row, sqlite3_stmt *statement)
{
    for (int i = 0; i < AUDIT_COLUMN_COUNT; i++) {
        if (columns[i].kind == KIND_NUMBER)
            sqlite3_bind_int64(statement, i + 1, row->sequence);
        else if (columns[i].kind == KIND_TIME)
            sqlite3_bind_int64(statement, i + 1, row->at_ms);
        else
            database_bind_str(statement, i + 1, row->texts[i]);
    }
}

static void write_value(const struct audit_row *row, int column, struct buffer *out)
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
        bool is_number = kind == KIND_NUMBER || kind == KIND_TIME;
        if ((!is_number && row->texts[i].length == 0) || (kind == KIND_HASH && !with_hash))
            continue;
        buffer_append_char(out, separator);
        buffer_append_text(out, columns[i].key);
        write_value(row, i, out);
        separator = ',';
    }
    buffer_append_char(out, '}');
}
