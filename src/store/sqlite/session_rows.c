/* Sessions, the tokens that upstream accepted in them, and operators who have signed in. */
#include "rows.h"
#include "taskgate/core/memory.h"

/* ---- sessions ---- */

static bool put(struct database *database, const struct store_session *session, size_t most)
{
    sqlite3_stmt *row = database_statement(database, STATEMENT_SESSION_PUT);
    database_bind_text(row, 1, session->source);
    database_bind_text(row, 2, session->id_digest);
    database_bind_text(row, 3, session->version);
    database_bind_text(row, 4, session->client_name);
    database_bind_text(row, 5, session->client_version);
    database_bind_text(row, 6, session->client_capabilities);
    sqlite3_bind_int(row, 7, session->upstream_tasks);
    sqlite3_bind_int(row, 8, session->upstream_sse);
    sqlite3_bind_int64(row, 9, session->seen_ms);
    database_bind_text(row, 10, session->owner);
    if (!database_run(row))
        return false;
    row = database_statement(database, STATEMENT_SESSION_DROP_OF_OWNER);
    database_bind_text(row, 1, session->owner);
    sqlite3_bind_int64(row, 2, (int64_t)most);
    return database_run(row);
}

static bool keep_latest(struct database *database, size_t most)
{
    return rows_run_with(database, STATEMENT_SESSION_DROP_OLDEST, (int64_t)most);
}

static struct store_session *read_session(sqlite3_stmt *row)
{
    struct store_session *session = memory_alloc(sizeof *session);
    *session = (struct store_session){
        .source = database_take_text(row, 0),
        .id_digest = database_take_text(row, 1),
        .version = database_take_text(row, 2),
        .client_name = database_take_text(row, 3),
        .client_version = database_take_text(row, 4),
        .client_capabilities = database_take_text(row, 5),
        .upstream_tasks = sqlite3_column_int(row, 6) != 0,
        .upstream_sse = sqlite3_column_int(row, 7) != 0,
        .seen_ms = sqlite3_column_int64(row, 8),
    };
    return session;
}

static enum row_result get(struct database *database, const char *source, const char *id_digest,
                           struct store_session **session)
{
    sqlite3_stmt *row = database_statement(database, STATEMENT_SESSION_GET);
    database_bind_text(row, 1, source);
    database_bind_text(row, 2, id_digest);
    enum row_result result = rows_result(sqlite3_step(row));
    if (result == ROW_FOUND)
        *session = read_session(row);
    database_release(row);
    return result;
}

static bool run_by_session(struct database *database, unsigned which, const char *source,
                           const char *id_digest)
{
    sqlite3_stmt *row = database_statement(database, which);
    database_bind_text(row, 1, source);
    database_bind_text(row, 2, id_digest);
    return database_run(row);
}

/* A session that has ended proves nothing about its tokens any more. */
static bool remove_session(struct database *database, const char *source, const char *id_digest)
{
    return run_by_session(database, STATEMENT_SESSION_DELETE, source, id_digest) &&
           run_by_session(database, STATEMENT_PAIR_DELETE, source, id_digest);
}

/* ---- pairs ---- */

static sqlite3_stmt *bind_pair(struct database *database, unsigned which, const char *source,
                               const char *session_digest, const char *token_digest)
{
    sqlite3_stmt *row = database_statement(database, which);
    database_bind_text(row, 1, source);
    database_bind_text(row, 2, session_digest);
    database_bind_text(row, 3, token_digest);
    return row;
}

static bool pair_put(struct database *database, const char *source, const char *session_digest,
                     const char *token_digest, int64_t accepted_ms)
{
    sqlite3_stmt *row =
        bind_pair(database, STATEMENT_PAIR_PUT, source, session_digest, token_digest);
    sqlite3_bind_int64(row, 4, accepted_ms);
    if (!database_run(row))
        return false;
    row = database_statement(database, STATEMENT_SESSION_SEEN);
    database_bind_text(row, 1, source);
    database_bind_text(row, 2, session_digest);
    sqlite3_bind_int64(row, 3, accepted_ms);
    return database_run(row);
}

static bool pairs_keep_latest(struct database *database, size_t most)
{
    return rows_run_with(database, STATEMENT_PAIR_DROP_OLDEST, (int64_t)most);
}

static enum row_result pair_get(struct database *database, const char *source,
                                const char *session_digest, const char *token_digest)
{
    sqlite3_stmt *row =
        bind_pair(database, STATEMENT_PAIR_GET, source, session_digest, token_digest);
    enum row_result result = rows_result(sqlite3_step(row));
    database_release(row);
    return result;
}

/* ---- sign-ins ---- */

static bool sign_in_put(struct database *database, const struct store_sign_in *sign_in, size_t most)
{
    sqlite3_stmt *row = database_statement(database, STATEMENT_SIGN_IN_PUT);
    database_bind_text(row, 1, sign_in->digest);
    database_bind_text(row, 2, sign_in->person);
    database_bind_text(row, 3, sign_in->issuer);
    database_bind_text(row, 4, sign_in->claims);
    sqlite3_bind_int64(row, 5, sign_in->created_ms);
    sqlite3_bind_int64(row, 6, sign_in->until_ms);
    return database_run(row) &&
           rows_run_with(database, STATEMENT_SIGN_IN_DROP_OLDEST, (int64_t)most);
}

static enum row_result sign_in_get(struct database *database, const char *digest, int64_t now_ms,
                                   struct store_sign_in **sign_in)
{
    sqlite3_stmt *row = database_statement(database, STATEMENT_SIGN_IN_GET);
    database_bind_text(row, 1, digest);
    sqlite3_bind_int64(row, 2, now_ms);
    enum row_result result = rows_result(sqlite3_step(row));
    if (result == ROW_FOUND) {
        *sign_in = memory_alloc(sizeof **sign_in);
        **sign_in = (struct store_sign_in){
            .digest = database_take_text(row, 0),
            .person = database_take_text(row, 1),
            .issuer = database_take_text(row, 2),
            .claims = database_take_text(row, 3),
            .created_ms = sqlite3_column_int64(row, 4),
            .until_ms = sqlite3_column_int64(row, 5),
        };
    }
    database_release(row);
    return result;
}

static bool sign_in_remove(struct database *database, const char *digest)
{
    sqlite3_stmt *row = database_statement(database, STATEMENT_SIGN_IN_DELETE);
    database_bind_text(row, 1, digest);
    return database_run(row);
}

const struct session_rows sqlite_session_rows = {
    .put = put,
    .keep_latest = keep_latest,
    .get = get,
    .remove = remove_session,
    .pair_put = pair_put,
    .pairs_keep_latest = pairs_keep_latest,
    .pair_get = pair_get,
    .sign_in_put = sign_in_put,
    .sign_in_get = sign_in_get,
    .sign_in_remove = sign_in_remove,
};
