/* The trace that a request belongs to, and what its span says of it. */
#include "call_span.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "headers.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/envelope.h"
#include "taskgate/json/text.h"
#include "taskgate/loop/loop.h"
#include "taskgate/task/task.h"
#include "taskgate/upstream/upstream.h"

/* Spans of requests to servers. */

/* "https://host:port/path" to its host and its port. */
static void set_address(struct span *span, struct str url)
{
    struct str scheme, rest, authority, path, user, host, port;
    uint64_t number;
    str_cut(url, ':', &scheme, &rest);
    rest = str_slice(rest.bytes + 2, rest.length - 2); /* behind "//" */
    str_cut(rest, '/', &authority, &path);
    while (str_cut(authority, '@', &user, &host))
        authority = host;
    bool is_literal = str_starts_with(authority, STR("[")); /* of IPv6 */
    str_cut(is_literal ? str_slice(authority.bytes + 1, authority.length - 1) : authority,
            is_literal ? ']' : ':', &host, &port);
    if (is_literal && str_starts_with(port, STR(":")))
        port = str_slice(port.bytes + 1, port.length - 1);
    span_set_text(span, ATTRIBUTE_SERVER_ADDRESS, host);
    if (str_to_u64(port, &number) && number <= UINT16_MAX)
        span_set_number(span, ATTRIBUTE_SERVER_PORT, (int64_t)number);
    else
        span_set_number(span, ATTRIBUTE_SERVER_PORT,
                        str_equal_ignore_case(scheme, STR("https")) ? 443 : 80);
}

void span_name_write(struct buffer *out, struct str method, struct str name)
{
    buffer_append(out, method);
    if (name.length > 0) {
        buffer_append_char(out, ' ');
        buffer_append(out, name);
    }
}

struct span *server_span_start(const struct upstream_trace *trace,
                               const struct config_source *source, struct str method,
                               struct str name)
{
    OWNED_BUFFER(span_name);
    span_name_write(&span_name, method, name);
    struct span *span = span_start(SPAN_CLIENT, buffer_str(&span_name), &trace->parent);
    if (!span_is_sampled(span))
        return span;
    span_set_text(span, ATTRIBUTE_METHOD, method);
    span_set_text(span, ATTRIBUTE_SOURCE, str_from(source->id));
    span_set_text(span, ATTRIBUTE_TRANSPORT, STR("tcp"));
    span_set_text(span, ATTRIBUTE_TASK, str_from(trace->task));
    set_address(span, str_from(source->url));
    if (str_equal(method, STR("tools/call"))) {
        span_set_text(span, ATTRIBUTE_TOOL, name);
        span_set_text(span, ATTRIBUTE_GEN_AI_TOOL, name);
        span_set_text(span, ATTRIBUTE_GEN_AI_OPERATION, STR("execute_tool"));
    }
    for (size_t i = 0; i < 2 && trace->links[i]; i++)
        span_add_link(span, trace->links[i]);
    return span;
}

struct span *server_span_start_own(const struct upstream_trace *trace,
                                   const struct config_source *source, struct str body,
                                   struct headers *headers)
{
    char text[TRACEPARENT_BYTES];
    OWNED char *method = json_string_text(json_member(body, "method"), NULL);
    OWNED char *name = json_string_text(json_path(body, "params", "name"), NULL);
    struct span *span = server_span_start(trace, source, str_from(method), str_from(name));
    server_span_set_headers(span, headers, text);
    return span;
}

void server_span_set_headers(const struct span *span, struct headers *headers,
                             char text[TRACEPARENT_BYTES])
{
    struct str state = span_state(span);
    trace_context_write(span_context(span), text);
    headers_set(headers, STR("traceparent"), str_slice(text, TRACEPARENT_LENGTH));
    /* That of another trace must not go with it. */
    headers_take_out(headers, STR("tracestate"));
    if (state.length > 0)
        headers_add(headers, STR("tracestate"), state);
}

bool server_span_write_body(const struct span *span, const struct envelope *message,
                            struct buffer *out)
{
    struct str value = json_member(message->meta.raw, "traceparent");
    struct trace_context of_client;
    char text[TRACEPARENT_BYTES];
    /* A malformed traceparent is not ours, and one with escapes is nobody's. */
    if (!span_is_sampled(span) || json_type(value) != JSON_STRING ||
        !trace_context_parse(&of_client, str_slice(value.bytes + 1, value.length - 2)))
        return false;
    struct str old = str_slice(value.bytes + 1, value.length - 2); /* within the quotes */
    trace_context_write(span_context(span), text);
    envelope_write_replaced(message, old, str_slice(text, TRACEPARENT_LENGTH), out);
    return true;
}

void server_span_end(struct span *span, enum upstream_result result, int status)
{
    static const char *const failures[] = {[UPSTREAM_DONE] = "",
                                           [UPSTREAM_CONNECT_FAILED] = "connect_failed",
                                           [UPSTREAM_SILENT] = "timeout",
                                           [UPSTREAM_GONE] = "connection_broke"};
    char text[16];
    if (span_is_sampled(span)) {
        snprintf(text, sizeof text, "%d", status);
        if (status > 0)
            span_set_number(span, ATTRIBUTE_HTTP_STATUS, status);
        if (result != UPSTREAM_DONE)
            span_fail(span, str_from(failures[result]), STR_EMPTY);
        else if (status >= 400)
            span_fail(span, str_from(text), STR_EMPTY);
    }
    span_end(span);
}

void server_span_give_up(struct span *span)
{
    span_fail(span, STR("cancelled"), STR_EMPTY);
    span_end(span);
}

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
static bool call_span_read_meta(const struct call *call, struct trace_context *context,
                                char **state)
{
    static const char *const keys[] = {"traceparent", "tracestate"};
    struct str values[2];
    json_members(call->envelope.meta.raw, keys, 2, values);
    OWNED char *text = json_string_text(values[0], NULL);
    bool is_read = text && trace_context_parse(context, str_from(text));
    if (is_read)
        *state = json_string_text(values[1], NULL);
    return is_read;
}

static struct span *start_in_trace(const struct call *call, struct str name)
{
    struct found traceparent = {0}, tracestate = {0};
    struct trace_context of_message, of_way;
    OWNED char *state = NULL;
    find_header(call->exchange, STR("traceparent"), &traceparent);
    find_header(call->exchange, STR("tracestate"), &tracestate);
    bool has_meta = call_span_read_meta(call, &of_message, &state);
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
    OWNED char *text = is_escaped ? json_string_text(id, NULL) : NULL;
    span_set_text(span, ATTRIBUTE_REQUEST_ID, text ? str_from(text) : bare_id(id));
}

static void call_span_describe(const struct call *call, struct span *span)
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
    OWNED_BUFFER(name);
    if (call->envelope.method.length == 0)
        return; /* the answer to a request of the server's */
    span_name_write(&name, call->envelope.method, call->envelope.name.text);
    call->span = start_in_trace(call, buffer_str(&name));
    if (!span_is_sampled(call->span))
        return;
    span_backdate(call->span, loop_now_ms(call->worker->loop) - http_received_ms(call->exchange));
    call_span_describe(call, call->span);
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
