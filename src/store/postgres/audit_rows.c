/* The rows of the audit trail, what is kept beside them, and anchors. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rows.h"
#include "taskgate/core/memory.h"
#include "taskgate/store/chain.h"

#define ROW_BYTES 256 /* of the numbers, and of the indexes */

static void read_row(struct audit_row *row, const PGresult *rows, int i)
{
    for (int column = 0; column < AUDIT_COLUMN_COUNT; column++)
        row->texts[column] = audit_row_is_number(column) ? STR_EMPTY : row_bytes(rows, i, column);
    row->sequence = row_number(rows, i, AUDIT_sequence);
    row->at_ms = row_number(rows, i, AUDIT_at_ms);
}

static bool insert(struct database *database, const struct audit_row *row)
{
    struct value values[AUDIT_COLUMN_COUNT + 1];
    int64_t bytes = ROW_BYTES;
    for (int i = 0; i < AUDIT_COLUMN_COUNT; i++) {
        values[i] = STRING(row->texts[i]);
        bytes += (int64_t)row->texts[i].length;
    }
    values[AUDIT_sequence] = NUMBER(row->sequence);
    values[AUDIT_at_ms] = NUMBER(row->at_ms);
    values[AUDIT_COLUMN_COUNT] = NUMBER(bytes);
    database->counted.bytes += bytes;
    database->known.end.sequence = row->sequence;
    snprintf(database->known.end.hash, sizeof database->known.end.hash, "%.*s",
             STR_ARGS(row->texts[AUDIT_hash]));
    return connection_write(database, STATEMENT_AUDIT_INSERT, values, AUDIT_COLUMN_COUNT + 1);
}

/* ---- the chain ---- */

static void read_place(struct store_chain *place, const PGresult *rows)
{
    struct str hash = row_bytes(rows, 0, 1);
    store_chain_init(place);
    place->sequence = row_number(rows, 0, 0);
    if (hash.length == sizeof place->hash - 1)
        memcpy(place->hash, hash.bytes, hash.length);
}

static bool read_end(struct database *database, struct store_chain *end)
{
    struct known *known = &database->known;
    bool is_known = known_ask(database, STATEMENT_AUDIT_END, SENT_END, &known->has_end);
    *end = known->end;
    return is_known;
}

static bool has(struct database *database, const char *task_id, const char *event, bool *has)
{
    PGresult *rows =
        connection_read(database, STATEMENT_AUDIT_HAS, VALUES(TEXT(task_id), TEXT(event)));
    enum row_result result = rows_any(rows);
    PQclear(rows);
    *has = result == ROW_FOUND;
    return result != ROW_FAILED;
}

static bool list(struct database *database, const char *task_id, struct store_audit_entry **entries,
                 size_t *count)
{
    PGresult *rows = connection_read(database, STATEMENT_AUDIT_LIST, VALUES(TEXT(task_id)));
    if (!rows)
        return false;
    *count = (size_t)PQntuples(rows);
    *entries = *count > 0 ? memory_alloc_array(*count, sizeof **entries) : NULL;
    for (int i = 0; i < (int)*count; i++)
        (*entries)[i] = (struct store_audit_entry){
            .sequence = row_number(rows, i, 0),
            .at_ms = row_number(rows, i, 1),
            .task_id = row_text(rows, i, 2),
            .event = row_text(rows, i, 3),
            .from_state = row_text(rows, i, 4),
            .to_state = row_text(rows, i, 5),
            .actor_kind = row_text(rows, i, 6),
            .actor_name = row_text(rows, i, 7),
            .reason = row_text(rows, i, 8),
        };
    PQclear(rows);
    return true;
}

static bool page(struct database *database, int64_t after, size_t limit,
                 bool (*visit)(void *context, const struct audit_row *row), void *context)
{
    PGresult *rows = connection_read(database, STATEMENT_AUDIT_PAGE,
                                     VALUES(NUMBER(after), NUMBER((int64_t)limit)));
    bool is_read = rows != NULL, goes_on = is_read;
    for (int i = 0; goes_on && i < PQntuples(rows); i++) {
        struct audit_row row;
        read_row(&row, rows, i);
        goes_on = visit(context, &row);
    }
    PQclear(rows);
    return is_read;
}

/* ---- age ---- */

static bool remove_rows(struct database *database, int64_t sequence)
{
    database->written++;
    return totals_give_back(database, connection_read(database, STATEMENT_AUDIT_REMOVE,
                                                      VALUES(NUMBER(sequence)))) &&
           totals_give_back(database, connection_read(database, STATEMENT_AUDIT_REMOVE_KEPT,
                                                      VALUES(NUMBER(sequence)))) &&
           connection_write(database, STATEMENT_ANCHOR_REMOVE, VALUES(NUMBER(sequence)));
}

static bool keep(struct database *database, int64_t sequence, struct str arguments,
                 int64_t until_ms)
{
    database->counted.bytes += (int64_t)arguments.length;
    return connection_write(database, STATEMENT_AUDIT_KEEP,
                            VALUES(NUMBER(sequence), STRING(arguments), NUMBER(until_ms)));
}

static enum row_result read_kept(struct database *database, int64_t sequence, char **arguments)
{
    PGresult *rows = connection_read(database, STATEMENT_AUDIT_KEPT, VALUES(NUMBER(sequence)));
    enum row_result result = rows_any(rows);
    if (result == ROW_FOUND)
        *arguments = row_text(rows, 0, 0);
    PQclear(rows);
    return result;
}

/* ---- anchors ---- */

static enum row_result read_anchor(struct database *database, unsigned which,
                                   struct store_anchor *anchor)
{
    PGresult *rows = connection_read(database, which, NO_VALUES);
    enum row_result result = rows_any(rows);
    if (result == ROW_FOUND) {
        struct str signature = row_bytes(rows, 0, 3);
        *anchor = (struct store_anchor){.at_ms = row_number(rows, 0, 2)};
        read_place(&anchor->place, rows);
        if (signature.length == sizeof anchor->signature - 1)
            memcpy(anchor->signature, signature.bytes, signature.length);
    }
    PQclear(rows);
    return result;
}

static enum row_result anchor_start(struct database *database, struct store_anchor *anchor)
{
    return read_anchor(database, STATEMENT_AUDIT_START, anchor);
}

static enum row_result anchor_last(struct database *database, struct store_anchor *anchor)
{
    return read_anchor(database, STATEMENT_ANCHOR_LAST, anchor);
}

static bool anchor_put(struct database *database, const struct store_anchor *anchor, bool is_start)
{
    return connection_write(database, STATEMENT_ANCHOR_PUT,
                            VALUES(NUMBER(anchor->place.sequence), TEXT(anchor->place.hash),
                                   NUMBER(anchor->at_ms), TEXT(anchor->signature),
                                   NUMBER(is_start)));
}

const struct audit_rows postgres_audit_rows = {
    .end = read_end,
    .insert = insert,
    .has = has,
    .list = list,
    .page = page,
    .remove = remove_rows,
    .keep = keep,
    .kept = read_kept,
    .anchor_start = anchor_start,
    .anchor_last = anchor_last,
    .anchor_put = anchor_put,
};
