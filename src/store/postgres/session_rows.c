/* Sessions, the tokens that upstream accepted in them, and operators who have signed in. */
#include "rows.h"
#include "taskgate/core/memory.h"

/* ---- sessions ---- */

static bool put(struct database *database, const struct store_session *session, size_t most)
{
    return connection_write(database, STATEMENT_SESSION_PUT,
                            VALUES(TEXT(session->source), TEXT(session->id_digest),
                                   TEXT(session->version), TEXT(session->client_name),
                                   TEXT(session->client_version),
                                   TEXT(session->client_capabilities),
                                   NUMBER(session->upstream_tasks), NUMBER(session->upstream_sse),
                                   NUMBER(session->seen_ms), TEXT(session->owner))) &&
           connection_write(database, STATEMENT_SESSION_DROP_OF_OWNER,
                            VALUES(TEXT(session->owner), NUMBER((int64_t)most)));
}

static bool keep_latest(struct database *database, size_t most)
{
    return connection_write(database, STATEMENT_SESSION_DROP_OLDEST, VALUES(NUMBER((int64_t)most)));
}

static enum row_result get(struct database *database, const char *source, const char *id_digest,
                           struct store_session **session)
{
    PGresult *rows =
        connection_read(database, STATEMENT_SESSION_GET, VALUES(TEXT(source), TEXT(id_digest)));
    enum row_result result = rows_any(rows);
    if (result == ROW_FOUND) {
        *session = memory_alloc(sizeof **session);
        **session = (struct store_session){
            .source = row_text(rows, 0, 0),
            .id_digest = row_text(rows, 0, 1),
            .version = row_text(rows, 0, 2),
            .client_name = row_text(rows, 0, 3),
            .client_version = row_text(rows, 0, 4),
            .client_capabilities = row_text(rows, 0, 5),
            .upstream_tasks = row_number(rows, 0, 6) != 0,
            .upstream_sse = row_number(rows, 0, 7) != 0,
            .seen_ms = row_number(rows, 0, 8),
        };
    }
    PQclear(rows);
    return result;
}

/* A session that has ended proves nothing about its tokens any more. */
static bool remove_session(struct database *database, const char *source, const char *id_digest)
{
    return connection_write(database, STATEMENT_SESSION_DELETE,
                            VALUES(TEXT(source), TEXT(id_digest))) &&
           connection_write(database, STATEMENT_PAIR_DELETE, VALUES(TEXT(source), TEXT(id_digest)));
}

/* ---- pairs ---- */

static bool pair_put(struct database *database, const char *source, const char *session_digest,
                     const char *token_digest, int64_t accepted_ms)
{
    return connection_write(database, STATEMENT_PAIR_PUT,
                            VALUES(TEXT(source), TEXT(session_digest), TEXT(token_digest),
                                   NUMBER(accepted_ms))) &&
           connection_write(database, STATEMENT_SESSION_SEEN,
                            VALUES(TEXT(source), TEXT(session_digest), NUMBER(accepted_ms)));
}

static bool pairs_keep_latest(struct database *database, size_t most)
{
    return connection_write(database, STATEMENT_PAIR_DROP_OLDEST, VALUES(NUMBER((int64_t)most)));
}

static enum row_result pair_get(struct database *database, const char *source,
                                const char *session_digest, const char *token_digest)
{
    PGresult *rows =
        connection_read(database, STATEMENT_PAIR_GET,
                        VALUES(TEXT(source), TEXT(session_digest), TEXT(token_digest)));
    enum row_result result = rows_any(rows);
    PQclear(rows);
    return result;
}

/* ---- sign-ins ---- */

static bool sign_in_put(struct database *database, const struct store_sign_in *sign_in, size_t most)
{
    return connection_write(database, STATEMENT_SIGN_IN_PUT,
                            VALUES(TEXT(sign_in->digest), TEXT(sign_in->person),
                                   TEXT(sign_in->issuer), TEXT(sign_in->claims),
                                   NUMBER(sign_in->created_ms), NUMBER(sign_in->until_ms))) &&
           connection_write(database, STATEMENT_SIGN_IN_DROP_OLDEST, VALUES(NUMBER((int64_t)most)));
}

static enum row_result sign_in_get(struct database *database, const char *digest, int64_t now_ms,
                                   struct store_sign_in **sign_in)
{
    PGresult *rows =
        connection_read(database, STATEMENT_SIGN_IN_GET, VALUES(TEXT(digest), NUMBER(now_ms)));
    enum row_result result = rows_any(rows);
    if (result == ROW_FOUND) {
        *sign_in = memory_alloc(sizeof **sign_in);
        **sign_in = (struct store_sign_in){
            .digest = row_text(rows, 0, 0),
            .person = row_text(rows, 0, 1),
            .issuer = row_text(rows, 0, 2),
            .claims = row_text(rows, 0, 3),
            .created_ms = row_number(rows, 0, 4),
            .until_ms = row_number(rows, 0, 5),
        };
    }
    PQclear(rows);
    return result;
}

static bool sign_in_remove(struct database *database, const char *digest)
{
    return connection_write(database, STATEMENT_SIGN_IN_DELETE, VALUES(TEXT(digest)));
}

const struct session_rows postgres_session_rows = {
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
