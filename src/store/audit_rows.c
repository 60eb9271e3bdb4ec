/* Rows of the trail as values. */
#include "audit_rows.h"

#include <string.h>

#include "taskgate/core/clock.h"
#include "taskgate/json/canonical.h"
#include "taskgate/json/text.h"

/* ---- the chain ---- */

static void audit_rows_read_place(struct store_chain *place, const struct value *row)
{
    store_chain_init(place);
    if (row[1].text.length != sizeof place->hash - 1)
        return;
    place->sequence = row[0].number;
    memcpy(place->hash, row[1].text.bytes, row[1].text.length);
}

struct ending {
    struct store_chain *end;
};

static bool audit_rows_take_end(void *context, const struct value *row)
{
    audit_rows_read_place(((const struct ending *)context)->end, row);
    return false;
}

bool audit_rows_end(struct database *database, struct store_chain *end)
{
    store_chain_init(end);
    return rows_read(database, STATEMENT_AUDIT_END, NO_VALUES, audit_rows_take_end,
                     &(struct ending){end});
}

/* ---- rows ---- */

bool audit_rows_insert(struct database *database, const struct audit_row *row)
{
    struct value values[AUDIT_COLUMN_COUNT];
    for (int i = 0; i < AUDIT_COLUMN_COUNT; i++)
        values[i] = STRING(row->texts[i]);
    values[AUDIT_sequence] = NUMBER(row->sequence);
    values[AUDIT_at_ms] = NUMBER(row->at_ms);
    return rows_write(database, STATEMENT_AUDIT_INSERT, values, AUDIT_COLUMN_COUNT);
}

struct visiting {
    audit_visitor *visit;
    void *context;
};

static bool audit_rows_visit_row(void *context, const struct value *values)
{
    const struct visiting *visiting = context;
    struct audit_row row = {.sequence = values[AUDIT_sequence].number,
                            .at_ms = values[AUDIT_at_ms].number};
    for (int i = 0; i < AUDIT_COLUMN_COUNT; i++)
        row.texts[i] = audit_row_is_number(i) ? STR_EMPTY : values[i].text;
    return visiting->visit(visiting->context, &row);
}

bool audit_rows_page(struct database *database, int64_t after, size_t limit, audit_visitor *visit,
                     void *context)
{
    return rows_read(database, STATEMENT_AUDIT_PAGE, VALUES(NUMBER(after), NUMBER((int64_t)limit)),
                     audit_rows_visit_row, &(struct visiting){visit, context});
}

bool audit_rows_all(struct database *database, int64_t after, audit_visitor *visit, void *context)
{
    const struct row_pages pages = {
        .which = STATEMENT_AUDIT_PAGE, .sequence = AUDIT_sequence, .after = after};
    return rows_read_pages(database, &pages, audit_rows_visit_row,
                           &(struct visiting){visit, context});
}

/* ---- what is kept ---- */

bool audit_rows_keep(struct database *database, int64_t sequence, struct str arguments,
                     int64_t until_ms)
{
    return rows_write(database, STATEMENT_AUDIT_KEEP,
                      VALUES(NUMBER(sequence), STRING(arguments), NUMBER(until_ms)));
}

enum row_result audit_rows_kept(struct database *database, int64_t sequence, char **arguments)
{
    static const struct column column = {"arguments", COLUMN_TEXT, 0};
    static const struct record record = {.columns = &column, .count = 1};
    return rows_find(database, STATEMENT_AUDIT_KEPT, VALUES(NUMBER(sequence)), &record, arguments);
}

/* ---- anchors ---- */

struct anchoring {
    struct store_anchor *anchor;
    bool is_there;
};

static bool take_anchor(void *context, const struct value *row)
{
    struct anchoring *anchoring = context;
    struct store_anchor *anchor = anchoring->anchor;
    *anchor = (struct store_anchor){.at_ms = row[2].number};
    audit_rows_read_place(&anchor->place, row);
    anchor->place.sequence = row[0].number;
    if (row[3].text.length == sizeof anchor->signature - 1)
        memcpy(anchor->signature, row[3].text.bytes, row[3].text.length);
    anchoring->is_there = true;
    return false;
}

static enum row_result read_anchor(struct database *database, enum statement which,
                                   struct store_anchor *anchor)
{
    struct anchoring anchoring = {anchor, false};
    if (!rows_read(database, which, NO_VALUES, take_anchor, &anchoring))
        return ROW_FAILED;
    return anchoring.is_there ? ROW_FOUND : ROW_ABSENT;
}

enum row_result audit_rows_anchor_start(struct database *database, struct store_anchor *anchor)
{
    return read_anchor(database, STATEMENT_ANCHOR_START, anchor);
}

enum row_result audit_rows_anchor_last(struct database *database, struct store_anchor *anchor)
{
    return read_anchor(database, STATEMENT_ANCHOR_LAST, anchor);
}

/* ---- a row as canonical JSON ---- */

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
