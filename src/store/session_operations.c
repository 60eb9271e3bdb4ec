/* Sessions, and the tokens that upstream accepted in them. */
#include <stdlib.h>

#include "queue.h"
#include "replica_rows.h"

/* The bounds of what strangers can leave here: those seen last stay. Nobody has to be known for a
 * session, and one client may open them without end. */
#define KEPT STORE_SESSIONS_MAX
#define KEPT_OF_OWNER (KEPT / 4)
#define PAIRS_KEPT (INT64_C(4) * KEPT)
/* All are counted now and then alone, since that reads as many places of an index as are kept. */
#define LOOK_EVERY 64

/* A session lives where it was opened: whoever finds it in the store finds its home. */
static bool session_give_home(struct batch *batch, const struct store_session *session)
{
    const struct replica *self = batch->replica;
    const struct home_key key = {session->source, session->id_digest};
    struct home_row home = {0};
    bool done = !batch->backend->is_shared ||
                replica_rows_home_take(batch->database, &key, self->id, self->epoch, batch->now_ms,
                                       &home) != ROW_FAILED;
    free(home.replica);
    free(home.lost_replica);
    return done;
}

static bool run_session_put(struct batch *batch, struct operation *operation)
{
    const struct store_session *session = operation->session;
    bool looks = batch->replica->sessions_put++ % LOOK_EVERY == 0;
    return rows_insert(batch->database, STATEMENT_SESSION_PUT, &session_record, session) &&
           rows_write(batch->database, STATEMENT_SESSION_DROP_OF_OWNER,
                      VALUES(TEXT(session->owner), NUMBER(KEPT_OF_OWNER))) &&
           (!looks ||
            rows_write(batch->database, STATEMENT_SESSION_DROP_OLDEST, VALUES(NUMBER(KEPT)))) &&
           session_give_home(batch, session);
}

/* Answers for a row that may be there. */
static bool session_answer(struct operation *operation, enum row_result result)
{
    if (result == ROW_ABSENT)
        operation->reply.status = STORE_NOT_FOUND;
    return result != ROW_FAILED;
}

static bool run_session_get(struct batch *batch, struct operation *operation)
{
    void *session;
    enum row_result result =
        rows_find_new(batch->database, STATEMENT_SESSION_GET,
                      VALUES(TEXT(operation->pair.source), TEXT(operation->pair.session)),
                      &session_record, &session);
    operation->reply.session = session;
    return session_answer(operation, result);
}

static bool run_session_delete(struct batch *batch, struct operation *operation)
{
    struct database *database = batch->database;
    const struct value session[] = {TEXT(operation->pair.source), TEXT(operation->pair.session)};
    /* A session that has ended proves nothing about its tokens any more. */
    return rows_write(database, STATEMENT_SESSION_DELETE, session, 2) &&
           rows_write(database, STATEMENT_PAIR_DELETE, session, 2) &&
           (!batch->backend->is_shared || rows_write(database, STATEMENT_HOME_DELETE, session, 2));
}

static bool run_pair_put(struct batch *batch, struct operation *operation)
{
    bool looks = batch->replica->pairs_put++ % LOOK_EVERY == 0;
    return rows_write(batch->database, STATEMENT_PAIR_PUT,
                      VALUES(TEXT(operation->pair.source), TEXT(operation->pair.session),
                             TEXT(operation->pair.token), NUMBER(operation->pair.accepted_ms))) &&
           rows_write(batch->database, STATEMENT_SESSION_SEEN,
                      VALUES(TEXT(operation->pair.source), TEXT(operation->pair.session),
                             NUMBER(operation->pair.accepted_ms))) &&
           (!looks ||
            rows_write(batch->database, STATEMENT_PAIR_DROP_OLDEST, VALUES(NUMBER(PAIRS_KEPT))));
}

static bool run_pair_get(struct batch *batch, struct operation *operation)
{
    return session_answer(
        operation, rows_exist(batch->database, STATEMENT_PAIR_GET,
                              VALUES(TEXT(operation->pair.source), TEXT(operation->pair.session),
                                     TEXT(operation->pair.token))));
}

/* ---- the calls ---- */

static void session_finish(struct operation *operation)
{
    record_destroy(&session_record, operation->session);
}

static const struct operation_kind operation_session_put = {"session put", true, run_session_put,
                                                            session_finish};
static const struct operation_kind operation_session_get = {"session get", false, run_session_get,
                                                            NULL};
static const struct operation_kind operation_session_delete = {"session delete", true,
                                                               run_session_delete, NULL};
static const struct operation_kind operation_pair_put = {"pair put", true, run_pair_put, NULL};
static const struct operation_kind operation_pair_get = {"pair get", false, run_pair_get, NULL};

static struct operation *create_of_session(const struct operation_kind *kind, struct str source,
                                           struct str session_digest, struct store_call call)
{
    struct operation *operation = operation_create(kind, call);
    operation->pair.source = operation_keep(operation, source);
    operation->pair.session = operation_keep(operation, session_digest);
    return operation;
}

void store_session_put(struct store *store, const struct store_session *session,
                       struct store_call call)
{
    struct operation *operation = operation_create(&operation_session_put, call);
    operation->session = record_copy(&session_record, session);
    store_queue(store, operation);
}

void store_session_get(struct store *store, struct str source, struct str id_digest,
                       struct store_call call)
{
    store_queue(store, create_of_session(&operation_session_get, source, id_digest, call));
}

void store_session_delete(struct store *store, struct str source, struct str id_digest,
                          struct store_call call)
{
    store_queue(store, create_of_session(&operation_session_delete, source, id_digest, call));
}

void store_pair_put(struct store *store, struct str source, struct str session_digest,
                    struct str token_digest, int64_t accepted_ms, struct store_call call)
{
    struct operation *operation =
        create_of_session(&operation_pair_put, source, session_digest, call);
    operation->pair.token = operation_keep(operation, token_digest);
    operation->pair.accepted_ms = accepted_ms;
    store_queue(store, operation);
}

void store_pair_get(struct store *store, struct str source, struct str session_digest,
                    struct str token_digest, struct store_call call)
{
    struct operation *operation =
        create_of_session(&operation_pair_get, source, session_digest, call);
    operation->pair.token = operation_keep(operation, token_digest);
    store_queue(store, operation);
}
