/* Replicas, what they have claimed, leases, and the feed of changes. */
#include "rows.h"
#include "taskgate/core/memory.h"

/* After a statement that changes at most one row. */
static enum row_result run_one(struct database *database, sqlite3_stmt *row)
{
    if (!database_run(row))
        return ROW_FAILED;
    return sqlite3_changes(database->handle) == 1 ? ROW_FOUND : ROW_ABSENT;
}

static bool join(struct database *database, const char *id, int64_t now_ms, int64_t *epoch)
{
    sqlite3_stmt *row = database_statement(database, STATEMENT_REPLICA_JOIN);
    database_bind_text(row, 1, id);
    sqlite3_bind_int64(row, 2, now_ms);
    if (!database_run(row))
        return false;
    row = database_statement(database, STATEMENT_REPLICA_EPOCH);
    database_bind_text(row, 1, id);
    return rows_read_number(row, epoch);
}

static enum row_result beat(struct database *database, const char *id, int64_t epoch,
                            int64_t now_ms)
{
    sqlite3_stmt *row = database_statement(database, STATEMENT_REPLICA_BEAT);
    database_bind_text(row, 1, id);
    sqlite3_bind_int64(row, 2, epoch);
    sqlite3_bind_int64(row, 3, now_ms);
    return run_one(database, row);
}

static bool fence(struct database *database, const char *but_id, int64_t before_ms,
                  int64_t after_ms)
{
    sqlite3_stmt *row = database_statement(database, STATEMENT_REPLICA_FENCE);
    database_bind_text(row, 1, but_id);
    sqlite3_bind_int64(row, 2, before_ms);
    sqlite3_bind_int64(row, 3, after_ms);
    return database_run(row);
}

/* ---- executions ---- */

static enum row_result claim(struct database *database, const struct task *task, const char *id,
                             int64_t epoch)
{
    sqlite3_stmt *row = database_statement(database, STATEMENT_CLAIM_PUT);
    database_bind_text(row, 1, task->id);
    database_bind_text(row, 2, id);
    sqlite3_bind_int64(row, 3, epoch);
    return run_one(database, row);
}

static enum row_result claim_of(struct database *database, const struct task *task, char **id,
                                int64_t *epoch)
{
    sqlite3_stmt *row = database_statement(database, STATEMENT_CLAIM_GET);
    database_bind_text(row, 1, task->id);
    enum row_result result = rows_result(sqlite3_step(row));
    if (result == ROW_FOUND) {
        *id = database_take_text(row, 0);
        *epoch = sqlite3_column_int64(row, 1);
    }
    database_release(row);
    return result;
}

static bool keep(struct database *database, const char *task_id, const char *id, int64_t epoch)
{
    sqlite3_stmt *row = database_statement(database, STATEMENT_CLAIM_KEEP);
    database_bind_text(row, 1, task_id);
    database_bind_text(row, 2, id);
    sqlite3_bind_int64(row, 3, epoch);
    return database_run(row);
}

static enum row_result task_home(struct database *database, const char *task_id,
                                 struct task_home_row *home)
{
    sqlite3_stmt *row = database_statement(database, STATEMENT_TASK_HOME);
    database_bind_text(row, 1, task_id);
    enum row_result result = rows_result(sqlite3_step(row));
    if (result == ROW_FOUND) {
        home->replica = database_take_text(row, 0);
        home->address = database_take_text(row, 1);
        home->epoch = sqlite3_column_int64(row, 2);
        home->state = (enum task_state)sqlite3_column_int(row, 3);
        home->is_over = sqlite3_column_int(row, 4) != 0;
    }
    database_release(row);
    return result;
}

static bool find_lost(struct database *database, struct id_list *list)
{
    return rows_read_ids(database_statement(database, STATEMENT_CLAIM_LOST), list);
}

/* ---- leases ---- */

static enum row_result lease(struct database *database, const struct lease_wish *wish,
                             int64_t now_ms)
{
    sqlite3_stmt *row = database_statement(database, STATEMENT_LEASE_TAKE);
    database_bind_text(row, 1, wish->name);
    database_bind_text(row, 2, wish->replica);
    sqlite3_bind_int64(row, 3, wish->epoch);
    sqlite3_bind_int64(row, 4, wish->until_ms);
    sqlite3_bind_int64(row, 5, now_ms);
    return run_one(database, row);
}

/* ---- the feed: one writer at a time gives its numbers the order of the commits ---- */

static bool feed_add(struct database *database, const struct feed_change *change, int64_t now_ms)
{
    sqlite3_stmt *row = database_statement(database, STATEMENT_FEED_ADD);
    database_bind_str(row, 1, change->task_id);
    database_bind_str(row, 2, change->replica);
    sqlite3_bind_int(row, 3, change->created);
    sqlite3_bind_int64(row, 4, now_ms);
    return database_run(row);
}

static bool feed_end(struct database *database, int64_t *sequence)
{
    return rows_read_number(database_statement(database, STATEMENT_FEED_END), sequence);
}

static bool feed_read(struct database *database, int64_t after, size_t limit,
                      bool (*visit)(void *context, const struct feed_change *change), void *context)
{
    sqlite3_stmt *row = database_statement(database, STATEMENT_FEED_READ);
    sqlite3_bind_int64(row, 1, after);
    sqlite3_bind_int64(row, 2, (int64_t)limit);
    int code;
    while ((code = sqlite3_step(row)) == SQLITE_ROW) {
        const struct feed_change change = {
            .sequence = sqlite3_column_int64(row, 0),
            .task_id = database_column_bytes(row, 1),
            .replica = database_column_bytes(row, 2),
            .created = sqlite3_column_int(row, 3) != 0,
        };
        if (!visit(context, &change))
            break;
    }
    database_release(row);
    return code == SQLITE_ROW || code == SQLITE_DONE;
}

/* ---- what is known of them ---- */

static bool announce(struct database *database, const char *id, const char *address)
{
    sqlite3_stmt *row = database_statement(database, STATEMENT_REPLICA_ANNOUNCE);
    database_bind_text(row, 1, id);
    database_bind_text(row, 2, address);
    return database_run(row);
}

static bool list(struct database *database,
                 bool (*visit)(void *context, const struct replica_row *row), void *context)
{
    sqlite3_stmt *row = database_statement(database, STATEMENT_REPLICA_LIST);
    int code;
    while ((code = sqlite3_step(row)) == SQLITE_ROW) {
        const struct replica_row replica = {
            .id = database_column_bytes(row, 0),
            .address = database_column_bytes(row, 1),
            .epoch = sqlite3_column_int64(row, 2),
            .alive_ms = sqlite3_column_int64(row, 3),
            .seen_ms = sqlite3_column_int64(row, 4),
        };
        if (!visit(context, &replica))
            break;
    }
    database_release(row);
    return code == SQLITE_ROW || code == SQLITE_DONE;
}

static bool forget(struct database *database, int64_t before_ms)
{
    return rows_run_with(database, STATEMENT_REPLICA_FORGET, before_ms);
}

static bool hold(struct database *database, const char *id, int64_t now_ms)
{
    sqlite3_stmt *row = database_statement(database, STATEMENT_HOLD_PUT);
    database_bind_text(row, 1, id);
    sqlite3_bind_int64(row, 2, now_ms);
    return database_run(row);
}

static bool is_held(struct database *database, bool *held)
{
    int64_t count = 0;
    bool done = rows_read_number(database_statement(database, STATEMENT_HOLD_COUNT), &count);
    *held = count > 0;
    return done;
}

static bool release(struct database *database)
{
    return database_run(database_statement(database, STATEMENT_HOLD_DELETE));
}

/* ---- where sessions live ---- */

static sqlite3_stmt *bind_home(struct database *database, unsigned which,
                               const struct home_key *key)
{
    sqlite3_stmt *row = database_statement(database, which);
    database_bind_text(row, 1, key->source);
    database_bind_text(row, 2, key->session_digest);
    return row;
}

static enum row_result home_get(struct database *database, const struct home_key *key,
                                struct home_row *home)
{
    sqlite3_stmt *row = bind_home(database, STATEMENT_HOME_GET, key);
    enum row_result result = rows_result(sqlite3_step(row));
    if (result == ROW_FOUND) {
        home->replica = database_take_text(row, 0);
        home->epoch = sqlite3_column_int64(row, 1);
    }
    database_release(row);
    return result == ROW_FAILED ? ROW_FAILED : ROW_ABSENT;
}

static enum row_result home_take(struct database *database, const struct home_key *key,
                                 const char *id, int64_t epoch, int64_t now_ms,
                                 struct home_row *home)
{
    sqlite3_stmt *row = bind_home(database, STATEMENT_HOME_TAKE, key);
    database_bind_text(row, 3, id);
    sqlite3_bind_int64(row, 4, epoch);
    sqlite3_bind_int64(row, 5, now_ms);
    enum row_result result = rows_result(sqlite3_step(row));
    *home = (struct home_row){.epoch = epoch};
    if (result == ROW_FOUND) {
        home->replica = memory_copy_text(id);
        home->lost_epoch = sqlite3_column_int64(row, 1);
        if (sqlite3_column_bytes(row, 0) > 0)
            home->lost_replica = database_take_text(row, 0);
    }
    database_release(row);
    return result == ROW_ABSENT ? home_get(database, key, home) : result;
}

static bool home_lost_tasks(struct database *database, const struct home_key *key,
                            const struct home_row *home, struct id_list *list)
{
    sqlite3_stmt *row = bind_home(database, STATEMENT_HOME_LOST_TASKS, key);
    sqlite3_bind_int(row, 3, TASK_FAILED);
    database_bind_text(row, 4, home->lost_replica);
    sqlite3_bind_int64(row, 5, home->lost_epoch);
    return rows_read_ids(row, list);
}

static bool home_remove(struct database *database, const struct home_key *key)
{
    return database_run(bind_home(database, STATEMENT_HOME_DELETE, key));
}

const struct replica_rows sqlite_replica_rows = {
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
