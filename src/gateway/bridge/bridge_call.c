/* One bridged request: sending it, and what the server answers. */
#include <stdlib.h>

#include "bridge_internal.h"
#include "bridge_questions.h"
#include "bridge_request.h"
#include "mcp_client/tools_fetch.h"
#include "request/deferred_response.h"
#include "state/source_eras.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/legacy_bridge.h"

static void drop(struct call *call, void *object)
{
    struct bridge_call *bridge = object;
    rpc_call_cancel(bridge->rpc);
    loop_timer_stop(&bridge->timer);
    loop_timer_stop(&bridge->slow);
    if (bridge->open > 0)
        bridge_questions_forget(call->worker->gateway->bridge_questions, bridge->number);
    buffer_finish(&bridge->answers);
    buffer_finish(&bridge->state);
    MAGIC_CLEAR(bridge);
    free(bridge);
}

static void tell_left(struct call *call, void *object)
{
    const struct bridge_call *bridge = object;
    if (bridge->options.left)
        bridge->options.left(call);
}

static const struct call_part_kind bridge_call_kind = {
    .offset = offsetof(struct bridge_call, part), .drop = drop, .gone = tell_left};

struct call *bridge_call_finish(struct bridge_call *bridge)
{
    struct call *call = bridge->call;
    call_part_remove(&bridge->part);
    drop(call, bridge);
    return call;
}

struct bridge_call *bridge_call_find(const struct gateway_worker *worker, uint64_t number)
{
    LIST_FOR_EACH_SAFE (node, next, &worker->calls) {
        const struct call *call = LIST_ENTRY(node, struct call, node);
        struct bridge_call *bridge = call_part_find(call, &bridge_call_kind);
        if (bridge && bridge->number == number)
            return bridge;
    }
    return NULL;
}

/* ---- a call that goes on elsewhere ---- */

static struct bridge_call *find(const struct call *call)
{
    return call_part_find(call, &bridge_call_kind);
}

static void on_slow(void *context)
{
    struct bridge_call *bridge = bridge_call_from(context);
    bridge->options.slow(bridge->call);
}

bool bridge_call_is_under_way(const struct call *call)
{
    const struct bridge_call *bridge = find(call);
    return bridge && bridge->rpc;
}

int64_t bridge_call_age_ms(const struct call *call)
{
    return clock_monotonic_ms() - find(call)->started_ms;
}

void bridge_call_repeat_slow(struct call *call, int64_t in_ms)
{
    struct bridge_call *bridge = find(call);
    if (bridge)
        loop_timer_start(&bridge->slow, in_ms);
}

struct rpc_call *bridge_call_take(struct call *call)
{
    struct bridge_call *bridge = find(call);
    struct rpc_call *rpc = bridge->rpc;
    bridge->rpc = NULL;
    bridge_call_finish(bridge);
    return rpc;
}

/* ---- a call that is given up ---- */

static bool calls_tool(const struct call *call)
{
    return call->method->treatment == MCP_TOOLS_CALL;
}

void bridge_call_give_up(struct bridge_call *bridge, const char *why)
{
    struct call *call = bridge_call_finish(bridge);
    struct buffer result;
    log_warn("A bridged call is given up", LOG_TEXT("source", call->source->id),
             LOG_TEXT("reason", why));
    if (!calls_tool(call)) {
        call_answer_error(call, JSONRPC_INTERNAL, str_from(why), NULL);
        return;
    }
    buffer_init(&result);
    buffer_append_text(&result, "{\"content\":[{\"type\":\"text\",\"text\":");
    buffer_append_json_string(&result, str_from(why));
    buffer_append_text(&result, "}],\"isError\":true}");
    call_answer_result(call, buffer_str(&result));
    buffer_finish(&result);
}

/* ---- what comes before the answer ---- */

/* Anything else is not about this request, and may not be here. */
static bool is_passed(struct str method)
{
    return json_string_equals(method, STR("notifications/progress")) ||
           json_string_equals(method, STR("notifications/message"));
}

static void on_server_message(void *context, struct str message)
{
    struct call *call = bridge_call_from(context)->call;
    struct str method = json_member(message, "method");
    if (json_member(message, "id").length > 0 || !is_passed(method))
        return;
    struct buffer legacy;
    buffer_init(&legacy);
    legacy_bridge_write_notification(&legacy, message);
    deferred_response_open(call);
    if (json_string_equals(method, STR("notifications/progress")))
        deferred_response_pass_progress(call, buffer_str(&legacy));
    else
        deferred_response_pass(call, buffer_str(&legacy));
    buffer_finish(&legacy);
}

/* ---- the answer ---- */

static void answer_with(struct bridge_call *bridge, const char *member, struct str value)
{
    void (*answered)(struct call *, struct str) = bridge->options.answered;
    struct buffer message;
    buffer_init(&message);
    buffer_append_text(&message, "{\"jsonrpc\":\"2.0\",\"id\":");
    buffer_append(&message, bridge->call->envelope.id);
    buffer_append_format(&message, ",\"%s\":", member);
    buffer_append(&message, value);
    buffer_append_char(&message, '}');
    answered(bridge_call_finish(bridge), buffer_str(&message));
    buffer_finish(&message);
}

static void take_result(struct bridge_call *bridge, struct str result)
{
    struct str type = json_member(result, "resultType");
    if (type.length == 0 || json_string_equals(type, STR("complete")))
        answer_with(bridge, "result", result);
    else if (json_string_equals(type, STR("input_required")))
        bridge_rounds_begin(bridge, result);
    else
        bridge_call_give_up(bridge, "The server answered with a result that was not asked for");
}

static void send_anew(struct call *call)
{
    struct bridge_call *bridge = call_part_find(call, &bridge_call_kind);
    if (bridge)
        bridge_call_send(bridge, STR_EMPTY);
}

/* The tool repeats other arguments in headers than the list said that the owner was told. */
static bool looks_again(struct bridge_call *bridge)
{
    struct call *call = bridge->call;
    if (!calls_tool(call) || bridge->has_looked || bridge->rounds > 0)
        return false;
    bridge->has_looked = true;
    return tools_fetch_then(call, send_anew);
}

/* The gateway has made the request, so the client can mend nothing. */
static void answer_own_fault(struct bridge_call *bridge, struct str code)
{
    struct call *call = bridge_call_finish(bridge);
    log_error("The server does not take a request that was made for it",
              LOG_TEXT("source", call->source->id), LOG_STR("method", call->envelope.method),
              LOG_STR("code", code));
    call_answer_error(call, JSONRPC_INTERNAL,
                      STR("The server does not take the request that stands for this one"), NULL);
}

static void take_error(struct bridge_call *bridge, struct str error)
{
    struct str code = json_member(error, "code");
    bool is_mismatch = str_equal(code, STR("-32020"));
    if (is_mismatch && looks_again(bridge))
        return;
    if (is_mismatch || str_equal(code, STR("-32022")))
        answer_own_fault(bridge, code);
    else
        answer_with(bridge, "error", error);
}

static void on_reply(void *context, const struct rpc_call_reply *reply)
{
    struct bridge_call *bridge = bridge_call_from(context);
    struct call *call = bridge->call;
    struct str result = json_member(reply->message, "result");
    struct str error = json_member(reply->message, "error");
    bool is_login = reply->status == 401 || reply->status == 403;
    bridge->rpc = NULL;
    if (reply->status == 400 || reply->status == 404 || reply->status == 405)
        source_eras_doubt(call->worker->gateway->eras, call->source,
                          loop_now_ms(call->worker->loop));
    if (result.length > 0) {
        take_result(bridge, result);
    } else if (error.length > 0 && !is_login) {
        take_error(bridge, error);
    } else {
        void (*failed)(struct call *, const struct rpc_call_reply *) = bridge->options.failed;
        failed(bridge_call_finish(bridge), reply);
    }
}

/* ---- sending ---- */

void bridge_call_send(struct bridge_call *bridge, struct str more)
{
    static const struct rpc_call_callbacks callbacks = {.reply = on_reply,
                                                        .server_message = on_server_message};
    struct call *call = bridge->call;
    struct headers headers;
    struct buffer body = {0}, id = {0};
    headers_init(&headers, true);
    bridge_request_write(call, more, &headers, &body, &id);
    const struct rpc_call_options options = {
        .source = call->source,
        .snapshot = call->snapshot,
        .headers = &headers,
        .body = buffer_str(&body),
        .id = buffer_str(&id),
        .silence_ms = bridge->options.silence_ms,
        .most_bytes = (size_t)call->snapshot->config->limits.result_bytes,
    };
    bridge->rpc = rpc_call_start(call->worker, &options, &callbacks, bridge);
    buffer_finish(&id);
    buffer_finish(&body);
    headers_finish(&headers);
}

void bridge_call_start(struct call *call, const struct bridge_call_options *options)
{
    struct bridge_call *bridge = memory_alloc(sizeof *bridge);
    MAGIC_SET(bridge, BRIDGE_CALL_MAGIC);
    bridge->call = call;
    bridge->options = *options;
    bridge->number = bridge_questions_next_number();
    bridge->started_ms = clock_monotonic_ms();
    loop_timer_init(&bridge->timer, call->worker->loop, NULL, bridge);
    loop_timer_init(&bridge->slow, call->worker->loop, on_slow, bridge);
    if (options->slow_ms > 0)
        loop_timer_start(&bridge->slow, options->slow_ms);
    deferred_response_begin(call, "the server", STR_EMPTY);
    deferred_response_await_upstream(call);
    deferred_response_open_late(call);
    call_part_add(call, &bridge->part, &bridge_call_kind);
    bridge_call_send(bridge, STR_EMPTY);
}
