/* The rows that commands read beside the store that writes the file. */
#include "rows.h"

static sqlite3_stmt *prepare(struct database *database, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    sqlite3_prepare_v2(database->handle, sql, -1, &statement, NULL);
    return statement;
}

static bool first_since(struct database *database, int64_t since_ms, int64_t *sequence)
{
    sqlite3_stmt *row =
        prepare(database, "SELECT sequence FROM audit WHERE at_ms >= ?1 ORDER BY sequence LIMIT 1");
    int code = SQLITE_ERROR;
    *sequence = INT64_MAX;
    if (row) {
        sqlite3_bind_int64(row, 1, since_ms);
        code = sqlite3_step(row);
    }
    if (code == SQLITE_ROW)
        *sequence = sqlite3_column_int64(row, 0);
    sqlite3_finalize(row);
    return code == SQLITE_ROW || code == SQLITE_DONE;
}

static bool last_given(struct database *database, int64_t *sequence)
{
    sqlite3_stmt *row = prepare(database, "SELECT seq FROM sqlite_sequence WHERE name = 'audit'");
    int code = row ? sqlite3_step(row) : SQLITE_ERROR;
    *sequence = code == SQLITE_ROW ? sqlite3_column_int64(row, 0) : 0;
    sqlite3_finalize(row);
    return code == SQLITE_ROW || code == SQLITE_DONE;
}

static bool kept(struct database *database,
                 bool (*visit)(void *context, int64_t sequence, struct str digest,
                               struct str arguments),
                 void *context)
{
    sqlite3_stmt *row = prepare(database, "SELECT sequence, kept_digest, arguments FROM audit_kept"
                                          " JOIN audit USING (sequence) ORDER BY sequence");
    int code = row ? SQLITE_ROW : SQLITE_ERROR;
    while (code == SQLITE_ROW && (code = sqlite3_step(row)) == SQLITE_ROW) {
        if (!visit(context, sqlite3_column_int64(row, 0), database_column_bytes(row, 1),
                   database_column_bytes(row, 2)))
            break;
    }
    sqlite3_finalize(row);
    return code == SQLITE_ROW || code == SQLITE_DONE;
}

static const char all_calls[] =
    "SELECT audit.at_ms, audit.task_id, audit.decision,"
    " CASE WHEN task_request.redacted THEN NULL ELSE task_request.arguments END FROM audit"
    " LEFT JOIN task ON task.id = audit.task_id"
    " LEFT JOIN task_request ON task_request.task = task.sequence"
    " WHERE audit.event = 'create' AND audit.at_ms >= ?1 ORDER BY audit.sequence";

static bool calls(struct database *database, int64_t since_ms, store_history_visitor visitor,
                  void *context)
{
    sqlite3_stmt *row = prepare(database, all_calls);
    int code = row ? SQLITE_ROW : SQLITE_ERROR;
    if (row)
        sqlite3_bind_int64(row, 1, since_ms);
    while (code == SQLITE_ROW && (code = sqlite3_step(row)) == SQLITE_ROW) {
        const struct store_history_call call = {
            .at_ms = sqlite3_column_int64(row, 0),
            .task_id = database_column_bytes(row, 1),
            .decision = database_column_bytes(row, 2),
            .has_arguments = sqlite3_column_type(row, 3) != SQLITE_NULL,
            .arguments = database_column_bytes(row, 3),
        };
        if (!visitor(context, &call))
            break;
    }
    sqlite3_finalize(row);
    return code == SQLITE_ROW || code == SQLITE_DONE;
}

const struct reading_rows sqlite_reading_rows = {
    .first_since = first_since,
    .last_given = last_given,
    .kept = kept,
    .calls = calls,
};
