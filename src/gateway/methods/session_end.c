/* The end of a session. */
#include "session_end.h"

#include "conversation/detach.h"
#include "conversation/execute.h"
#include "conversation/question.h"
#include "inbox/inbox.h"
#include "relay/relay.h"
#include "state/accepted_pairs.h"
#include "state/given_sessions.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"

/* "No such session" ends one only for a client that upstream has known in it: to a stranger a
 * server may say so of a session that lives. */
static bool has_ended(const struct call *call, int status)
{
    if (status != 404)
        return status >= 200 && status < 300;
    return !call_is_stranger(call);
}

/* A library that opens a session for each call loses its tasks from sight so. */
static void on_cancelled(void *context, const struct store_reply *reply)
{
    struct call *call = call_from(context);
    if (reply->status == STORE_OK && reply->has_promised &&
        catalog_fault_is_due(call->worker->gateway->catalog, call->source, CATALOG_FAULT_SESSIONS,
                             clock_monotonic_ms()))
        log_warn("A session without a token has ended before its tasks: they are reached by their "
                 "ids alone, and what waits for approval runs only when it is fetched; "
                 "identity: anonymous in the source makes one owner of all its sessions",
                 LOG_TEXT("source", call->source->id));
    call_unref(call);
}

void session_end_forget(struct call *call)
{
    struct gateway *gateway = call->worker->gateway;
    struct str source = str_from(call->source->id), session = str_from(call->session);
    struct store_call nobody = {call->worker->loop, NULL, NULL};
    char key[CLIENT_KEY_BYTES];
    sessions_remove(gateway->sessions, source, session);
    given_sessions_remove(gateway->given_sessions, source, session);
    accepted_pairs_remove(gateway->accepted_pairs, source, session, str_from(call->token));
    store_session_delete(gateway->store, source, session, nobody);
    store_task_cancel_session(gateway->store, source, session, STR(OWNER_ANONYMOUS),
                              call_to_store(call, on_cancelled));
    client_key_of_session(call->source, call->session, key);
    execution_forget_session(gateway, str_from(key));
    question_end_session(call->worker, str_from(key));
    detached_calls_end_session(call, str_from(key));
    inbox_end_session(gateway, str_from(key));
}

static void on_head(struct call *call, int status, const struct headers *headers)
{
    if (call->session[0] && has_ended(call, status))
        session_end_forget(call);
}

void session_end_handle(struct call *call)
{
    struct relay_options options = {.head = on_head};
    if (!detached_calls_hold_session(call)) {
        relay_start(call, &options);
        return;
    }
    if (!call_is_stranger(call))
        session_end_forget(call);
    call_answer_status(call, 204, STR_EMPTY);
}
