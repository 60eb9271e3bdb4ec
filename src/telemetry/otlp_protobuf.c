/* OTLP as Protocol Buffers. The numbers of fields are those of opentelemetry/proto/trace/v1. */
#include "otlp.h"
#include "protobuf.h"
#include "taskgate/json/text.h"

#define FLAG_HAS_REMOTE 0x100U
#define FLAG_IS_REMOTE 0x200U

enum { REQUEST_RESOURCE_SPANS = 1 };
enum { RESOURCE_SPANS_RESOURCE = 1, RESOURCE_SPANS_SCOPE_SPANS = 2 };
enum { RESOURCE_ATTRIBUTES = 1 };
enum { SCOPE_SPANS_SCOPE = 1, SCOPE_SPANS_SPANS = 2 };
enum { SCOPE_NAME = 1, SCOPE_VERSION = 2 };
enum { KEY_VALUE_KEY = 1, KEY_VALUE_VALUE = 2 };
enum { ANY_STRING = 1, ANY_INT = 3 };
enum {
    FIELD_TRACE_ID = 1,
    FIELD_SPAN_ID = 2,
    FIELD_TRACE_STATE = 3,
    FIELD_PARENT_SPAN_ID = 4,
    FIELD_NAME = 5,
    FIELD_KIND = 6,
    FIELD_START = 7,
    FIELD_END = 8,
    FIELD_ATTRIBUTES = 9,
    FIELD_LINKS = 13,
    FIELD_STATUS = 15,
    FIELD_FLAGS = 16
};
enum { LINK_TRACE_ID = 1, LINK_SPAN_ID = 2, LINK_FLAGS = 6 };
enum { STATUS_MESSAGE = 2, STATUS_CODE = 3 };
enum { RESPONSE_PARTIAL_SUCCESS = 1 };
enum { PARTIAL_REJECTED = 1, PARTIAL_MESSAGE = 2 };

uint32_t otlp_flags(const struct span *span)
{
    return span->context.flags | FLAG_HAS_REMOTE | (span->is_parent_remote ? FLAG_IS_REMOTE : 0U);
}

static struct str bytes_of(const unsigned char *bytes, size_t count)
{
    return str_slice((const char *)bytes, count);
}

static void write_text_attribute(struct buffer *out, unsigned field, struct str key,
                                 struct str value)
{
    size_t pair = protobuf_open(out, field);
    protobuf_write_bytes(out, KEY_VALUE_KEY, key);
    size_t any = protobuf_open(out, KEY_VALUE_VALUE);
    protobuf_write_bytes(out, ANY_STRING, value);
    protobuf_close(out, any);
    protobuf_close(out, pair);
}

static void write_number_attribute(struct buffer *out, unsigned field, struct str key,
                                   int64_t value)
{
    size_t pair = protobuf_open(out, field);
    protobuf_write_bytes(out, KEY_VALUE_KEY, key);
    size_t any = protobuf_open(out, KEY_VALUE_VALUE);
    protobuf_write_varint(out, ANY_INT, (uint64_t)value);
    protobuf_close(out, any);
    protobuf_close(out, pair);
}

static void write_attributes(struct buffer *out, const struct span *span)
{
    for (size_t i = 0; i < ATTRIBUTE_COUNT; i++) {
        const struct span_value *value = &span->values[i];
        struct str key = str_from(span_attribute_name((enum span_attribute)i));
        if (!value->is_set)
            continue;
        if (value->text)
            write_text_attribute(out, FIELD_ATTRIBUTES, key, str_slice(value->text, value->length));
        else
            write_number_attribute(out, FIELD_ATTRIBUTES, key, value->number);
    }
}

static void write_links(struct buffer *out, const struct span *span)
{
    for (size_t i = 0; i < span->link_count; i++) {
        const struct trace_context *link = &span->links[i];
        size_t opened = protobuf_open(out, FIELD_LINKS);
        protobuf_write_bytes(out, LINK_TRACE_ID, bytes_of(link->trace_id, TRACE_ID_BYTES));
        protobuf_write_bytes(out, LINK_SPAN_ID, bytes_of(link->span_id, SPAN_ID_BYTES));
        if (link->flags)
            protobuf_write_fixed32(out, LINK_FLAGS, link->flags);
        protobuf_close(out, opened);
    }
}

static void write_status(struct buffer *out, const struct span *span)
{
    if (!span->is_failed)
        return;
    size_t opened = protobuf_open(out, FIELD_STATUS);
    if (span->message)
        protobuf_write_bytes(out, STATUS_MESSAGE, str_from(span->message));
    protobuf_write_varint(out, STATUS_CODE, OTLP_STATUS_ERROR);
    protobuf_close(out, opened);
}

static void write_span(struct buffer *out, const struct span *span)
{
    size_t opened = protobuf_open(out, SCOPE_SPANS_SPANS);
    protobuf_write_bytes(out, FIELD_TRACE_ID, bytes_of(span->context.trace_id, TRACE_ID_BYTES));
    protobuf_write_bytes(out, FIELD_SPAN_ID, bytes_of(span->context.span_id, SPAN_ID_BYTES));
    if (span->state)
        protobuf_write_bytes(out, FIELD_TRACE_STATE, str_from(span->state));
    if (span->has_parent)
        protobuf_write_bytes(out, FIELD_PARENT_SPAN_ID, bytes_of(span->parent_id, SPAN_ID_BYTES));
    protobuf_write_bytes(out, FIELD_NAME, str_from(span->name));
    protobuf_write_varint(out, FIELD_KIND, span->kind);
    protobuf_write_fixed64(out, FIELD_START, span->start_ns);
    protobuf_write_fixed64(out, FIELD_END, span->end_ns);
    write_attributes(out, span);
    write_links(out, span);
    write_status(out, span);
    protobuf_write_fixed32(out, FIELD_FLAGS, otlp_flags(span));
    protobuf_close(out, opened);
}

static void write_resource(struct buffer *out, const struct resource *resource)
{
    size_t opened = protobuf_open(out, RESOURCE_SPANS_RESOURCE);
    for (size_t i = 0; i < resource->count; i++)
        write_text_attribute(out, RESOURCE_ATTRIBUTES, str_from(resource->items[i].name),
                             str_from(resource->items[i].value));
    protobuf_close(out, opened);
}

static void write_scope(struct buffer *out)
{
    size_t opened = protobuf_open(out, SCOPE_SPANS_SCOPE);
    protobuf_write_bytes(out, SCOPE_NAME, STR(OTLP_SCOPE));
    protobuf_write_bytes(out, SCOPE_VERSION, STR(TASKGATE_VERSION));
    protobuf_close(out, opened);
}

void otlp_write_protobuf(struct buffer *out, const struct resource *resource,
                         const struct list *spans)
{
    size_t resource_spans = protobuf_open(out, REQUEST_RESOURCE_SPANS);
    write_resource(out, resource);
    size_t scope_spans = protobuf_open(out, RESOURCE_SPANS_SCOPE_SPANS);
    write_scope(out);
    LIST_FOR_EACH_SAFE (node, next, (struct list *)spans)
        write_span(out, LIST_ENTRY(node, struct span, node));
    protobuf_close(out, scope_spans);
    protobuf_close(out, resource_spans);
}

/* ---- the response ---- */

static int64_t read_partial(struct str message, struct buffer *why)
{
    struct protobuf_field field;
    int64_t rejected = 0;
    while (protobuf_next(&message, &field)) {
        if (field.number == PARTIAL_REJECTED && field.wire == PROTOBUF_VARINT)
            rejected = (int64_t)field.value;
        if (field.number == PARTIAL_MESSAGE && field.wire == PROTOBUF_LENGTH)
            buffer_append(why, field.bytes);
    }
    return rejected;
}

static int64_t read_protobuf(struct str body, struct buffer *why)
{
    struct protobuf_field field;
    int64_t rejected = 0;
    while (protobuf_next(&body, &field)) {
        if (field.number == RESPONSE_PARTIAL_SUCCESS && field.wire == PROTOBUF_LENGTH)
            rejected = read_partial(field.bytes, why);
    }
    return rejected;
}

/* A 64-bit number is a text in Protocol Buffers' JSON. */
static int64_t read_json(struct str body, struct buffer *why)
{
    uint64_t rejected = 0;
    if (!json_check(body, NULL))
        return 0;
    struct str partial = json_member(body, "partialSuccess");
    struct str number = json_member(partial, "rejectedSpans");
    if (json_type(number) == JSON_STRING)
        number = str_slice(number.bytes + 1, number.length - 2);
    json_decode_string(json_member(partial, "errorMessage"), why);
    return str_to_u64(number, &rejected) && rejected <= INT64_MAX ? (int64_t)rejected : 0;
}

int64_t otlp_read_rejected(struct str body, bool is_json, struct buffer *why)
{
    int64_t rejected = is_json ? read_json(body, why) : read_protobuf(body, why);
    return rejected < 0 ? 0 : rejected;
}
