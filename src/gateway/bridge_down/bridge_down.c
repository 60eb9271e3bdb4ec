/* How a bridged call begins, and how it goes on. */
#include "bridge_down.h"

#include "call/extensions.h"
#include "call/request_state.h"
#include "conversation.h"
#include "leg.h"
#include "server/sessions.h"
#include "taskgate/mcp/legacy_server.h"

#define LOST "This conversation was lost; the tool may have run in part"

/* ---- a new call ---- */

static void again(struct call *call)
{
    session_pool_then(call, conversation_begin);
}

static const struct leg_callbacks callbacks = {.gone = conversation_leg_gone, .again = again};

static void refuse_state(struct call *call, const char *why)
{
    call_answer_error(call, JSONRPC_INVALID_PARAMS, str_from(why), NULL);
}

/* ---- the next round ---- */

static bool is_handle(const struct request_state *state)
{
    return str_starts_with(str_from(state->id), STR(CONVERSATION_HANDLE_PREFIX));
}

bool bridge_down_goes_on(const struct call *call)
{
    struct request_state state;
    return call->is_bridged_down && request_state_is_ours(call) &&
           request_state_open(call, &state) && is_handle(&state);
}

void bridge_down_refuse_to_go_on(struct call *call)
{
    struct request_state state;
    if (request_state_open(call, &state) &&
        conversation_claim(call->worker->gateway, state.id, state.round) == CONVERSATION_CLAIMED)
        conversation_abandon(call->worker, state.id);
    refuse_state(call, LOST);
}

/* The answers of an earlier round, and those of a client that lost its own process, are refused:
 * nothing of the call is sent anew. */
static void go_on(struct call *call, const struct relay_options *options)
{
    struct request_state state;
    if (!request_state_is_ours(call) || !request_state_open(call, &state) || !is_handle(&state)) {
        refuse_state(call, REQUEST_STATE_REFUSAL);
        return;
    }
    switch (conversation_claim(call->worker->gateway, state.id, state.round)) {
    case CONVERSATION_CLAIMED:
        leg_begin(call, options, &callbacks);
        conversation_answer(call, state.id, call->envelope.input_responses);
        break;
    case CONVERSATION_ANSWERED:
        refuse_state(call, REQUEST_STATE_REFUSAL);
        break;
    case CONVERSATION_LOST:
        refuse_state(call, LOST);
        break;
    }
}

void bridge_down_start(struct call *call, const struct relay_options *options)
{
    if (!call->is_bridged_down) {
        relay_start(call, options);
        return;
    }
    call_identify(call);
    if (call->envelope.request_state.length > 0) {
        go_on(call, options);
        return;
    }
    leg_begin(call, options, &callbacks);
    session_pool_then(call, conversation_begin);
}

/* ---- server/discover ---- */

static void answer_discover(struct call *call)
{
    struct legacy_session *session = session_pool_of(call);
    struct buffer discovered, result;
    buffer_init(&discovered);
    buffer_init(&result);
    legacy_server_write_discover(&discovered, buffer_str(&session->initialized),
                                 session->stream_state == SESSION_STREAM_OPEN);
    legacy_session_close_stream(session);
    extensions_write_shown(call, buffer_str(&discovered), &result);
    call_answer_result(call, buffer_str(&result));
    buffer_finish(&result);
    buffer_finish(&discovered);
}

void bridge_down_discover(struct call *call)
{
    session_pool_then(call, answer_discover);
}

/* ---- the worker ---- */

void bridge_down_worker_init(struct gateway_worker *worker)
{
    list_init(&worker->legacy_sessions);
    list_init(&worker->bridge_legs);
    list_init(&worker->conversations);
}

void bridge_down_shut_down(struct gateway_worker *worker)
{
    conversations_end_waiting(worker);
    session_pool_end_idle(worker);
}

void bridge_down_worker_close(struct gateway_worker *worker)
{
    conversations_drop(worker);
    session_pool_close(worker);
}
