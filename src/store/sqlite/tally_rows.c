/* The counts of what became of calls, and what the audit trail has of that. */
#include "rows.h"

#include "taskgate/store/tally.h"

static sqlite3_stmt *of_tool(struct database *database, unsigned which, int first,
                             const struct tally_key *key)
{
    sqlite3_stmt *row = database_statement(database, which);
    database_bind_text(row, first, key->source);
    database_bind_str(row, first + 1, key->tool);
    return row;
}

static sqlite3_stmt *of_day(struct database *database, unsigned which, const struct tally_key *key,
                            int64_t day_ms, const struct store_tally_counts *counts)
{
    sqlite3_stmt *row = of_tool(database, which, 1, key);
    database_bind_text(row, 3, key->owner);
    sqlite3_bind_int64(row, 4, day_ms);
    sqlite3_bind_int64(row, 5, counts->approved);
    sqlite3_bind_int64(row, 6, counts->rejected);
    sqlite3_bind_int64(row, 7, counts->expired);
    sqlite3_bind_int64(row, 8, counts->failed);
    return row;
}

static bool add(struct database *database, const struct tally_key *key, int64_t day_ms,
                const struct store_tally_counts *counts)
{
    return database_run(of_day(database, STATEMENT_TALLY_ADD, key, day_ms, counts));
}

static bool give(struct database *database, const struct tally_key *key, const char *heir,
                 int64_t day_ms, const struct store_tally_counts *counts)
{
    sqlite3_stmt *row = of_day(database, STATEMENT_TALLY_GIVE, key, day_ms, counts);
    database_bind_text(row, 9, heir);
    return database_run(row);
}

static bool read_counts(struct database *database, const struct tally_key *key, int64_t since_ms,
                        struct store_tally_counts *counts)
{
    sqlite3_stmt *row = of_tool(database, STATEMENT_TALLY_READ, 1, key);
    database_bind_text(row, 3, key->owner);
    sqlite3_bind_int64(row, 4, since_ms);
    bool is_read = sqlite3_step(row) == SQLITE_ROW;
    if (is_read)
        *counts = (struct store_tally_counts){
            .approved = sqlite3_column_int64(row, 0),
            .rejected = sqlite3_column_int64(row, 1),
            .expired = sqlite3_column_int64(row, 2),
            .failed = sqlite3_column_int64(row, 3),
        };
    database_release(row);
    return is_read;
}

static bool last(struct database *database, const struct tally_key *key, const char *but_id,
                 struct store_tally *tally)
{
    sqlite3_stmt *row = of_tool(database, STATEMENT_TALLY_LAST, 1, key);
    database_bind_text(row, 3, but_id);
    enum row_result result = rows_result(sqlite3_step(row));
    tally->has_last = result == ROW_FOUND;
    if (tally->has_last) {
        bool is_approval = str_equal(database_column_bytes(row, 0), STR("approve"));
        tally->state = is_approval ? TASK_APPROVED : TASK_REJECTED;
        tally->decided_ms = sqlite3_column_int64(row, 1);
        tally->person = database_take_text(row, 2);
        tally->reason = database_take_text(row, 3);
    }
    database_release(row);
    return result != ROW_FAILED;
}

static bool same(struct database *database, const struct tally_key *key, const struct task *task,
                 int64_t since_ms, struct store_tally *tally)
{
    sqlite3_stmt *row = of_tool(database, STATEMENT_TALLY_SAME, 2, key);
    database_bind_text(row, 1, task->arguments_digest);
    sqlite3_bind_int64(row, 4, since_ms);
    database_bind_text(row, 5, task->id);
    sqlite3_bind_int64(row, 6, STORE_TALLY_SAME_MOST);
    bool is_read = sqlite3_step(row) == SQLITE_ROW;
    if (is_read) {
        tally->same_approved = sqlite3_column_int64(row, 0);
        tally->same_ms = sqlite3_column_int64(row, 1);
    }
    database_release(row);
    return is_read;
}

const struct tally_rows sqlite_tally_rows = {
    .add = add,
    .give = give,
    .read = read_counts,
    .last = last,
    .same = same,
};
