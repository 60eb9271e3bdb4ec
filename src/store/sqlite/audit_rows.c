/* The rows of the audit trail, what is kept beside them, and anchors. */
#include "audit_rows.h"

#include <string.h>

#include "taskgate/core/memory.h"
#include "taskgate/store/chain.h"

/* ---- rows as values ---- */

void audit_rows_read(struct audit_row *row, sqlite3_stmt *statement)
{
    for (int i = 0; i < AUDIT_COLUMN_COUNT; i++)
        row->texts[i] = audit_row_is_number(i) ? STR_EMPTY : database_column_bytes(statement, i);
    row->sequence = sqlite3_column_int64(statement, AUDIT_sequence);
    row->at_ms = sqlite3_column_int64(statement, AUDIT_at_ms);
}

static bool insert(struct database *database, const struct audit_row *row)
{
    sqlite3_stmt *statement = database_statement(database, STATEMENT_AUDIT_INSERT);
    for (int i = 0; i < AUDIT_COLUMN_COUNT; i++) {
        if (i == AUDIT_sequence)
            sqlite3_bind_int64(statement, i + 1, row->sequence);
        else if (i == AUDIT_at_ms)
            sqlite3_bind_int64(statement, i + 1, row->at_ms);
        else
            database_bind_str(statement, i + 1, row->texts[i]);
    }
    return database_run(statement);
}

void audit_rows_read_anchor(sqlite3_stmt *row, struct store_anchor *anchor)
{
    struct str hash = database_column_bytes(row, 1), signature = database_column_bytes(row, 3);
    *anchor = (struct store_anchor){.at_ms = sqlite3_column_int64(row, 2)};
    store_chain_init(&anchor->place);
    anchor->place.sequence = sqlite3_column_int64(row, 0);
    if (hash.length == sizeof anchor->place.hash - 1)
        memcpy(anchor->place.hash, hash.bytes, hash.length);
    if (signature.length == sizeof anchor->signature - 1)
        memcpy(anchor->signature, signature.bytes, signature.length);
}

static enum row_result read_anchor(struct database *database, unsigned which,
                                   struct store_anchor *anchor)
{
    sqlite3_stmt *row = database_statement(database, which);
    enum row_result result = rows_result(sqlite3_step(row));
    if (result == ROW_FOUND)
        audit_rows_read_anchor(row, anchor);
    database_release(row);
    return result;
}

/* ---- the chain ---- */

/* If all rows are gone, the chain goes on from an anchor. A row without a hash is of a trail
 * from before there was a chain. */
static bool read_end(struct database *database, struct store_chain *end)
{
    sqlite3_stmt *row = database_statement(database, STATEMENT_AUDIT_LAST);
    enum row_result result = rows_result(sqlite3_step(row));
    if (result == ROW_ABSENT) {
        database_release(row);
        row = database_statement(database, STATEMENT_AUDIT_START);
        result = rows_result(sqlite3_step(row));
    }
    struct str hash = result == ROW_FOUND ? database_column_bytes(row, 1) : STR_EMPTY;
    store_chain_init(end);
    if (hash.length == sizeof end->hash - 1) {
        end->sequence = sqlite3_column_int64(row, 0);
        memcpy(end->hash, hash.bytes, hash.length);
    }
    database_release(row);
    return result != ROW_FAILED;
}

static bool has(struct database *database, const char *task_id, const char *event, bool *has)
{
    sqlite3_stmt *row = database_statement(database, STATEMENT_AUDIT_HAS);
    database_bind_text(row, 1, task_id);
    database_bind_text(row, 2, event);
    enum row_result result = rows_result(sqlite3_step(row));
    database_release(row);
    *has = result == ROW_FOUND;
    return result != ROW_FAILED;
}

static struct store_audit_entry read_entry(sqlite3_stmt *row)
{
    return (struct store_audit_entry){
        .sequence = sqlite3_column_int64(row, 0),
        .at_ms = sqlite3_column_int64(row, 1),
        .task_id = database_take_text(row, 2),
        .event = database_take_text(row, 3),
        .from_state = database_take_text(row, 4),
        .to_state = database_take_text(row, 5),
        .actor_kind = database_take_text(row, 6),
        .actor_name = database_take_text(row, 7),
        .reason = database_take_text(row, 8),
    };
}

static bool list(struct database *database, const char *task_id, struct store_audit_entry **entries,
                 size_t *count)
{
    sqlite3_stmt *row = database_statement(database, STATEMENT_AUDIT_LIST);
    database_bind_text(row, 1, task_id);
    size_t capacity = 0;
    int code;
    while ((code = sqlite3_step(row)) == SQLITE_ROW) {
        if (*count == capacity) {
            capacity = capacity ? 2 * capacity : 8;
            *entries = memory_grow_array(*entries, capacity, sizeof **entries);
        }
        (*entries)[(*count)++] = read_entry(row);
    }
    database_release(row);
    return code == SQLITE_DONE;
}

static bool page(struct database *database, int64_t after, size_t limit,
                 bool (*visit)(void *context, const struct audit_row *row), void *context)
{
    struct audit_row row;
    sqlite3_stmt *statement = database_statement(database, STATEMENT_AUDIT_PAGE);
    sqlite3_bind_int64(statement, 1, after);
    sqlite3_bind_int64(statement, 2, (int64_t)limit);
    int code;
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
        audit_rows_read(&row, statement);
        if (!visit(context, &row))
            break;
    }
    database_release(statement);
    return code == SQLITE_ROW || code == SQLITE_DONE;
}

/* ---- age ---- */

static bool remove_rows(struct database *database, int64_t sequence)
{
    return rows_run_with(database, STATEMENT_AUDIT_REMOVE, sequence) &&
           rows_run_with(database, STATEMENT_AUDIT_REMOVE_KEPT, sequence) &&
           rows_run_with(database, STATEMENT_ANCHOR_REMOVE, sequence);
}

static bool keep(struct database *database, int64_t sequence, struct str arguments,
                 int64_t until_ms)
{
    sqlite3_stmt *row = database_statement(database, STATEMENT_AUDIT_KEEP);
    sqlite3_bind_int64(row, 1, sequence);
    database_bind_str(row, 2, arguments);
    sqlite3_bind_int64(row, 3, until_ms);
    return database_run(row);
}

static enum row_result read_kept(struct database *database, int64_t sequence, char **arguments)
{
    sqlite3_stmt *row = database_statement(database, STATEMENT_AUDIT_KEPT);
    sqlite3_bind_int64(row, 1, sequence);
    enum row_result result = rows_result(sqlite3_step(row));
    if (result == ROW_FOUND)
        *arguments = database_take_text(row, 0);
    database_release(row);
    return result;
}

/* ---- anchors ---- */

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
    sqlite3_stmt *row = database_statement(database, STATEMENT_ANCHOR_PUT);
    sqlite3_bind_int64(row, 1, anchor->place.sequence);
    database_bind_text(row, 2, anchor->place.hash);
    sqlite3_bind_int64(row, 3, anchor->at_ms);
    database_bind_text(row, 4, anchor->signature);
    sqlite3_bind_int(row, 5, is_start);
    return database_run(row);
}

const struct audit_rows sqlite_audit_rows = {
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
