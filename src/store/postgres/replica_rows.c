/* Replicas, what they have claimed, leases, and the feed of changes. */
#include "rows.h"
#include "taskgate/core/memory.h"

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

static bool fence(struct database *database, const char *but_id, int64_t before_ms,
                  int64_t after_ms)
{
    return connection_write(database, STATEMENT_REPLICA_FENCE,
                            VALUES(TEXT(but_id), NUMBER(before_ms), NUMBER(after_ms)));
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

static bool keep(struct database *database, const char *task_id, const char *id, int64_t epoch)
{
    return connection_write(database, STATEMENT_CLAIM_KEEP,
                            VALUES(TEXT(task_id), TEXT(id), NUMBER(epoch)));
}

static enum row_result task_home(struct database *database, const char *task_id,
                                 struct task_home_row *home)
{
    PGresult *rows = connection_read(database, STATEMENT_TASK_HOME, VALUES(TEXT(task_id)));
    enum row_result result = rows_any(rows);
    if (result == ROW_FOUND) {
        home->replica = row_text(rows, 0, 0);
        home->address = row_text(rows, 0, 1);
        home->epoch = row_number(rows, 0, 2);
        home->state = (enum task_state)row_number(rows, 0, 3);
        home->is_over = row_number(rows, 0, 4) != 0;
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
    owed_add_change(&database->owed, change, now_ms);
    return true;
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

/* ---- what is known of them ---- */

static bool announce(struct database *database, const char *id, const char *address)
{
    return connection_write(database, STATEMENT_REPLICA_ANNOUNCE, VALUES(TEXT(id), TEXT(address)));
}

static bool list(struct database *database,
                 bool (*visit)(void *context, const struct replica_row *row), void *context)
{
    PGresult *rows = connection_read(database, STATEMENT_REPLICA_LIST, NO_VALUES);
    bool is_read = rows != NULL, goes_on = is_read;
    for (int i = 0; goes_on && i < PQntuples(rows); i++) {
        const struct replica_row row = {
            .id = row_bytes(rows, i, 0),
            .address = row_bytes(rows, i, 1),
            .epoch = row_number(rows, i, 2),
            .alive_ms = row_number(rows, i, 3),
            .seen_ms = row_number(rows, i, 4),
        };
        goes_on = visit(context, &row);
    }
    PQclear(rows);
    return is_read;
}

static bool forget(struct database *database, int64_t before_ms)
{
    return connection_write(database, STATEMENT_REPLICA_FORGET, VALUES(NUMBER(before_ms)));
}

static bool hold(struct database *database, const char *id, int64_t now_ms)
{
    return connection_write(database, STATEMENT_HOLD_PUT, VALUES(TEXT(id), NUMBER(now_ms)));
}

static bool is_held(struct database *database, bool *held)
{
    int64_t count = 0;
    bool done =
        rows_take_number(connection_read(database, STATEMENT_HOLD_COUNT, NO_VALUES), &count);
    *held = count > 0;
    return done;
}

static bool release(struct database *database)
{
    return connection_write(database, STATEMENT_HOLD_DELETE, NO_VALUES);
}

/* ---- where sessions live ---- */

static enum row_result home_get(struct database *database, const struct home_key *key,
                                struct home_row *home)
{
    PGresult *rows = connection_read(database, STATEMENT_HOME_GET,
                                     VALUES(TEXT(key->source), TEXT(key->session_digest)));
    enum row_result result = rows_any(rows);
    if (result == ROW_FOUND) {
        home->replica = row_text(rows, 0, 0);
        home->epoch = row_number(rows, 0, 1);
    }
    PQclear(rows);
    return result == ROW_FAILED ? ROW_FAILED : ROW_ABSENT;
}

static enum row_result home_take(struct database *database, const struct home_key *key,
                                 const char *id, int64_t epoch, int64_t now_ms,
                                 struct home_row *home)
{
    database->written++;
    PGresult *rows = connection_read(database, STATEMENT_HOME_TAKE,
                                     VALUES(TEXT(key->source), TEXT(key->session_digest), TEXT(id),
                                            NUMBER(epoch), NUMBER(now_ms)));
    enum row_result result = rows_any(rows);
    *home = (struct home_row){.epoch = epoch};
    if (result == ROW_FOUND) {
        home->replica = memory_copy_text(id);
        home->lost_epoch = row_number(rows, 0, 1);
        if (row_bytes(rows, 0, 0).length > 0)
            home->lost_replica = row_text(rows, 0, 0);
    }
    PQclear(rows);
    return result == ROW_ABSENT ? home_get(database, key, home) : result;
}

static bool home_lost_tasks(struct database *database, const struct home_key *key,
                            const struct home_row *home, struct id_list *list)
{
    return rows_take_ids(
        connection_read(database, STATEMENT_HOME_LOST_TASKS,
                        VALUES(TEXT(key->source), TEXT(key->session_digest), NUMBER(TASK_FAILED),
                               TEXT(home->lost_replica), NUMBER(home->lost_epoch))),
        list);
}

static bool home_remove(struct database *database, const struct home_key *key)
{
    return connection_write(database, STATEMENT_HOME_DELETE,
                            VALUES(TEXT(key->source), TEXT(key->session_digest)));
}

const struct replica_rows postgres_replica_rows = {
    .join = join,
    .beat = beat,
    .fence = fence,
    .claim = claim,
    .keep = keep,
    .task_home = task_home,
    .claim_of = claim_of,
    .find_lost = find_lost,
    .lease = lease,
    .feed_add = feed_add,
    .feed_end = feed_end,
    .feed_read = feed_read,
    .announce = announce,
    .list = list,
    .forget = forget,
    .hold = hold,
    .is_held = is_held,
    .release = release,
    .home_take = home_take,
    .home_lost_tasks = home_lost_tasks,
    .home_remove = home_remove,
};
