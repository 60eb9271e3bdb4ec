/* The messages to a modern client about its bridged call. */
#include "leg.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "call/broadcast.h"
#include "call/call.h"
#include "call/deferred_response.h"
#include "call/request_state.h"
#include "relay/relay.h"
#include "server/server_refusal.h"
#include "server/sessions.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/magic.h"
#include "taskgate/core/memory.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/cacheable.h"
#include "taskgate/mcp/legacy_server.h"

struct leg {
    uint32_t magic;   /* LEG_MAGIC */
    struct list node; /* in worker.bridge_legs */
    struct call_part part;
    struct call *call;
    struct relay_options options;
    const struct leg_callbacks *callbacks;
    char id[RANDOM_UUID_BYTES];
    bool is_done;  /* the answer is there, or the next leg will have it */
    bool is_again; /* it was sent again */
};
#define LEG_MAGIC 0x47574254

static void drop(struct call *call, void *object)
{
    struct leg *leg = object;
    list_remove(&leg->node);
    call->upstream_session = NULL;
    if (!leg->is_done)
        leg->callbacks->gone(call->worker, leg->id);
    MAGIC_CLEAR(leg);
    free(leg);
}

static const struct call_part_kind leg_kind = CALL_PART_KIND(struct leg, drop);

static struct leg *leg_of(const struct call *call)
{
    return call_part_get(call, &leg_kind);
}

void leg_begin(struct call *call, const struct relay_options *options,
               const struct leg_callbacks *callbacks)
{
    struct leg *leg = memory_alloc(sizeof *leg);
    MAGIC_SET(leg, LEG_MAGIC);
    leg->call = call;
    leg->options = *options;
    leg->callbacks = callbacks;
    random_uuid(leg->id);
    list_append(&call->worker->bridge_legs, &leg->node);
    call_part_add(call, &leg->part, &leg_kind);
    deferred_response_begin(call, "", STR_EMPTY);
    deferred_response_be_quiet(call);
    deferred_response_await_upstream(call);
    deferred_response_open_late(call);
}

const char *leg_id(const struct call *call)
{
    return leg_of(call)->id;
}

const struct relay_options *leg_options(const struct call *call)
{
    return &leg_of(call)->options;
}

static struct leg *find(struct gateway_worker *worker, const char *id)
{
    LIST_FOR_EACH_SAFE (node, next, &worker->bridge_legs) {
        struct leg *leg = LIST_ENTRY(node, struct leg, node);
        if (strcmp(leg->id, id) == 0)
            return leg;
    }
    return NULL;
}

struct call *leg_find(struct gateway_worker *worker, const char *id)
{
    struct leg *leg = find(worker, id);
    return leg ? leg->call : NULL;
}

/* ---- notifications ---- */

/* The server was given the token of the first leg; this one's client goes by its own. */
static void write_progress(const struct call *call, struct str message, struct buffer *out)
{
    struct buffer params;
    buffer_init(&params);
    json_write_with_member(&params, json_member(message, "params"), "progressToken",
                           call->envelope.progress_token);
    json_write_with_member(out, message, "params", buffer_str(&params));
    buffer_finish(&params);
}

static bool wants_log(const struct call *call, struct str message)
{
    int wanted = legacy_server_level(call->envelope.reserved.log_level);
    return wanted >= 0 && legacy_server_level(json_path(message, "params", "level")) >= wanted;
}

static void pass(const struct leg *leg, struct str message)
{
    struct call *call = leg->call;
    struct str method = json_member(message, "method");
    bool is_progress = json_string_equals(method, STR("notifications/progress"));
    bool is_log = json_string_equals(method, STR("notifications/message"));
    struct buffer own, changed;
    if (!(is_progress && call->envelope.progress_token.length > 0) &&
        !(is_log && wants_log(call, message)))
        return;
    buffer_init(&own);
    buffer_init(&changed);
    legacy_server_write_notification(&own, message);
    if (is_progress)
        write_progress(call, buffer_str(&own), &changed);
    deferred_response_open(call);
    deferred_response_pass(call, is_progress ? buffer_str(&changed) : buffer_str(&own));
    buffer_finish(&changed);
    buffer_finish(&own);
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
    struct buffer out;
    buffer_init(&out);
    bool is_rewritten = relay_rewrite(call, &leg->options, message, &out);
    leg->is_done = true;
    call_answer(call, is_rewritten ? buffer_str(&out) : message);
    buffer_finish(&out);
}

static void fail(struct leg *leg, enum relay_failure failure)
{
    struct call *call = leg->call;
    leg->is_done = true;
    if (!leg->options.failed || !leg->options.failed(call, failure))
        relay_answer_failure(call, failure);
}

static void answer_result(struct leg *leg, struct str result, struct str server_info)
{
    const struct call *call = leg->call;
    struct buffer modern = {0}, message = {0};
    if (legacy_server_write_result(&modern, result, is_cacheable(call), server_info)) {
        if (mcp_method_is_list(call->method))
            mcp_cacheable_drop_tags(&modern, 0, result);
        jsonrpc_write_result(&message, call->envelope.id, buffer_str(&modern));
        answer_rewritten(leg, buffer_str(&message));
    } else {
        fail(leg, RELAY_UNREADABLE);
    }
    buffer_finish(&modern);
    buffer_finish(&message);
}

/* The server wants URLs to be opened before the call is made: nothing of it is under way. */
static bool answer_urls(struct leg *leg, struct str error)
{
    struct call *call = leg->call;
    struct buffer requests = {0}, result = {0};
    bool may_ask =
        session_pool_may_be_asked(call) &&
        legacy_server_may_ask(call->envelope.reserved.client_capabilities, LEGACY_QUESTION_URL) &&
        legacy_server_write_urls(&requests, error);
    if (may_ask) {
        buffer_append_text(&result, "{\"resultType\":\"input_required\",\"inputRequests\":");
        buffer_append(&result, buffer_str(&requests));
        buffer_append_char(&result, '}');
        leg->is_done = true;
        call_answer_result(call, buffer_str(&result));
    }
    buffer_finish(&requests);
    buffer_finish(&result);
    return may_ask;
}

static void answer_error(struct leg *leg, struct str error)
{
    struct call *call = leg->call;
    struct buffer mapped = {0}, message = {0};
    if (answer_urls(leg, error))
        return;
    legacy_server_write_error(&mapped, error, call->method->treatment == MCP_GATED_URI);
    jsonrpc_write_error_text(&message, call->envelope.id, buffer_str(&mapped));
    call->outcome = "error";
    if (str_equal(json_member(buffer_str(&mapped), "code"), STR("-32601")) &&
        call->method->treatment != MCP_TOOLS_CALL && !deferred_response_is_stream(call) &&
        !leg->options.replace_error) {
        leg->is_done = true;
        call_answer_status(call, 404, buffer_str(&message));
    } else {
        answer_rewritten(leg, buffer_str(&message));
    }
    buffer_finish(&mapped);
    buffer_finish(&message);
}

static void answer(struct leg *leg, const struct leg_event *event)
{
    struct str result = json_member(event->text, "result");
    struct str error = json_member(event->text, "error");
    if (result.length > 0)
        answer_result(leg, result, event->server_info);
    else if (json_type(error) == JSON_OBJECT)
        answer_error(leg, error);
    else
        fail(leg, RELAY_UNREADABLE);
}

/* ---- the server asks ---- */

static void ask(struct leg *leg, const struct leg_event *event)
{
    struct call *call = leg->call;
    struct request_state state = {.round = event->number};
    struct buffer result;
    buffer_init(&result);
    snprintf(state.id, sizeof state.id, "%s", event->handle);
    state.until_ms = clock_now_ms() + call->snapshot->config->pseudo.elicitation_timeout_ms;
    buffer_append_text(&result, "{\"resultType\":\"input_required\",\"inputRequests\":");
    buffer_append(&result, event->text);
    buffer_append_text(&result, ",\"requestState\":");
    request_state_write(call, &state, &result);
    buffer_append_char(&result, '}');
    leg->is_done = true;
    call_answer_result(call, buffer_str(&result));
    buffer_finish(&result);
}

/* ---- the session has ended at the server ---- */

static void expire(struct leg *leg)
{
    struct call *call = leg->call;
    const struct jsonrpc_error_data data = {
        .tool = call_tool(call),
        .details = STR("the server has forgotten the session; the call was not run"),
        .is_retryable = true};
    if (call->method->treatment != MCP_TOOLS_CALL && !leg->is_again) {
        leg->is_again = true;
        call->upstream_session = NULL;
        leg->callbacks->again(call);
        return;
    }
    leg->is_done = true;
    call_answer_error(call, JSONRPC_UPSTREAM_FAILED, STR_EMPTY, &data);
}

void leg_send_http(struct gateway_worker *worker, const char *id,
                   const struct exchange_reply *reply)
{
    struct leg *leg = find(worker, id);
    struct leg_event event = {.kind = LEG_FAILED, .number = RELAY_UNREADABLE};
    if (!leg || deferred_response_is_stream(leg->call)) {
        snprintf(event.leg, sizeof event.leg, "%s", id);
        leg_send(worker, &event);
        return;
    }
    leg->is_done = true;
    server_refusal_pass(leg->call, reply);
}

/* ---- events ---- */

static void take(struct leg *leg, const struct leg_event *event)
{
    switch (event->kind) {
    case LEG_PASS:
        pass(leg, event->text);
        break;
    case LEG_ANSWER:
        answer(leg, event);
        break;
    case LEG_ASK:
        ask(leg, event);
        break;
    case LEG_FAILED:
        fail(leg, (enum relay_failure)event->number);
        break;
    case LEG_EXPIRED:
        expire(leg);
        break;
    }
}

static void own(void *message)
{
    struct leg_event *event = message;
    event->text = broadcast_copy(event->text);
    event->server_info = broadcast_copy(event->server_info);
}

static void finish(void *message)
{
    struct leg_event *event = message;
    broadcast_release(event->text);
    broadcast_release(event->server_info);
}

static void deliver(struct gateway_worker *worker, const void *message)
{
    const struct leg_event *event = message;
    struct leg *leg = find(worker, event->leg);
    if (leg)
        take(leg, event);
}

static const struct broadcast_kind event_kind = {
    .bytes = sizeof(struct leg_event), .own = own, .finish = finish, .deliver = deliver};

void leg_send(struct gateway_worker *worker, const struct leg_event *event)
{
    struct leg *leg = find(worker, event->leg);
    if (leg)
        take(leg, event);
    else if (event->leg[0])
        broadcast_send(worker->gateway, &event_kind, event);
}
