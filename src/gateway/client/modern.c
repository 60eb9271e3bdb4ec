/* Modern clients whose server is of the other era: their requests are answered, and what the server
 * asks in one comes back as a result that requires input. Such a request is a leg: a call whose
 * server asks something has several, one after the other, and they may be on different workers. */
#include "modern.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "call/deferred_response.h"
#include "call/request_state.h"
#include "conversation/conversation.h"
#include "server/protocol.h"
#include "server/server_refusal.h"
#include "server/sessions.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/cacheable.h"
#include "taskgate/mcp/era.h"
#include "taskgate/mcp/modern_text.h"
#include "taskgate/mcp/question.h"

#define LOST "This conversation was lost; the tool may have run in part"

struct leg {
    struct call_part part;
    struct call *call;
    const struct looks *looks;
    int64_t silence_ms;
    char id[RANDOM_UUID_BYTES]; /* in worker.legs */
    char handle[TASK_ID_BYTES]; /* of its conversation */
    bool is_done;               /* the answer is there, or the next leg will have it */
    bool is_again;              /* it was sent again */
};

static void leg_drop(struct call *call, void *object)
{
    struct leg *leg = object;
    void *known = map_remove(call->worker->legs, str_from(leg->id));
    ASSERT(known == leg);
    call->upstream_session = NULL;
    if (!leg->is_done)
        conversation_leg_gone(call->worker, leg->handle, leg->id);
    free(leg);
}

static const struct call_part_kind leg_kind = CALL_PART_KIND(struct leg, leg_drop);

static struct leg *leg_of(const struct call *call)
{
    return call_part_get(call, &leg_kind);
}

static struct leg *leg_begin(struct call *call, const struct looks *looks, int64_t silence_ms)
{
    struct leg *leg = memory_alloc(sizeof *leg);
    leg->call = call;
    leg->looks = looks;
    leg->silence_ms = silence_ms;
    random_uuid(leg->id);
    map_put(call->worker->legs, str_from(leg->id), leg);
    call_part_add(call, &leg->part, &leg_kind);
    deferred_response_begin(
        call, &(struct deferred_options){.what = "", .is_quiet = true, .awaits_upstream = true});
    deferred_response_open_late(call);
    return leg;
}

/* ---- notifications ---- */

/* The server was given the token of the first leg; this one's client goes by its own. */
static void write_progress(const struct call *call, struct str message, struct buffer *out)
{
    json_write_with_inner(out, message, "params", "progressToken", call->envelope.progress_token);
}

static bool wants_log(const struct call *call, struct str message)
{
    int wanted = mcp_log_level(call->envelope.reserved.log_level);
    return wanted >= 0 && mcp_log_level(json_path(message, "params", "level")) >= wanted;
}

static void leg_pass(const struct leg *leg, const struct event *event)
{
    struct call *call = leg->call;
    bool is_progress = event->kind == EVENT_PROGRESS && call->envelope.progress_token.length > 0;
    OWNED_BUFFER(changed);
    if (!is_progress && !(event->kind == EVENT_LOG && wants_log(call, event->text)))
        return;
    if (is_progress)
        write_progress(call, event->text, &changed);
    deferred_response_open(call);
    deferred_response_pass(call, is_progress ? buffer_str(&changed) : event->text);
}

/* ---- the server's response ---- */

static bool is_cacheable(const struct call *call)
{
    return mcp_method_is_list(call->method) || call->method->treatment == MCP_GATED_URI;
}

/* Answers with the message as the method's file rewrites it, which has the form of a modern
 * server's. */
static void answer_rewritten(struct leg *leg, struct str message)
{
    struct call *call = leg->call;
    OWNED_BUFFER(out);
    bool is_rewritten = looks_rewrite(leg->looks, call, message, &out);
    leg->is_done = true;
    call_answer(call, is_rewritten ? buffer_str(&out) : message);
}

static void leg_fail(struct leg *leg, enum lost_reason lost)
{
    const struct looks *looks = leg->looks;
    struct call *call = leg->call;
    leg->is_done = true;
    if (!looks->stand_in || !looks->stand_in(call, lost))
        relay_answer_failure(call, lost);
}

static void leg_answer_result(struct leg *leg, const struct event *event)
{
    const struct call *call = leg->call;
    OWNED_BUFFER(modern);
    OWNED_BUFFER(message);
    modern_text_write_result(&modern, event->text, is_cacheable(call), event->server_info);
    if (mcp_method_is_list(call->method))
        mcp_cacheable_drop_tags(&modern, 0, event->text);
    jsonrpc_write_result(&message, call->envelope.id, buffer_str(&modern));
    answer_rewritten(leg, buffer_str(&message));
}

/* Answers with what the client is to be asked before its next request; `state` is JSON text, or
 * empty: nothing of the call is under way. */
static void leg_require_input(struct leg *leg, struct str requests, struct str state)
{
    OWNED_BUFFER(result);
    mcp_write_input_required(&result, requests, state);
    leg->is_done = true;
    call_answer_result(leg->call, buffer_str(&result));
}

static bool may_open_urls(const struct call *call)
{
    return session_pool_may_be_asked(call) &&
           mcp_may_ask(call->envelope.reserved.client_capabilities, MCP_QUESTION_URL);
}

static void leg_answer_error(struct leg *leg, const struct event *event)
{
    struct call *call = leg->call;
    OWNED_BUFFER(message);
    if (event->required.length > 0 && may_open_urls(call)) {
        leg_require_input(leg, event->required, STR_EMPTY);
        return;
    }
    jsonrpc_write_error_text(&message, call->envelope.id, event->text);
    call->outcome = "error";
    if (str_equal(json_member(event->text, "code"), STR("-32601")) &&
        call->method->treatment != MCP_TOOLS_CALL && !deferred_response_is_stream(call) &&
        !leg->looks->replace_error) {
        leg->is_done = true;
        call_answer_status(call, 404, buffer_str(&message));
    } else {
        answer_rewritten(leg, buffer_str(&message));
    }
}

static void leg_answer_refusal(struct leg *leg, const struct exchange_reply *reply)
{
    if (!reply || deferred_response_is_stream(leg->call)) {
        leg_fail(leg, LOST_UNREADABLE);
        return;
    }
    leg->is_done = true;
    server_refusal_pass(leg->call, reply);
}

/* ---- the server asks ---- */

static void leg_ask(struct leg *leg, const struct client_event *round)
{
    const struct call *call = leg->call;
    struct request_state state = {.round = round->round};
    OWNED_BUFFER(text);
    snprintf(state.id, sizeof state.id, "%s", round->handle);
    state.until_ms = clock_now_ms() + call->snapshot->config->pseudo.elicitation_timeout_ms;
    request_state_write(call, &state, &text);
    leg_require_input(leg, round->event.text, buffer_str(&text));
}

/* ---- the beginning, and once more ---- */

static void leg_send(struct call *call);

/* The server has forgotten the session. */
static void leg_send_anew(struct leg *leg)
{
    const struct looks *looks = leg->looks;
    struct call *call = leg->call;
    const struct jsonrpc_error_data data = {
        .tool = call_tool(call),
        .details = STR("the server has forgotten the session; the call was not run"),
        .is_retryable = true};
    if (call->method->treatment != MCP_TOOLS_CALL && !leg->is_again) {
        leg->is_again = true;
        call->upstream_session = NULL;
        if (!looks->forbidden || !looks->forbidden(call))
            server_legacy.obtain(call, leg_send);
        return;
    }
    leg->is_done = true;
    call_answer_error(call, JSONRPC_UPSTREAM_FAILED, STR_EMPTY, &data);
}

static bool leg_take(struct gateway_worker *worker, const struct client_event *sent)
{
    struct leg *leg = map_get(worker->legs, str_from(sent->leg));
    const struct event *event = &sent->event;
    if (!leg)
        return false;
    if (event->kind == EVENT_QUESTION)
        leg_ask(leg, sent);
    else if (event->kind == EVENT_RESULT)
        leg_answer_result(leg, event);
    else if (event->kind == EVENT_ERROR)
        leg_answer_error(leg, event);
    else if (event->kind == EVENT_REFUSED)
        leg_answer_refusal(leg, event->reply);
    else if (event->kind == EVENT_LOST && event->lost == LOST_FORGOTTEN)
        leg_send_anew(leg);
    else if (event->kind == EVENT_LOST)
        leg_fail(leg, event->lost);
    else
        leg_pass(leg, event);
    return true;
}

static const struct client_protocol client_modern = {.take = leg_take};

static void leg_send(struct call *call)
{
    struct leg *leg = leg_of(call);
    snprintf(leg->handle, sizeof leg->handle, CONVERSATION_HANDLE_PREFIX "%s", leg->id);
    const struct conversation_start start = {
        .client = &client_modern,
        .server = &server_legacy,
        .leg = leg->id,
        .handle = leg->handle,
        .silence_ms = leg->silence_ms,
        .most_bytes = looks_most_held(leg->looks, call),
        .declared = session_pool_may_be_asked(call) ? call->envelope.reserved.client_capabilities
                                                    : STR_EMPTY,
    };
    conversation_begin(call, &start);
}

/* ---- the next round ---- */

static void refuse_state(struct call *call, const char *why)
{
    call_answer_error(call, JSONRPC_INVALID_PARAMS, str_from(why), NULL);
}

static bool is_handle(const struct request_state *state)
{
    return str_starts_with(str_from(state->id), STR(CONVERSATION_HANDLE_PREFIX));
}

bool client_goes_on(const struct call *call)
{
    struct request_state state;
    return call_leases_session(call) && request_state_is_ours(call) &&
           request_state_open(call, &state) && is_handle(&state);
}

void client_refuse_to_go_on(struct call *call)
{
    struct request_state state;
    if (request_state_open(call, &state) &&
        conversation_claim(call->worker->gateway, state.id, state.round) == CONVERSATION_CLAIMED)
        conversation_abandon(call->worker, state.id);
    refuse_state(call, LOST);
}

/* The answers of an earlier round, and those of a client that lost its own process, are refused:
 * nothing of the call is sent anew. */
static void leg_go_on(struct call *call, const struct looks *looks, int64_t silence_ms)
{
    struct request_state state;
    struct leg *leg;
    if (!request_state_is_ours(call) || !request_state_open(call, &state) || !is_handle(&state)) {
        refuse_state(call, REQUEST_STATE_REFUSAL);
        return;
    }
    switch (conversation_claim(call->worker->gateway, state.id, state.round)) {
    case CONVERSATION_CLAIMED:
        leg = leg_begin(call, looks, silence_ms);
        memcpy(leg->handle, state.id, sizeof leg->handle);
        conversation_answer(call->worker, leg->handle, leg->id, call->envelope.input_responses);
        break;
    case CONVERSATION_ANSWERED:
        refuse_state(call, REQUEST_STATE_REFUSAL);
        break;
    case CONVERSATION_LOST:
        refuse_state(call, LOST);
        break;
    }
}

static void leg_start(struct call *call, const struct looks *looks, const struct carried *carried)
{
    ASSERT(looks_cross_eras(looks) && !carried->url && !carried->message);
    ASSERT(carried->slow_ms == 0); /* no call of this carrier becomes a task */
    call_identify(call);
    if (call->envelope.request_state.length > 0) {
        leg_go_on(call, looks, carried->silence_ms);
        return;
    }
    leg_begin(call, looks, carried->silence_ms);
    server_legacy.obtain(call, leg_send);
}

const struct call_carrier modern_client_carrier = {.start = leg_start};
