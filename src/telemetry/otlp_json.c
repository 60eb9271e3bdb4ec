/* OTLP as JSON: Protocol Buffers' mapping, but ids in hexadecimal (OTLP, "JSON Protobuf Encoding").
 */
#include <inttypes.h>

#include "otlp.h"

static void add_text(struct buffer *out, const char *key, struct str value)
{
    buffer_append_format(out, "\"%s\":", key);
    buffer_append_json_string(out, value);
}

static void add_hex(struct buffer *out, const char *key, const unsigned char *bytes, size_t count)
{
    char text[2 * TRACE_ID_BYTES];
    trace_write_hex(bytes, count, text);
    add_text(out, key, str_slice(text, 2 * count));
}

static void begin_attribute(struct buffer *out, bool *is_first, const char *key)
{
    buffer_append_text(out, *is_first ? "{" : ",{");
    *is_first = false;
    add_text(out, "key", str_from(key));
    buffer_append_text(out, ",\"value\":{");
}

static void write_attributes(struct buffer *out, const struct span *span)
{
    bool is_first = true;
    buffer_append_text(out, ",\"attributes\":[");
    for (size_t i = 0; i < ATTRIBUTE_COUNT; i++) {
        const struct span_value *value = &span->values[i];
        if (!value->is_set)
            continue;
        begin_attribute(out, &is_first, span_attribute_name((enum span_attribute)i));
        if (value->text)
            add_text(out, "stringValue", str_slice(value->text, value->length));
        else
            buffer_append_format(out, "\"intValue\":\"%" PRId64 "\"", value->number);
        buffer_append_text(out, "}}");
    }
    buffer_append_char(out, ']');
}

static void write_links(struct buffer *out, const struct span *span)
{
    if (span->link_count == 0)
        return;
    buffer_append_text(out, ",\"links\":[");
    for (size_t i = 0; i < span->link_count; i++) {
        const struct trace_context *link = &span->links[i];
        buffer_append_text(out, i ? ",{" : "{");
        add_hex(out, "traceId", link->trace_id, TRACE_ID_BYTES);
        buffer_append_char(out, ',');
        add_hex(out, "spanId", link->span_id, SPAN_ID_BYTES);
        buffer_append_format(out, ",\"flags\":%u}", (unsigned)link->flags);
    }
    buffer_append_char(out, ']');
}

static void write_status(struct buffer *out, const struct span *span)
{
    if (!span->is_failed)
        return;
    buffer_append_format(out, ",\"status\":{\"code\":%d", OTLP_STATUS_ERROR);
    if (span->message) {
        buffer_append_char(out, ',');
        add_text(out, "message", str_from(span->message));
    }
    buffer_append_char(out, '}');
}

static void write_span(struct buffer *out, const struct span *span)
{
    buffer_append_char(out, '{');
    add_hex(out, "traceId", span->context.trace_id, TRACE_ID_BYTES);
    buffer_append_char(out, ',');
    add_hex(out, "spanId", span->context.span_id, SPAN_ID_BYTES);
    buffer_append_char(out, ',');
    if (span->state) {
        add_text(out, "traceState", str_from(span->state));
        buffer_append_char(out, ',');
    }
    if (span->has_parent) {
        add_hex(out, "parentSpanId", span->parent_id, SPAN_ID_BYTES);
        buffer_append_char(out, ',');
    }
    add_text(out, "name", str_from(span->name));
    buffer_append_format(out,
                         ",\"kind\":%d,\"startTimeUnixNano\":\"%" PRIu64
                         "\",\"endTimeUnixNano\":\"%" PRIu64 "\"",
                         (int)span->kind, span->start_ns, span->end_ns);
    write_attributes(out, span);
    write_links(out, span);
    write_status(out, span);
    buffer_append_format(out, ",\"flags\":%" PRIu32 "}", otlp_flags(span));
}

static void write_resource(struct buffer *out, const struct resource *resource)
{
    bool is_first = true;
    buffer_append_text(out, "\"resource\":{\"attributes\":[");
    for (size_t i = 0; i < resource->count; i++) {
        begin_attribute(out, &is_first, resource->items[i].name);
        add_text(out, "stringValue", str_from(resource->items[i].value));
        buffer_append_text(out, "}}");
    }
    buffer_append_text(out, "]}");
}

void otlp_write_json(struct buffer *out, const struct resource *resource, const struct list *spans)
{
    bool is_first = true;
    buffer_append_text(out, "{\"resourceSpans\":[{");
    write_resource(out, resource);
    buffer_append_text(out, ",\"scopeSpans\":[{\"scope\":{\"name\":\"" OTLP_SCOPE
                            "\",\"version\":\"" TASKGATE_VERSION "\"},\"spans\":[");
    LIST_FOR_EACH_SAFE (node, next, (struct list *)spans) {
        if (!is_first)
            buffer_append_char(out, ',');
        is_first = false;
        write_span(out, LIST_ENTRY(node, struct span, node));
    }
    buffer_append_text(out, "]}]}]}");
}
