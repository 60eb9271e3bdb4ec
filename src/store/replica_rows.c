/* Rows of replicas that several operations read or write. */
#include "replica_rows.h"

#include <stdlib.h>
#include <string.h>

#include "taskgate/core/memory.h"

bool replica_rows_keep(struct database *database, const char *task_id, const char *id,
                       int64_t epoch)
{
    return rows_write(database, STATEMENT_CLAIM_KEEP,
                      VALUES(TEXT(task_id), TEXT(id), NUMBER(epoch)));
}

enum row_result replica_rows_beat(struct database *database, const char *id, int64_t epoch,
                                  int64_t now_ms)
{
    return rows_change(database, STATEMENT_REPLICA_BEAT,
                       VALUES(TEXT(id), NUMBER(epoch), NUMBER(now_ms)));
}

bool replica_rows_fence(struct database *database, const char *but_id, int64_t before_ms,
                        int64_t after_ms)
{
    return rows_write(database, STATEMENT_REPLICA_FENCE,
                      VALUES(TEXT(but_id), NUMBER(before_ms), NUMBER(after_ms)));
}

enum row_result replica_rows_task_home(struct database *database, const char *task_id,
                                       struct task_home_row *home)
{
    static const struct column columns[] = {
        {"replica", COLUMN_TEXT, offsetof(struct task_home_row, replica)},
        {"address", COLUMN_TEXT, offsetof(struct task_home_row, address)},
        {"epoch", COLUMN_NUMBER, offsetof(struct task_home_row, epoch)},
        {"state", COLUMN_UNSIGNED, offsetof(struct task_home_row, state)},
        {"is_over", COLUMN_FLAG, offsetof(struct task_home_row, is_over)},
    };
    static const struct record record = {.columns = columns, .count = 5};
    return rows_find(database, STATEMENT_TASK_HOME, VALUES(TEXT(task_id)), &record, home);
}

/* ---- the feed: one writer at a time gives its numbers the order of the commits ---- */

bool replica_rows_feed_end(struct database *database, int64_t *sequence)
{
    return rows_number(database, STATEMENT_FEED_END, NO_VALUES, sequence);
}

struct feed_reading {
    feed_visitor *visit;
    void *context;
};

static bool visit_change(void *context, const struct value *row)
{
    const struct feed_reading *reading = context;
    const struct feed_change change = {.sequence = row[0].number,
                                       .task_id = row[1].text,
                                       .replica = row[2].text,
                                       .created = row[3].number != 0};
    return reading->visit(reading->context, &change);
}

bool replica_rows_feed_read(struct database *database, int64_t after, size_t limit,
                            feed_visitor *visit, void *context)
{
    return rows_read(database, STATEMENT_FEED_READ, VALUES(NUMBER(after), NUMBER((int64_t)limit)),
                     visit_change, &(struct feed_reading){visit, context});
}

bool replica_rows_feed_add(struct database *database, const struct feed_change *change,
                           int64_t now_ms)
{
    return rows_write(database, STATEMENT_FEED_ADD,
                      VALUES(STRING(change->task_id), STRING(change->replica),
                             NUMBER(change->created), NUMBER(now_ms)));
}

/* ---- what is known of them ---- */

static const struct column replica_columns[] = {
    {"id", COLUMN_TEXT, offsetof(struct replica_row, id)},
    {"address", COLUMN_TEXT, offsetof(struct replica_row, address)},
    {"epoch", COLUMN_NUMBER, offsetof(struct replica_row, epoch)},
    {"alive_ms", COLUMN_NUMBER, offsetof(struct replica_row, alive_ms)},
    {"seen_ms", COLUMN_NUMBER, offsetof(struct replica_row, seen_ms)},
};
static const struct record replica_record = {
    .bytes = sizeof(struct replica_row), .columns = replica_columns, .count = 5};

bool replica_rows_list(struct database *database, struct record_list *list)
{
    *list = (struct record_list){&replica_record};
    return rows_list(database, STATEMENT_REPLICA_LIST, NO_VALUES, list);
}

const struct replica_row *replica_rows_find(const struct record_list *list, const char *id)
{
    const struct replica_row *rows = list->items;
    for (size_t i = 0; i < list->count; i++) {
        if (strcmp(rows[i].id, id) == 0)
            return &rows[i];
    }
    return NULL;
}

bool replica_rows_is_held(struct database *database, bool *is_held)
{
    int64_t count = 0;
    bool done = rows_number(database, STATEMENT_HOLD_COUNT, NO_VALUES, &count);
    *is_held = done && count > 0;
    return done;
}

/* ---- where sessions live ---- */

enum row_result replica_rows_home_take(struct database *database, const struct home_key *key,
                                       const char *id, int64_t epoch, int64_t now_ms,
                                       struct home_row *home)
{
    static const struct column lost_columns[] = {
        {"lost_replica", COLUMN_TEXT, offsetof(struct home_row, lost_replica)},
        {"lost_epoch", COLUMN_NUMBER, offsetof(struct home_row, lost_epoch)},
    };
    static const struct column home_columns[] = {
        {"replica", COLUMN_TEXT, offsetof(struct home_row, replica)},
        {"epoch", COLUMN_NUMBER, offsetof(struct home_row, epoch)},
    };
    static const struct record lost = {.columns = lost_columns, .count = 2};
    static const struct record present = {.columns = home_columns, .count = 2};
    *home = (struct home_row){.epoch = epoch};
    enum row_result result = rows_find(database, STATEMENT_HOME_TAKE,
                                       VALUES(TEXT(key->source), TEXT(key->session_digest),
                                              TEXT(id), NUMBER(epoch), NUMBER(now_ms)),
                                       &lost, home);
    if (result == ROW_ABSENT) {
        result = rows_find(database, STATEMENT_HOME_GET,
                           VALUES(TEXT(key->source), TEXT(key->session_digest)), &present, home);
        return result == ROW_FAILED ? ROW_FAILED : ROW_ABSENT;
    }
    if (result == ROW_FOUND)
        home->replica = memory_copy_text(id);
    if (home->lost_replica && !*home->lost_replica) {
        free(home->lost_replica);
        home->lost_replica = NULL;
    }
    return result;
}

/* ---- the other replicas, as other threads see them ---- */

void peers_add(struct peers *peers, const struct replica_row *row, enum store_peer_state state)
{
    peers->items = memory_grow_array(peers->items, peers->count + 1, sizeof *peers->items);
    peers->items[peers->count++] = (struct store_peer){
        .id = memory_copy_text(row->id),
        .epoch = row->epoch,
        .address = memory_copy_text(row->address),
        .state = state,
    };
}

void peers_finish(struct peers *peers)
{
    for (size_t i = 0; i < peers->count; i++) {
        free((char *)peers->items[i].id);
        free((char *)peers->items[i].address);
    }
    free(peers->items);
    *peers = (struct peers){NULL, 0};
}
