/* A bridged request on its way: the object, sending it, and giving it up. */
#include <stdlib.h>

#include "bridge_internal.h"
#include "call/call_span.h"
#include "call/deferred_response.h"
#include "conversation/question.h"
#include "server/bridge_request.h"
#include "taskgate/core/log.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/legacy_bridge.h"

static void end_questions(const struct bridge_call *bridge)
{
    char key[QUESTION_KEY_BYTES];
    question_key_of_call(bridge->number, key);
    question_end_call(bridge->call->worker, str_from(key), bridge->number);
}

static void drop(struct call *call, void *object)
{
    struct bridge_call *bridge = object;
    exchange_abandon(bridge->exchange);
    loop_timer_stop(&bridge->timer);
    loop_timer_stop(&bridge->slow);
    if (bridge->open > 0)
        end_questions(bridge);
    buffer_finish(&bridge->answers);
    buffer_finish(&bridge->required);
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

struct bridge_call *bridge_call_of(const struct call *call)
{
    return call_part_find(call, &bridge_call_kind);
}

void bridge_call_add(struct call *call, struct bridge_call *bridge)
{
    call_part_add(call, &bridge->part, &bridge_call_kind);
}

void bridge_call_give_up(struct bridge_call *bridge, const char *why)
{
    struct call *call = bridge_call_finish(bridge);
    struct buffer result;
    log_warn("A bridged call is given up", LOG_TEXT("source", call->source->id),
             LOG_TEXT("reason", why));
    if (call->method->treatment != MCP_TOOLS_CALL) {
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

/* ---- sending ---- */

static void on_call_released(void *context)
{
    struct bridge_call *bridge = bridge_call_from(context);
    bridge->exchange = NULL;
    bridge_call_finish(bridge);
}

void bridge_call_send(struct bridge_call *bridge, struct str more)
{
    const struct exchange_events events = {.reply = bridge->replied,
                                           .server_message = on_server_message,
                                           .released = on_call_released};
    struct call *call = bridge->call;
    struct headers headers;
    struct buffer body = {0}, id = {0};
    headers_init(&headers, true);
    bridge_request_write(call, more, &headers, &body, &id);
    const struct sending sending = {
        .source = call->source,
        .snapshot = call->snapshot,
        .headers = &headers,
        .body = buffer_str(&body),
        .id = buffer_str(&id),
        .silence_ms = bridge->options.silence_ms,
        .most_bytes = (size_t)call->snapshot->config->limits.result_bytes,
        .trace.parent = call_span_parent(call),
    };
    bridge->exchange = exchange_send(call->worker, &sending, &events, bridge);
    buffer_finish(&id);
    buffer_finish(&body);
    headers_finish(&headers);
}
