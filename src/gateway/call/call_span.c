/* The trace that a request belongs to, and what its span says of it. */
#include "call_span.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "taskgate/json/text.h"
#include "taskgate/loop/loop.h"
#include "taskgate/task/task.h"
#include "upstream_span.h"

/* ---- the trace that it belongs to ---- */

/* The values of a header that may be there several times. */
struct found {
    struct str first;
    size_t count;
    struct buffer joined; /* all of them, with commas */
};

static void find_header(const struct http_exchange *exchange, struct str name, struct found *found)
{
    size_t count = http_header_count(exchange);
    for (size_t i = 0; i < count; i++) {
        struct http_header item = http_header_at(exchange, i);
        if (!str_equal_ignore_case(item.name, name))
            continue;
        if (found->count++ == 0)
            found->first = item.value;
        else
            buffer_append_char(&found->joined, ',');
        buffer_append(&found->joined, item.value);
    }
}

/* Several of them contradict each other, so that none counts. */
static bool read_header(const struct found *traceparent, struct trace_context *context)
{
    return traceparent->count == 1 && trace_context_parse(context, str_trim(traceparent->first));
}

/* A context in the message itself is about the message; headers are about the way that it has come
 * (semantic conventions for MCP, "Context propagation"). */
static bool read_meta(const struct call *call, struct trace_context *context, char **state)
{
    static const char *const keys[] = {"traceparent", "tracestate"};
    struct str values[2];
    json_members(call->envelope.meta.raw, keys, 2, values);
    char *text = json_string_text(values[0], NULL);
    bool is_read = text && trace_context_parse(context, str_from(text));
    free(text);
    if (is_read)
        *state = json_string_text(values[1], NULL);
    return is_read;
}

static struct span *start_in_trace(const struct call *call, struct str name)
{
    struct found traceparent = {0}, tracestate = {0};
    struct trace_context of_message, of_way;
    char *state = NULL;
    find_header(call->exchange, STR("traceparent"), &traceparent);
    find_header(call->exchange, STR("tracestate"), &tracestate);
    bool has_meta = read_meta(call, &of_message, &state);
    bool has_header = read_header(&traceparent, &of_way);
    struct span_parent parent = {.is_remote = true};
    if (has_meta) {
        parent.context = &of_message;
        parent.state = str_from(state);
    } else if (has_header) {
        parent.context = &of_way;
        parent.state = buffer_str(&tracestate.joined);
    }
    struct span *span = span_start(SPAN_SERVER, name, &parent);
    if (has_meta && has_header && !trace_context_equal(&of_message, &of_way))
        span_add_link(span, &of_way);
    buffer_finish(&traceparent.joined);
    buffer_finish(&tracestate.joined);
    free(state);
    return span;
}

/* ---- what it says ---- */

/* The digits, or the text without its quotes. */
static struct str bare_id(struct str id)
{
    bool is_text = id.length >= 2 && id.bytes[0] == '"';
    return is_text ? str_slice(id.bytes + 1, id.length - 2) : id;
}

static void set_request_id(struct span *span, struct str id)
{
    bool is_escaped = id.length > 0 && memchr(id.bytes, '\\', id.length);
    char *text = is_escaped ? json_string_text(id, NULL) : NULL;
    span_set_text(span, ATTRIBUTE_REQUEST_ID, text ? str_from(text) : bare_id(id));
    free(text);
}

static void describe(const struct call *call, struct span *span)
{
    const struct envelope *envelope = &call->envelope;
    span_set_text(span, ATTRIBUTE_METHOD, envelope->method);
    span_set_text(span, ATTRIBUTE_SOURCE, str_from(call->source->id));
    set_request_id(span, envelope->id);
    span_set_text(span, ATTRIBUTE_TRANSPORT, STR("tcp"));
    span_set_text(span, ATTRIBUTE_PROTOCOL_VERSION,
                  http_header(call->exchange, "mcp-protocol-version"));
    if (str_equal(envelope->method, STR("tools/call"))) {
        span_set_text(span, ATTRIBUTE_TOOL, envelope->name.text);
        span_set_text(span, ATTRIBUTE_GEN_AI_TOOL, envelope->name.text);
        span_set_text(span, ATTRIBUTE_GEN_AI_OPERATION, STR("execute_tool"));
    } else if (str_equal(envelope->method, STR("prompts/get"))) {
        span_set_text(span, ATTRIBUTE_PROMPT, envelope->name.text);
    }
    if (task_id_is_ours(envelope->task_id.text))
        span_set_text(span, ATTRIBUTE_TASK, envelope->task_id.text);
}

void call_span_start(struct call *call)
{
    struct buffer name = {0};
    if (call->envelope.method.length == 0)
        return; /* the answer to a request of the server's */
    span_name_write(&name, call->envelope.method, call->envelope.name.text);
    call->span = start_in_trace(call, buffer_str(&name));
    buffer_finish(&name);
    if (!span_is_sampled(call->span))
        return;
    span_backdate(call->span, loop_now_ms(call->worker->loop) - http_received_ms(call->exchange));
    describe(call, call->span);
}

void call_span_fail(struct call *call, enum jsonrpc_error error)
{
    char code[16];
    if (!span_is_sampled(call->span))
        return;
    snprintf(code, sizeof code, "%d", jsonrpc_error_code(error));
    span_set_text(call->span, ATTRIBUTE_RPC_STATUS, str_from(code));
    span_fail(call->span, str_from(code), str_from(jsonrpc_error_type(error)));
}

void call_span_fail_status(struct call *call, int status)
{
    char code[16];
    if (!span_is_sampled(call->span))
        return;
    snprintf(code, sizeof code, "%d", status);
    span_set_number(call->span, ATTRIBUTE_HTTP_STATUS, status);
    span_fail(call->span, str_from(code), STR_EMPTY);
}

struct span_parent call_span_parent(const struct call *call)
{
    return (struct span_parent){.context = span_context(call->span),
                                .state = span_state(call->span)};
}
