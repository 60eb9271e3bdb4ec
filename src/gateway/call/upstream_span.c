/* Spans of requests to servers. */
#include "upstream_span.h"

#include <stdio.h>
#include <stdlib.h>

#include "taskgate/json/text.h"

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

struct span *upstream_span_start(const struct upstream_trace *trace,
                                 const struct config_source *source, struct str method,
                                 struct str name)
{
    struct buffer span_name = {0};
    span_name_write(&span_name, method, name);
    struct span *span = span_start(SPAN_CLIENT, buffer_str(&span_name), &trace->parent);
    buffer_finish(&span_name);
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

struct span *upstream_span_start_own(const struct upstream_trace *trace,
                                     const struct config_source *source, struct str body,
                                     struct headers *headers)
{
    char text[TRACEPARENT_BYTES];
    char *method = json_string_text(json_member(body, "method"), NULL);
    char *name = json_string_text(json_path(body, "params", "name"), NULL);
    struct span *span = upstream_span_start(trace, source, str_from(method), str_from(name));
    upstream_span_set_headers(span, headers, text);
    free(method);
    free(name);
    return span;
}

void upstream_span_set_headers(const struct span *span, struct headers *headers,
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

bool upstream_span_write_body(const struct span *span, const struct envelope *message,
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

void upstream_span_end(struct span *span, enum upstream_result result, int status)
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

void upstream_span_give_up(struct span *span)
{
    span_fail(span, STR("cancelled"), STR_EMPTY);
    span_end(span);
}
