/* The age of the audit trail: what is kept, for how long, and the anchors that stand for it. */
#include <stdlib.h>
#include <string.h>

#include "audit.h"
#include "audit_row.h"
#include "outbox.h"
#include "taskgate/core/log.h"

/* Per sweep, so that callers never wait behind a long one. */
#define PURGE_LIMIT 1024

/* ---- anchors ---- */

void audit_anchor_read(sqlite3_stmt *row, struct store_anchor *anchor)
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

/* For the operators' endpoints, with the members that the log has. */
static bool note(struct batch *batch, const struct store_anchor *anchor)
{
    struct buffer text;
    buffer_init(&text);
    store_anchor_write(&text, anchor);
    char *json = buffer_take(&text, NULL);
    bool done = outbox_note_anchor(batch, json);
    free(json);
    return done;
}

/* Stores an anchor and leaves it for the log. `is_start`: the rows up to it go. */
static bool put_anchor(struct batch *batch, const struct store_chain *place, bool is_start)
{
    struct store_anchor anchor = {.place = *place, .at_ms = batch->now_ms};
    store_anchor_sign(&anchor, batch->audit->key);
    sqlite3_stmt *row = database_statement(batch->database, STATEMENT_ANCHOR_PUT);
    sqlite3_bind_int64(row, 1, anchor.place.sequence);
    database_bind_text(row, 2, anchor.place.hash);
    sqlite3_bind_int64(row, 3, anchor.at_ms);
    database_bind_text(row, 4, anchor.signature);
    sqlite3_bind_int(row, 5, is_start);
    if (!database_run(row) || !note(batch, &anchor))
        return false;
    size_t count = batch->anchor_count;
    if (count < sizeof batch->anchors / sizeof *batch->anchors) {
        batch->anchors[count] = anchor;
        batch->anchor_count++;
    }
    return true;
}

static int read_place(sqlite3_stmt *row, struct store_chain *place, int64_t *at_ms)
{
    struct store_anchor anchor = {.at_ms = 0};
    int code = sqlite3_step(row);
    store_chain_init(&anchor.place);
    if (code == SQLITE_ROW)
        audit_anchor_read(row, &anchor);
    *place = anchor.place;
    *at_ms = anchor.at_ms;
    return code;
}

bool audit_anchor(struct batch *batch)
{
    struct store_chain end, last;
    int64_t at_ms;
    if (batch->audit->anchor_every_ms == 0)
        return true;
    sqlite3_stmt *row = database_statement(batch->database, STATEMENT_ANCHOR_LAST);
    int code = read_place(row, &last, &at_ms);
    database_release(row);
    if (code != SQLITE_ROW && code != SQLITE_DONE)
        return false;
    if (batch->now_ms - at_ms < batch->audit->anchor_every_ms)
        return true;
    row = database_statement(batch->database, STATEMENT_AUDIT_END);
    code = read_place(row, &end, &at_ms);
    database_release(row);
    if (code != SQLITE_ROW || end.sequence <= last.sequence)
        return code == SQLITE_ROW || code == SQLITE_DONE;
    return put_anchor(batch, &end, false);
}

void audit_log_anchors(const struct batch *batch)
{
    for (size_t i = 0; i < batch->anchor_count; i++) {
        const struct store_anchor *anchor = &batch->anchors[i];
        log_info_at(anchor->at_ms, "Audit anchor", LOG_NUMBER("sequence", anchor->place.sequence),
                    LOG_TEXT("hash", anchor->place.hash), LOG_TEXT("signature", anchor->signature));
    }
}

/* ---- what is too old ---- */

/* The last of the oldest rows that are all too old; sequence 0: none is. */
static bool find_old(struct batch *batch, struct store_chain *last)
{
    int64_t before_ms = batch->now_ms - batch->audit->keep_ms;
    sqlite3_stmt *row = database_statement(batch->database, STATEMENT_AUDIT_OLDEST);
    sqlite3_bind_int64(row, 1, PURGE_LIMIT);
    store_chain_init(last);
    int code;
    while ((code = sqlite3_step(row)) == SQLITE_ROW && sqlite3_column_int64(row, 2) < before_ms) {
        struct str hash = database_column_bytes(row, 1);
        last->sequence = sqlite3_column_int64(row, 0);
        if (hash.length == sizeof last->hash - 1)
            memcpy(last->hash, hash.bytes, hash.length);
    }
    database_release(row);
    return code == SQLITE_ROW || code == SQLITE_DONE;
}

static bool run_up_to(struct batch *batch, enum statement which, int64_t number)
{
    sqlite3_stmt *row = database_statement(batch->database, which);
    sqlite3_bind_int64(row, 1, number);
    return database_run(row);
}

bool audit_purge(struct batch *batch)
{
    struct store_chain last;
    if (!run_up_to(batch, STATEMENT_AUDIT_FORGET, batch->now_ms))
        return false;
    if (batch->audit->keep_ms == 0)
        return true;
    if (!find_old(batch, &last))
        return false;
    return last.sequence == 0 || (put_anchor(batch, &last, true) &&
                                  run_up_to(batch, STATEMENT_AUDIT_REMOVE, last.sequence) &&
                                  run_up_to(batch, STATEMENT_AUDIT_REMOVE_KEPT, last.sequence) &&
                                  run_up_to(batch, STATEMENT_ANCHOR_REMOVE, last.sequence));
}

int64_t audit_sweep_again_ms(const struct batch *batch)
{
    const int64_t every_ms[] = {batch->audit->keep_arguments_ms, batch->audit->keep_ms,
                                batch->audit->anchor_every_ms};
    int64_t again_ms = INT64_MAX;
    for (size_t i = 0; i < sizeof every_ms / sizeof *every_ms; i++) {
        if (every_ms[i] > 0 && batch->now_ms + every_ms[i] < again_ms)
            again_ms = batch->now_ms + every_ms[i];
    }
    return again_ms;
}
