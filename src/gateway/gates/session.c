/* The gates that look at whose the request is, and at where its session lives. */
#include "auth/token_check.h"
#include "auth/token_exchange.h"
#include "gates.h"
#include "replicas/replicas.h"
#include "taskgate/core/log.h"
#include "taskgate/core/owned.h"

enum gate_verdict gate_token(struct call *call)
{
    return call->source->auth.issuer ? token_check_then(call, gates_go_on) : GATE_PASSED;
}

enum gate_verdict gate_home(struct call *call)
{
    return home_then(call, gates_go_on);
}

enum gate_verdict gate_exchange(struct call *call)
{
    return token_exchange_is_due(call->source) ? token_exchange_then(call, gates_go_on)
                                               : GATE_PASSED;
}

/* ---- the session ---- */

/* Its server sees no token of the client (`upstream: drop`), so only the gateway can tell that a
 * session is not this subject's. An unknown one gets the 404 on which clients begin anew. */
static void refuse_session(struct call *call)
{
    OWNED_BUFFER(text);
    log_warn("Request refused: the session is not known as this subject's",
             LOG_TEXT("source", call->source->id));
    jsonrpc_write_error(&text, STR_EMPTY, JSONRPC_INVALID_REQUEST, STR("Session not found"), NULL);
    call_answer_status(call, 404, buffer_str(&text));
}

/* The owner of the session is unknown. */
static void session_answer_no_store(struct call *call)
{
    const struct jsonrpc_error_data data = {.details = STR("the session cannot be looked up"),
                                            .retry_after = 5};
    OWNED_BUFFER(text);
    jsonrpc_write_error(&text, call->envelope.id, JSONRPC_UNAVAILABLE, STR_EMPTY, &data);
    call_answer_status(call, 503, buffer_str(&text));
}

static void check_session(struct call *call)
{
    if (call->facts.known)
        gates_go_on(call);
    else if (call->facts_failed)
        session_answer_no_store(call);
    else
        refuse_session(call);
}

enum gate_verdict gate_session(struct call *call)
{
    if (!call->dialect->has_sessions ||
        http_header_known(call->exchange, HTTP_NAME_MCP_SESSION_ID).length == 0)
        return GATE_PASSED;
    call_identify(call);
    call_with_facts(call, check_session);
    return GATE_WAITS;
}
