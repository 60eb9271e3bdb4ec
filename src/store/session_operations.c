/* Sessions, and the tokens that upstream accepted in them. */
#include "operation.h"
#include "taskgate/core/memory.h"

static bool run_put(struct batch *batch, struct operation *operation)
{
    const struct store_session *session = operation->session_value;
    sqlite3_stmt *row = database_statement(batch->database, STATEMENT_SESSION_PUT);
    database_bind_text(row, 1, session->source);
    database_bind_text(row, 2, session->id_digest);
    database_bind_text(row, 3, session->version);
    database_bind_text(row, 4, session->client_name);
    database_bind_text(row, 5, session->client_version);
    database_bind_text(row, 6, session->client_capabilities);
    sqlite3_bind_int(row, 7, session->upstream_tasks);
    sqlite3_bind_int(row, 8, session->upstream_sse);
    sqlite3_bind_int64(row, 9, session->seen_ms);
    return database_run(row);
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

static bool run_get(struct batch *batch, struct operation *operation)
{
    sqlite3_stmt *row = database_statement(batch->database, STATEMENT_SESSION_GET);
    database_bind_text(row, 1, operation->source);
    database_bind_text(row, 2, operation->session);
    int code = sqlite3_step(row);
    if (code == SQLITE_ROW)
        operation->reply.session = read_session(row);
    else
        operation->reply.status = STORE_NOT_FOUND;
    database_release(row);
    return code == SQLITE_ROW || code == SQLITE_DONE;
}

static bool run_by_session(struct batch *batch, const struct operation *operation,
                           enum statement which)
{
    sqlite3_stmt *row = database_statement(batch->database, which);
    database_bind_text(row, 1, operation->source);
    database_bind_text(row, 2, operation->session);
    return database_run(row);
}

/* A session that has ended proves nothing about its tokens any more. */
static bool run_delete(struct batch *batch, struct operation *operation)
{
    return run_by_session(batch, operation, STATEMENT_SESSION_DELETE) &&
           run_by_session(batch, operation, STATEMENT_PAIR_DELETE);
}

static sqlite3_stmt *bind_pair(struct batch *batch, const struct operation *operation,
                               enum statement which)
{
    sqlite3_stmt *row = database_statement(batch->database, which);
    database_bind_text(row, 1, operation->source);
    database_bind_text(row, 2, operation->session);
    database_bind_text(row, 3, operation->token_digest);
    return row;
}

static bool run_pair_put(struct batch *batch, struct operation *operation)
{
    sqlite3_stmt *row = bind_pair(batch, operation, STATEMENT_PAIR_PUT);
    sqlite3_bind_int64(row, 4, operation->time_ms);
    return database_run(row);
}

static bool run_pair_get(struct batch *batch, struct operation *operation)
{
    sqlite3_stmt *row = bind_pair(batch, operation, STATEMENT_PAIR_GET);
    int code = sqlite3_step(row);
    database_release(row);
    if (code == SQLITE_DONE)
        operation->reply.status = STORE_NOT_FOUND;
    return code == SQLITE_ROW || code == SQLITE_DONE;
}

const struct operation_kind operation_session_put = {"session put", true, run_put};
const struct operation_kind operation_session_get = {"session get", false, run_get};
const struct operation_kind operation_session_delete = {"session delete", true, run_delete};
const struct operation_kind operation_pair_put = {"pair put", true, run_pair_put};
const struct operation_kind operation_pair_get = {"pair get", false, run_pair_get};
