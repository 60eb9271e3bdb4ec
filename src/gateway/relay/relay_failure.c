/* The answer to the client when the server's response does not come, or breaks off. */
#include "call/call_span.h"
#include "relay_internal.h"
#include "taskgate/mcp/sse.h"

enum relay_failure relay_failure_of(enum upstream_result result)
{
    switch (result) {
    case UPSTREAM_CONNECT_FAILED:
        return RELAY_CONNECT_FAILED;
    case UPSTREAM_SILENT:
        return RELAY_TIMEOUT;
    case UPSTREAM_DONE:
        return RELAY_UNREADABLE;
    case UPSTREAM_GONE:
        break;
    }
    return RELAY_GONE;
}

enum jsonrpc_error relay_failure_error(enum relay_failure failure)
{
    switch (failure) {
    case RELAY_TIMEOUT:
        return JSONRPC_UPSTREAM_TIMEOUT;
    case RELAY_UNREADABLE:
    case RELAY_STATUS_5XX:
        return JSONRPC_UPSTREAM_ERROR;
    case RELAY_CONNECT_FAILED:
    case RELAY_GONE:
        break;
    }
    return JSONRPC_UPSTREAM_FAILED;
}

void relay_answer_failure(struct call *call, enum relay_failure failure)
{
    if (call->envelope.kind == ENVELOPE_REQUEST && call->envelope.id.length > 0) {
        struct jsonrpc_error_data data = {.tool = call_tool(call)};
        call_answer_error(call, relay_failure_error(failure), STR_EMPTY, &data);
    } else {
        call_answer_status(call, 502, STR_EMPTY);
    }
}

void relay_fail(struct relay *relay, enum relay_failure failure)
{
    bool (*failed)(struct call *, enum relay_failure) = relay->options.failed;
    struct call *call = relay_finish(relay);
    if (!failed || !failed(call, failure))
        relay_answer_failure(call, failure);
}

void relay_fail_in_stream(struct relay *relay, enum relay_failure failure)
{
    bool events = relay->mode == RELAY_EVENTS && !relay->inside_event;
    bool answered = events && relay_is_answered(relay);
    struct call *call = relay_finish(relay);
    struct http_exchange *exchange = call->exchange;
    call->upstream_broke = true;
    call->outcome = answered ? "success" : "error";
    if (!answered)
        call_span_fail(call, relay_failure_error(failure));
    http_on_gone(exchange, NULL, NULL);
    if (events && !answered && call->envelope.id.length > 0) {
        struct buffer message, event;
        buffer_init(&message);
        buffer_init(&event);
        dialect_write_error(call->dialect, &message, call->envelope.id,
                            relay_failure_error(failure), STR_EMPTY, NULL);
        sse_write_event(&event, STR_EMPTY, STR_EMPTY, buffer_str(&message));
        http_stream_write(exchange, buffer_str(&event));
        buffer_finish(&event);
        buffer_finish(&message);
    }
    call_ended(call);
    if (events)
        http_stream_end(exchange);
    else
        http_stream_abort(exchange);
}

void relay_end_with(struct call *call, struct str message)
{
    struct relay *relay = relay_find(call);
    bool has_begun = relay->mode != RELAY_WAITING && relay->mode != RELAY_WHOLE;
    bool is_between_events = relay->mode == RELAY_EVENTS && !relay->inside_event;
    relay_finish(relay);
    if (!has_begun) {
        call_answer(call, message);
        return;
    }
    struct http_exchange *exchange = call->exchange;
    struct buffer event;
    buffer_init(&event);
    sse_write_event(&event, STR_EMPTY, STR_EMPTY, message);
    http_on_gone(exchange, NULL, NULL);
    call_ended(call);
    if (is_between_events) {
        http_stream_write(exchange, buffer_str(&event));
        http_stream_end(exchange);
    } else {
        http_stream_abort(exchange);
    }
    buffer_finish(&event);
}

/* ---- the silence after which there is none ---- */

void relay_set_silence(struct call *call, int64_t silence_ms)
{
    struct relay *relay = relay_find(call);
    if (!relay || !relay->upstream || relay->options.silence_ms == silence_ms)
        return;
    relay->options.silence_ms = silence_ms;
    upstream_call_set_silence(relay->upstream, silence_ms);
}

void relay_wait_for_person(struct call *call)
{
    struct relay *relay = relay_find(call);
    if (!relay)
        return;
    relay_set_silence(call, 0);
    if (relay->options.slow)
        loop_timer_start(&relay->slow, 0);
}
