/* Requests of the gateway's own for a call, and messages whose answer nobody waits for. */
#include "call/call_span.h"
#include "rpc_call.h"
#include "taskgate/core/random.h"

void rpc_call_write_request(struct buffer *body, struct buffer *id, const char *method,
                            struct str params)
{
    char uuid[RANDOM_UUID_BYTES];
    random_uuid(uuid);
    buffer_append_format(id, "\"tg:%s\"", uuid);
    buffer_append_text(body, "{\"jsonrpc\":\"2.0\",\"id\":");
    buffer_append(body, buffer_str(id));
    buffer_append_format(body, ",\"method\":\"%s\"", method);
    if (params.length > 0) {
        buffer_append_text(body, ",\"params\":");
        buffer_append(body, params);
    }
    buffer_append_char(body, '}');
}

static void nobody_waits(void *context, const struct rpc_call_reply *reply)
{
}

struct rpc_call *rpc_call_ask(const struct call *call, const struct rpc_call_question *question,
                              const struct rpc_call_callbacks *callbacks, void *context)
{
    const struct rpc_call_options options = {
        .source = call->source,
        .snapshot = call->snapshot,
        .headers = question->headers,
        .body = question->body,
        .id = question->id,
        .silence_ms = question->limit_ms,
        .total_ms = question->limit_ms,
        .most_bytes = question->most_bytes,
        .trace.parent = call_span_parent(call),
    };
    return rpc_call_start(call->worker, &options, callbacks, context);
}

struct rpc_call *rpc_call_start_page(struct call *call, const char *method, struct str cursor,
                                     size_t most_bytes, const struct rpc_call_callbacks *callbacks)
{
    struct buffer params = {0}, body = {0}, id = {0};
    struct headers headers;
    int64_t timeout_ms = call->snapshot->config->times.tools_fetch_timeout_ms;
    headers_init(&headers, false);
    headers_from_call(&headers, call);
    if (cursor.length > 0)
        buffer_append_format(&params, "{\"cursor\":%.*s}", STR_ARGS(cursor));
    rpc_call_write_request(&body, &id, method, buffer_str(&params));
    const struct rpc_call_question question = {&headers, buffer_str(&body), buffer_str(&id),
                                               timeout_ms, most_bytes};
    struct rpc_call *rpc = rpc_call_ask(call, &question, callbacks, call);
    headers_finish(&headers);
    buffer_finish(&params);
    buffer_finish(&body);
    buffer_finish(&id);
    return rpc;
}

void rpc_call_notify(struct gateway_worker *worker, const struct rpc_call_options *options)
{
    static const struct rpc_call_callbacks callbacks = {.reply = nobody_waits};
    struct rpc_call_options bounded = *options;
    bounded.total_ms = 10000;
    bounded.most_bytes = 65536;
    rpc_call_start(worker, &bounded, &callbacks, NULL);
}
