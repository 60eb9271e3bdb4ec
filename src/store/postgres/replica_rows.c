/* Replicas, what they have claimed, leases, and the feed of changes. */
#include "rows.h"

static bool join(struct database *database, const char *id, int64_t now_ms, int64_t *epoch)
{
    database->written++;
    return rows_take_number(
        connection_read(database, STATEMENT_REPLICA_JOIN, VALUES(TEXT(id), NUMBER(now_ms))), epoch);
}

static enum row_result beat(struct database *database, const char *id, int64_t epoch,
                            int64_t now_ms)
{
    return connection_change(database, STATEMENT_REPLICA_BEAT,
                             VALUES(TEXT(id), NUMBER(epoch), NUMBER(now_ms)), NULL);
}

static bool fence(struct database *database, const char *but_id, int64_t before_ms)
{
    return connection_write(database, STATEMENT_REPLICA_FENCE,
                            VALUES(TEXT(but_id), NUMBER(before_ms)));
}

/* ---- executions ---- */

static enum row_result claim(struct database *database, const struct task *task, const char *id,
                             int64_t epoch)
{
    return connection_change(database, STATEMENT_CLAIM_PUT,
                             VALUES(TEXT(task->id), TEXT(id), NUMBER(epoch)), NULL);
}

static enum row_result claim_of(struct database *database, const struct task *task, char **id,
                                int64_t *epoch)
{
    PGresult *rows = connection_read(database, STATEMENT_CLAIM_GET, VALUES(TEXT(task->id)));
    enum row_result result = rows_any(rows);
    if (result == ROW_FOUND) {
        *id = row_text(rows, 0, 0);
        *epoch = row_number(rows, 0, 1);
    }
    PQclear(rows);
    return result;
}

static bool find_lost(struct database *database, struct id_list *list)
{
    return rows_take_ids(connection_read(database, STATEMENT_CLAIM_LOST, NO_VALUES), list);
}

/* ---- leases ---- */

static enum row_result lease(struct database *database, const struct lease_wish *wish,
                             int64_t now_ms)
{
    return connection_change(database, STATEMENT_LEASE_TAKE,
                             VALUES(TEXT(wish->name), TEXT(wish->replica), NUMBER(wish->epoch),
                                    NUMBER(wish->until_ms), NUMBER(now_ms)),
                             NULL);
}

/* ---- the feed: the lock of the writers gives its numbers the order of the commits ---- */

static bool feed_add(struct database *database, const struct feed_change *change, int64_t now_ms)
{
    database->tells = true;
    return connection_write(database, STATEMENT_FEED_ADD,
                            VALUES(STRING(change->task_id), STRING(change->replica),
                                   NUMBER(change->created), NUMBER(now_ms)));
}

static bool feed_end(struct database *database, int64_t *sequence)
{
    return rows_take_number(connection_read(database, STATEMENT_FEED_END, NO_VALUES), sequence);
}

static bool feed_read(struct database *database, int64_t after, size_t limit,
                      bool (*visit)(void *context, const struct feed_change *change), void *context)
{
    PGresult *rows = connection_read(database, STATEMENT_FEED_READ,
                                     VALUES(NUMBER(after), NUMBER((int64_t)limit)));
    bool is_read = rows != NULL, goes_on = is_read;
    for (int i = 0; goes_on && i < PQntuples(rows); i++) {
        const struct feed_change change = {
            .sequence = row_number(rows, i, 0),
            .task_id = row_bytes(rows, i, 1),
            .replica = row_bytes(rows, i, 2),
            .created = row_number(rows, i, 3) != 0,
        };
        goes_on = visit(context, &change);
    }
    PQclear(rows);
    return is_read;
}

static bool feed_purge(struct database *database, int64_t before_ms)
{
    return connection_write(database, STATEMENT_FEED_PURGE, VALUES(NUMBER(before_ms)));
}

const struct replica_rows postgres_replica_rows = {
    .join = join,
    .beat = beat,
    .fence = fence,
    .claim = claim,
    .claim_of = claim_of,
    .find_lost = find_lost,
    .lease = lease,
    .feed_add = feed_add,
    .feed_end = feed_end,
    .feed_read = feed_read,
    .feed_purge = feed_purge,
};
