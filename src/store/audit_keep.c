/* The age of the audit trail: what is kept, for how long, and the anchors that stand for it. */
#include <stdlib.h>
#include <string.h>

#include "audit.h"
#include "audit_rows.h"
#include "outbox.h"
#include "taskgate/core/log.h"
#include "taskgate/core/owned.h"

/* Per sweep, so that callers never wait behind a long one. */
#define PURGE_LIMIT 1024

/* ---- anchors ---- */

/* For the operators' endpoints, with the members that the log has. */
static bool audit_keep_note(struct batch *batch, const struct store_anchor *anchor)
{
    OWNED_BUFFER(text);
    store_anchor_write(&text, anchor);
    OWNED char *json = buffer_take(&text, NULL);
    return outbox_note_anchor(batch, json);
}

/* Stores an anchor and leaves it for the log. `is_start`: the rows up to it go. */
static bool put_anchor(struct batch *batch, const struct store_chain *place, bool is_start)
{
    struct store_anchor anchor = {.place = *place, .at_ms = batch->now_ms};
    store_anchor_sign(&anchor, batch->audit->key);
    if (!rows_write(batch->database, STATEMENT_ANCHOR_PUT,
                    VALUES(NUMBER(place->sequence), TEXT(place->hash), NUMBER(anchor.at_ms),
                           TEXT(anchor.signature), NUMBER(is_start))) ||
        !audit_keep_note(batch, &anchor))
        return false;
    size_t count = batch->anchor_count;
    if (count < sizeof batch->anchors / sizeof *batch->anchors) {
        batch->anchors[count] = anchor;
        batch->anchor_count++;
    }
    return true;
}

bool audit_anchor(struct batch *batch)
{
    struct store_anchor last = {.at_ms = 0};
    struct store_chain end;
    if (batch->audit->anchor_every_ms == 0)
        return true;
    if (audit_rows_anchor_last(batch->database, &last) == ROW_FAILED)
        return false;
    int64_t since_ms = batch->now_ms - last.at_ms;
    bool was_ahead = since_ms < -batch->audit->anchor_every_ms;
    if (was_ahead)
        log_warn("The last audit anchor was made with a clock that was ahead; another follows",
                 LOG_NUMBER("sequence", last.place.sequence), LOG_NUMBER("by_ms", -since_ms));
    if (since_ms < batch->audit->anchor_every_ms && !was_ahead)
        return true;
    if (!audit_rows_end(batch->database, &end))
        return false;
    return end.sequence <= last.place.sequence || put_anchor(batch, &end, false);
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

struct old {
    int64_t before_ms, ahead_ms;
    struct store_chain last; /* of the oldest rows that are all too old; sequence 0: none is */
    struct store_chain seen;
    size_t count, ahead; /* rows that were looked at; of these those with a clock that was ahead */
};

/* A row that lies further ahead than rows are kept was written with a clock that was ahead. It is
 * no younger than the next one with a time of its own. */
static bool audit_keep_look(void *context, const struct audit_row *row)
{
    struct old *old = context;
    struct str hash = row->texts[AUDIT_hash];
    bool is_ahead = row->at_ms > old->ahead_ms;
    if (row->at_ms >= old->before_ms && !is_ahead)
        return false;
    old->count++;
    old->ahead += is_ahead;
    old->seen.sequence = row->sequence;
    if (hash.length == sizeof old->seen.hash - 1)
        memcpy(old->seen.hash, hash.bytes, hash.length);
    if (!is_ahead || old->count == PURGE_LIMIT)
        old->last = old->seen;
    return true;
}

static bool remove_until(struct database *database, int64_t sequence)
{
    int64_t count;
    return rows_purge(database, STATEMENT_AUDIT_REMOVE, VALUES(NUMBER(sequence)), &count) &&
           rows_purge(database, STATEMENT_AUDIT_REMOVE_KEPT, VALUES(NUMBER(sequence)), &count) &&
           rows_write(database, STATEMENT_ANCHOR_REMOVE, VALUES(NUMBER(sequence)));
}

bool audit_purge(struct batch *batch)
{
    struct old old = {.before_ms = batch->now_ms - batch->audit->keep_ms,
                      .ahead_ms = batch->now_ms + batch->audit->keep_ms};
    store_chain_init(&old.last);
    store_chain_init(&old.seen);
    if (batch->audit->keep_ms == 0)
        return true;
    if (!audit_rows_page(batch->database, 0, PURGE_LIMIT, audit_keep_look, &old))
        return false;
    if (old.last.sequence > 0 && old.ahead > 0)
        log_warn("Audit entries that were written with a clock that was ahead go with those around "
                 "them",
                 LOG_NUMBER("entries", (int64_t)old.ahead));
    return old.last.sequence == 0 ||
           (put_anchor(batch, &old.last, true) && remove_until(batch->database, old.last.sequence));
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
