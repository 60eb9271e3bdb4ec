/* Rows of the trail as values. */
#include "audit_rows.h"

#include <string.h>

#include "taskgate/core/memory.h"

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
