/* Requests in a session that the gateway has given out, and serves as a legacy server. */
#include "given_session.h"

#include "call/call.h"
#include "call/session_store.h"
#include "cancelled.h"
#include "client/legacy_stream.h"
#include "conversation/question.h"
#include "initialize.h"
#include "server/credential_check.h"
#include "state/session_table.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/legacy_bridge.h"

#include <stdlib.h>

#include "conversation/detach.h"
#include "conversation/execute.h"
#include "conversation/relay.h"
#include "inbox/inbox.h"
#include "state/accepted_pairs.h"
#include "taskgate/core/clock.h"

/* The end of a session. */

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

/* The session of the call has ended: its undecided tasks are cancelled, except those that an
 * Authorization owns, and credentials are dropped. */
static void session_end_forget(struct call *call)
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

/* ---- refusals ---- */

static void refuse(struct call *call, int status, struct str why)
{
    struct buffer text;
    struct str id = call->envelope.kind == ENVELOPE_REQUEST ? call->envelope.id : STR_EMPTY;
    buffer_init(&text);
    jsonrpc_write_error(&text, id, JSONRPC_INVALID_REQUEST, why, NULL);
    call_answer_status(call, status, buffer_str(&text));
    buffer_finish(&text);
}

/* The server knows no session, so the gateway alone can refuse one to a stranger. */
static bool is_bound_to_another(const struct call *call)
{
    struct str token = json_member(buffer_str(&call->declared), GIVEN_SESSION_TOKEN);
    if (token.length == 0 || !given_session_is_bound(call) ||
        json_string_equals(token, str_from(call->token)))
        return false;
    log_warn("Request refused: its session was opened with another token",
             LOG_TEXT("source", call->source->id));
    return true;
}

/* The session is loaded. False when the call is answered: on 404 clients begin anew. */
static bool has_session(struct call *call)
{
    buffer_clear(&call->declared);
    bool is_there =
        call->facts.known &&
        given_sessions_get(call->worker->gateway->given_sessions, str_from(call->source->id),
                           str_from(call->session), &call->declared);
    bool is_anothers = is_there && is_bound_to_another(call);
    if (is_there && !is_anothers)
        return true;
    if (call->facts_failed)
        refuse(call, 503, STR("The session cannot be looked up"));
    else
        refuse(call, is_anothers && call->envelope.kind == ENVELOPE_RESPONSE ? 400 : 404,
               STR("Session not found"));
    return false;
}

/* ---- what the gateway answers ---- */

/* Declared with the session's next requests, also after a restart. */
static void set_level(struct call *call)
{
    struct str level = json_member(call->envelope.params, "level");
    if (!legacy_bridge_is_log_level(level)) {
        call_answer_error(call, JSONRPC_INVALID_PARAMS,
                          STR("params.level must be one of the levels of syslog"), NULL);
        return;
    }
    given_sessions_set(call->worker->gateway->given_sessions, str_from(call->source->id),
                       str_from(call->session), "logLevel", level);
    session_store_put_and_answer(call);
}

static void answer_ping(struct call *call)
{
    call_answer_result(call, STR("{}"));
}

/* The methods that no modern server has; NULL: the method's own handler judges. */
static call_step own_handler(const struct call *call)
{
    static const struct {
        const char *method;
        call_step handle;
    } own[] = {{"ping", answer_ping}, {"logging/setLevel", set_level}};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        if (str_equal(call->envelope.method, str_from(own[i].method)))
            return own[i].handle;
    }
    return NULL;
}

/* ---- a message ---- */

/* The handler of the method, until the session is known. */
struct given_step {
    struct call_part part;
    call_step handler;
};

static void drop(struct call *call, void *object)
{
    (void)call;
    free(object);
}

static const struct call_part_kind given_step_kind = CALL_PART_KIND(struct given_step, drop);

static void handle_in_session(struct call *call)
{
    struct given_step *step = call_part_get(call, &given_step_kind);
    const call_step handler = step->handler;
    call_part_remove(&step->part);
    free(step);
    if (has_session(call))
        handler(call);
}

static void handle_with(struct call *call, call_step handler)
{
    call_identify(call);
    if (!call->session[0]) {
        refuse(call, 400, STR("Mcp-Session-Id is missing: begin with initialize"));
        return;
    }
    struct given_step *step = memory_alloc(sizeof *step);
    step->handler = handler;
    call_part_add(call, &step->part, &given_step_kind);
    call_with_facts(call, handle_in_session);
}

void given_session_handle(struct call *call, call_step handler)
{
    const call_step own = own_handler(call);
    if (call->envelope.kind == ENVELOPE_NOTIFICATION) {
        /* The modern era has none of a client's: closing a stream is the cancellation. */
        if (str_equal(call->envelope.method, STR(MCP_CANCELLED)))
            cancelled_notify(call);
        call_answer(call, STR_EMPTY);
    } else if (call->method->treatment == MCP_INITIALIZE) {
        given_session_open(call);
    } else if (call->method->treatment == MCP_SERVER_DISCOVER) {
        handler(call); /* refuses it: the envelope is missing */
    } else {
        handle_with(call, own ? own : handler);
    }
}

static void refuse_response(struct call *call, struct str why)
{
    struct buffer message = {0};
    jsonrpc_write_error(&message, STR_EMPTY, JSONRPC_INVALID_PARAMS, why, NULL);
    call_answer_status(call, 400, buffer_str(&message));
    buffer_finish(&message);
}

/* To what is asked in a task, or in a call that is under way. */
static void take_response(struct call *call)
{
    struct str result = call->envelope.result;
    if (result.length > 0 && json_type(result) != JSON_OBJECT) {
        refuse_response(call, STR("The result of a request must be an object"));
    } else if (!question_take_response(call)) {
        log_warn("A response is refused: it answers no request that is open in its session",
                 LOG_TEXT("source", call->source->id));
        refuse_response(call, STR("No request of this id is open in this session"));
    }
}

void given_session_handle_response(struct call *call)
{
    handle_with(call, take_response);
}

/* ---- GET and DELETE ---- */

static void end_session(struct call *call)
{
    if (call_is_stranger(call)) {
        refuse(call, 404, STR("Session not found"));
        return;
    }
    log_info("A bridged session ends", LOG_TEXT("source", call->source->id));
    session_end_forget(call);
    legacy_stream_end_session(call);
    cancelled_notify_all(call);
    call_answer_status(call, 200, STR_EMPTY);
}

static void open_stream(struct call *call)
{
    if (atomic_load(&call->worker->gateway->shutting_down))
        call_answer_status(call, 503, STR_EMPTY);
    else
        legacy_stream_open(call);
}

/* After a restart the server is asked again whether it accepts the client. */
static void check_stream(struct call *call)
{
    credential_check_then(call, open_stream);
}

static void refuse_verb(struct call *call)
{
    call_answer_status(call, 405, STR_EMPTY);
}

void given_session_handle_verb(struct call *call)
{
    struct str verb = http_method(call->exchange);
    handle_with(call, str_equal(verb, STR("GET"))      ? check_stream
                      : str_equal(verb, STR("DELETE")) ? end_session
                                                       : refuse_verb);
}
