/* Sessions, and the tokens that upstream accepted in them. */
#include <stdlib.h>

#include "operation.h"
#include "replica.h"
#include "taskgate/core/memory.h"

/* The bounds of what strangers can leave here: those seen last stay. Nobody has to be known for a
 * session, and one client may open them without end. */
#define KEPT STORE_SESSIONS_MAX
#define KEPT_OF_OWNER (KEPT / 4)
#define PAIRS_KEPT (4 * (size_t)KEPT)
/* All are counted now and then alone, since that reads as many places of an index as are kept. */
#define LOOK_EVERY 64

/* A session lives where it was opened: whoever finds it in the store finds its home. */
static bool give_home(struct batch *batch, const struct store_session *session)
{
    const struct replica *self = batch->replica;
    const struct home_key key = {session->source, session->id_digest};
    struct home_row home = {0};
    bool done = !batch->backend->is_shared ||
                batch->backend->replicas->home_take(batch->database, &key, self->id, self->epoch,
                                                    batch->now_ms, &home) != ROW_FAILED;
    free(home.replica);
    free(home.lost_replica);
    return done;
}

static bool run_put(struct batch *batch, struct operation *operation)
{
    const struct session_rows *sessions = batch->backend->sessions;
    bool looks = batch->replica->sessions_put++ % LOOK_EVERY == 0;
    return sessions->put(batch->database, operation->session_value, KEPT_OF_OWNER) &&
           (!looks || sessions->keep_latest(batch->database, KEPT)) &&
           give_home(batch, operation->session_value);
}

/* Answers for a row that may be there. */
static bool answer(struct operation *operation, enum row_result result)
{
    if (result == ROW_ABSENT)
        operation->reply.status = STORE_NOT_FOUND;
    return result != ROW_FAILED;
}

static bool run_get(struct batch *batch, struct operation *operation)
{
    struct store_session *session = NULL;
    enum row_result result = batch->backend->sessions->get(batch->database, operation->source,
                                                           operation->session, &session);
    operation->reply.session = session;
    return answer(operation, result);
}

static bool run_delete(struct batch *batch, struct operation *operation)
{
    const struct home_key key = {operation->source, operation->session};
    return batch->backend->sessions->remove(batch->database, operation->source,
                                            operation->session) &&
           (!batch->backend->is_shared ||
            batch->backend->replicas->home_remove(batch->database, &key));
}

static bool run_pair_put(struct batch *batch, struct operation *operation)
{
    const struct session_rows *sessions = batch->backend->sessions;
    bool looks = batch->replica->pairs_put++ % LOOK_EVERY == 0;
    return sessions->pair_put(batch->database, operation->source, operation->session,
                              operation->token_digest, operation->time_ms) &&
           (!looks || sessions->pairs_keep_latest(batch->database, PAIRS_KEPT));
}

static bool run_pair_get(struct batch *batch, struct operation *operation)
{
    return answer(operation,
                  batch->backend->sessions->pair_get(batch->database, operation->source,
                                                     operation->session, operation->token_digest));
}

const struct operation_kind operation_session_put = {"session put", true, run_put};
const struct operation_kind operation_session_get = {"session get", false, run_get};
const struct operation_kind operation_session_delete = {"session delete", true, run_delete};
const struct operation_kind operation_pair_put = {"pair put", true, run_pair_put};
const struct operation_kind operation_pair_get = {"pair get", false, run_pair_get};
