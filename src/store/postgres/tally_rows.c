/* The counts of what became of calls, and what the audit trail has of that. */
#include "rows.h"

#include "taskgate/store/tally.h"

static bool add(struct database *database, const struct tally_key *key, int64_t day_ms,
                const struct store_tally_counts *counts)
{
    return connection_write(database, STATEMENT_TALLY_ADD,
                            VALUES(TEXT(key->source), STRING(key->tool), TEXT(key->owner),
                                   NUMBER(day_ms), NUMBER(counts->approved),
                                   NUMBER(counts->rejected), NUMBER(counts->expired),
                                   NUMBER(counts->failed)));
}

static bool give(struct database *database, const struct tally_key *key, const char *heir,
                 int64_t day_ms, const struct store_tally_counts *counts)
{
    return connection_write(database, STATEMENT_TALLY_GIVE,
                            VALUES(TEXT(key->source), STRING(key->tool), TEXT(key->owner),
                                   NUMBER(day_ms), NUMBER(counts->approved),
                                   NUMBER(counts->rejected), NUMBER(counts->expired),
                                   NUMBER(counts->failed), TEXT(heir)));
}

static bool read_counts(struct database *database, const struct tally_key *key, int64_t since_ms,
                        struct store_tally_counts *counts)
{
    PGresult *rows = connection_read(
        database, STATEMENT_TALLY_READ,
        VALUES(TEXT(key->source), STRING(key->tool), TEXT(key->owner), NUMBER(since_ms)));
    bool is_read = rows_any(rows) == ROW_FOUND;
    if (is_read)
        *counts = (struct store_tally_counts){
            .approved = row_number(rows, 0, 0),
            .rejected = row_number(rows, 0, 1),
            .expired = row_number(rows, 0, 2),
            .failed = row_number(rows, 0, 3),
        };
    PQclear(rows);
    return is_read;
}

static bool last(struct database *database, const struct tally_key *key, const char *but_id,
                 struct store_tally *tally)
{
    PGresult *rows = connection_read(database, STATEMENT_TALLY_LAST,
                                     VALUES(TEXT(key->source), STRING(key->tool), TEXT(but_id)));
    enum row_result result = rows_any(rows);
    tally->has_last = result == ROW_FOUND;
    if (tally->has_last) {
        bool is_approval = str_equal(row_bytes(rows, 0, 0), STR("approve"));
        tally->state = is_approval ? TASK_APPROVED : TASK_REJECTED;
        tally->decided_ms = row_number(rows, 0, 1);
        tally->person = row_text(rows, 0, 2);
        tally->reason = row_text(rows, 0, 3);
    }
    PQclear(rows);
    return result != ROW_FAILED;
}

static bool same(struct database *database, const struct tally_key *key, const struct task *task,
                 int64_t since_ms, struct store_tally *tally)
{
    PGresult *rows =
        connection_read(database, STATEMENT_TALLY_SAME,
                        VALUES(TEXT(task->arguments_digest), TEXT(key->source), STRING(key->tool),
                               NUMBER(since_ms), TEXT(task->id), NUMBER(STORE_TALLY_SAME_MOST)));
    bool is_read = rows_any(rows) == ROW_FOUND;
    if (is_read) {
        tally->same_approved = row_number(rows, 0, 0);
        tally->same_ms = row_number(rows, 0, 1);
    }
    PQclear(rows);
    return is_read;
}

const struct tally_rows postgres_tally_rows = {
    .add = add,
    .give = give,
    .read = read_counts,
    .last = last,
    .same = same,
};
