/* Rewriting and answering what the bridge brings. */
#include "relay_bridged.h"

#include <stdlib.h>
#include <string.h>

#include "bridge/bridge_call.h"
#include "bridged_subscribe.h"
#include "call/call_part.h"
#include "call/deferred_response.h"
#include "relay_rewrite.h"
#include "server/server_refusal.h"
#include "state/tool_catalog.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/cacheable.h"
#include "taskgate/mcp/legacy_bridge.h"

struct bridged_relay {
    struct call_part part;
    struct relay_options options;
};

static void drop(struct call *call, void *object)
{
    (void)call;
    free(object);
}

static const struct call_part_kind bridged_relay_kind = CALL_PART_KIND(struct bridged_relay, drop);

static struct relay_options take_options(struct call *call)
{
    struct bridged_relay *relay = call_part_get(call, &bridged_relay_kind);
    const struct relay_options options = relay->options;
    call_part_remove(&relay->part);
    free(relay);
    return options;
}

/* ---- an answer ---- */

static void write_result(struct call *call, struct str result, struct buffer *out)
{
    struct catalog_tool tool = {0};
    size_t start = out->length;
    if (call->method->treatment == MCP_TOOLS_LIST) {
        legacy_bridge_write_tools(out, result);
    } else if (call->method->treatment == MCP_TOOLS_CALL) {
        call_find_tool(call, call->envelope.name.text, &tool);
        legacy_bridge_write_call_result(out, result, tool.wraps_output);
    } else {
        legacy_bridge_write_result(out, result);
    }
    if (mcp_method_is_list(call->method))
        mcp_cacheable_drop_tags(out, start, result);
}

/* The catalogue learns from the server's own words, so they are rewritten first. */
static void on_answer(struct call *call, struct str message)
{
    const struct relay_options options = take_options(call);
    struct buffer rewritten, written, whole;
    buffer_init(&rewritten);
    buffer_init(&written);
    buffer_init(&whole);
    if (relay_rewrite(call, &options, message, &rewritten))
        message = buffer_str(&rewritten);
    struct str result = json_member(message, "result");
    if (result.length > 0) {
        write_result(call, result, &written);
        buffer_append_replaced(&whole, message, result, buffer_str(&written));
        message = buffer_str(&whole);
    } else {
        call->outcome = "error";
    }
    call_answer(call, message);
    buffer_finish(&whole);
    buffer_finish(&written);
    buffer_finish(&rewritten);
}

/* ---- no answer ---- */

static enum relay_failure failure_of(const struct rpc_call_reply *reply)
{
    if (reply->result != UPSTREAM_DONE)
        return relay_failure_of(reply->result);
    return reply->status >= 500 ? RELAY_STATUS_5XX : RELAY_UNREADABLE;
}

/* Its headers tell the client how to log in, or when to come again. */
static bool goes_down_as_it_is(const struct call *call, const struct rpc_call_reply *reply)
{
    int status = reply->status;
    return reply->result == UPSTREAM_DONE && !reply->too_large &&
           (status == 401 || status == 403 || status == 429 || status >= 500) &&
           !deferred_response_is_stream(call);
}

void relay_bridged_answer_failure(struct call *call, const struct rpc_call_reply *reply)
{
    log_warn("Upstream failed", LOG_TEXT("source", call->source->id),
             LOG_NUMBER("status", reply->status), LOG_TEXT("detail", reply->detail));
    if (reply->too_large)
        metrics_count(METRIC_LIMITS_REACHED, STR("result_bytes"));
    if (goes_down_as_it_is(call, reply))
        server_refusal_pass(call, reply);
    else
        relay_answer_failure(call, failure_of(reply));
}

static void on_failure(struct call *call, const struct rpc_call_reply *reply)
{
    const struct relay_options options = take_options(call);
    bool is_login = reply->status == 401 || reply->status == 403;
    if (is_login || !options.failed || !options.failed(call, failure_of(reply)))
        relay_bridged_answer_failure(call, reply);
}

/* ---- the beginning ---- */

/* A method goes into a header. */
static bool is_plain(struct str method)
{
    for (size_t i = 0; i < method.length; i++) {
        char c = method.bytes[i];
        if (c <= ' ' || c >= 0x7f)
            return false;
    }
    return method.length > 0;
}

/* A modern server is not asked for what its era lacks. All tasks here are the gateway's own. */
static bool can_be_asked(struct call *call)
{
    struct str method = call->envelope.method;
    bool is_of_tasks = str_starts_with(method, STR("tasks/"));
    bool is_legacy_alone = call->method->treatment != MCP_UNKNOWN &&
                           mcp_method_find(method, MCP_ERA_MODERN)->treatment == MCP_UNKNOWN;
    if (is_of_tasks)
        call_answer_error(call, JSONRPC_TASK_NOT_FOUND, STR_EMPTY, NULL);
    else if (is_legacy_alone || !is_plain(method))
        call_answer_error(call, JSONRPC_METHOD_NOT_FOUND, STR_EMPTY, NULL);
    return !is_of_tasks && !is_legacy_alone && is_plain(method);
}

/* They are a part of what the session's streams listen to. */
static bool is_of_subscriptions(struct call *call)
{
    if (str_equal(call->envelope.method, STR("resources/subscribe")))
        bridged_subscribe(call);
    else if (str_equal(call->envelope.method, STR("resources/unsubscribe")))
        bridged_unsubscribe(call);
    else
        return false;
    return true;
}

void relay_bridged_start(struct call *call, const struct relay_options *options)
{
    const struct bridge_call_options bridged = {.silence_ms = options->silence_ms,
                                                .answered = on_answer,
                                                .failed = on_failure,
                                                .slow_ms = options->slow_ms,
                                                .slow = options->slow,
                                                .left = options->left,
                                                .forbidden = options->forbidden,
                                                .asks_later = options->asks_later};
    if (is_of_subscriptions(call) || !can_be_asked(call))
        return;
    struct bridged_relay *relay = memory_alloc(sizeof *relay);
    relay->options = *options;
    call_part_add(call, &relay->part, &bridged_relay_kind);
    bridge_call_start(call, &bridged);
}
