#include <inttypes.h>
#include <string.h>

#include "otlp.h"
#include "taskgate/core/assert.h"
#include "taskgate/json/text.h"

/* The wire format: https://protobuf.dev/programming-guides/encoding/ */

#define VARINT_MOST_BYTES 10

static size_t encode_varint(uint64_t value, char bytes[VARINT_MOST_BYTES])
{
    size_t length = 0;
    while (value >= 0x80) {
        bytes[length++] = (char)(unsigned char)(value | 0x80);
        value >>= 7;
    }
    bytes[length++] = (char)(unsigned char)value;
    return length;
}

static void append_varint(struct buffer *out, uint64_t value)
{
    char bytes[VARINT_MOST_BYTES];
    buffer_append(out, str_slice(bytes, encode_varint(value, bytes)));
}

static void append_tag(struct buffer *out, unsigned field, enum protobuf_wire wire)
{
    append_varint(out, (uint64_t)field << 3 | wire);
}

/* Little-endian. */
static void append_fixed(struct buffer *out, uint64_t value, size_t count)
{
    for (size_t i = 0; i < count; i++)
        buffer_append_char(out, (char)(unsigned char)(value >> (8 * i)));
}

static void protobuf_write_varint(struct buffer *out, unsigned field, uint64_t value)
{
    append_tag(out, field, PROTOBUF_VARINT);
    append_varint(out, value);
}

static void protobuf_write_fixed64(struct buffer *out, unsigned field, uint64_t value)
{
    append_tag(out, field, PROTOBUF_FIXED64);
    append_fixed(out, value, 8);
}

static void protobuf_write_fixed32(struct buffer *out, unsigned field, uint32_t value)
{
    append_tag(out, field, PROTOBUF_FIXED32);
    append_fixed(out, value, 4);
}

/* Texts, too. */
static void protobuf_write_bytes(struct buffer *out, unsigned field, struct str value)
{
    append_tag(out, field, PROTOBUF_LENGTH);
    append_varint(out, value.length);
    buffer_append(out, value);
}

/* A message inside: what is written between the two is its content. */
static size_t protobuf_open(struct buffer *out, unsigned field)
{
    append_tag(out, field, PROTOBUF_LENGTH);
    return out->length;
}

/* The length precedes the content, and is known after it. */
static void protobuf_close(struct buffer *out, size_t opened)
{
    char bytes[VARINT_MOST_BYTES];
    size_t content = out->length - opened;
    size_t count = encode_varint(content, bytes);
    buffer_reserve(out, count);
    if (content > 0)
        memmove(out->bytes + opened + count, out->bytes + opened, content);
    memcpy(out->bytes + opened, bytes, count);
    out->length += count;
}

/* ---- reading ---- */

static bool take_varint(struct str *rest, uint64_t *value)
{
    *value = 0;
    for (unsigned i = 0; i < VARINT_MOST_BYTES && i < rest->length; i++) {
        unsigned char byte = (unsigned char)rest->bytes[i];
        *value |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (byte < 0x80) {
            *rest = str_slice(rest->bytes + i + 1, rest->length - i - 1);
            return true;
        }
    }
    return false;
}

static bool otlp_take_bytes(struct str *rest, uint64_t length, struct str *bytes)
{
    if (length > rest->length)
        return false;
    *bytes = str_slice(rest->bytes, (size_t)length);
    *rest = str_slice(rest->bytes + length, rest->length - (size_t)length);
    return true;
}

/* Takes the first field off `rest`. false at the end, and where it cannot be read. */
static bool protobuf_next(struct str *rest, struct protobuf_field *field)
{
    uint64_t tag;
    *field = (struct protobuf_field){0};
    if (rest->length == 0 || !take_varint(rest, &tag) || tag >> 3 > INT32_MAX)
        return false;
    field->number = (unsigned)(tag >> 3);
    field->wire = (enum protobuf_wire)(tag & 7);
    switch (field->wire) {
    case PROTOBUF_VARINT:
        return take_varint(rest, &field->value);
    case PROTOBUF_FIXED64:
        return otlp_take_bytes(rest, 8, &field->bytes);
    case PROTOBUF_FIXED32:
        return otlp_take_bytes(rest, 4, &field->bytes);
    case PROTOBUF_LENGTH:
        return take_varint(rest, &field->value) &&
               otlp_take_bytes(rest, field->value, &field->bytes);
    default:
        return false;
    }
}

/* OTLP as Protocol Buffers. The numbers of fields are those of opentelemetry/proto/trace/v1. */

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

/* Bits of `flags` of a span: the W3C flags, and whether its parent is known to be remote. */
static uint32_t otlp_flags(const struct span *span)
{
    return span->context.flags | FLAG_HAS_REMOTE | (span->is_parent_remote ? FLAG_IS_REMOTE : 0U);
}

static struct str otlp_bytes_of(const unsigned char *bytes, size_t count)
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

/* "mcp.method.name" … */
static const char *attribute_name(enum span_attribute attribute)
{
    static const char *const names[] = {
#define ATTRIBUTE_ROW(symbol, name) [ATTRIBUTE_##symbol] = (name),
#include "taskgate/telemetry/attribute_table.h"
#undef ATTRIBUTE_ROW
    };
    ASSERT_NUMBERS(attribute, <, ATTRIBUTE_COUNT);
    return names[attribute];
}

static void write_attributes(struct buffer *out, const struct span *span)
{
    for (size_t i = 0; i < ATTRIBUTE_COUNT; i++) {
        const struct span_value *value = &span->values[i];
        struct str key = str_from(attribute_name((enum span_attribute)i));
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
        protobuf_write_bytes(out, LINK_TRACE_ID, otlp_bytes_of(link->trace_id, TRACE_ID_BYTES));
        protobuf_write_bytes(out, LINK_SPAN_ID, otlp_bytes_of(link->span_id, SPAN_ID_BYTES));
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

static void otlp_write_span(struct buffer *out, const struct span *span)
{
    size_t opened = protobuf_open(out, SCOPE_SPANS_SPANS);
    protobuf_write_bytes(out, FIELD_TRACE_ID,
                         otlp_bytes_of(span->context.trace_id, TRACE_ID_BYTES));
    protobuf_write_bytes(out, FIELD_SPAN_ID, otlp_bytes_of(span->context.span_id, SPAN_ID_BYTES));
    if (span->state)
        protobuf_write_bytes(out, FIELD_TRACE_STATE, str_from(span->state));
    if (span->has_parent)
        protobuf_write_bytes(out, FIELD_PARENT_SPAN_ID,
                             otlp_bytes_of(span->parent_id, SPAN_ID_BYTES));
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
        otlp_write_span(out, LIST_ENTRY(node, struct span, node));
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

/* OTLP as JSON: Protocol Buffers' mapping, but ids in hexadecimal (OTLP, "JSON Protobuf Encoding").
 */

static void otlp_add_text(struct buffer *out, const char *key, struct str value)
{
    buffer_append_format(out, "\"%s\":", key);
    buffer_append_json_string(out, value);
}

static void add_hex(struct buffer *out, const char *key, const unsigned char *bytes, size_t count)
{
    char text[2 * TRACE_ID_BYTES];
    str_write_hex(bytes, count, text);
    otlp_add_text(out, key, str_slice(text, 2 * count));
}

static void begin_attribute(struct buffer *out, bool *is_first, const char *key)
{
    buffer_append_text(out, *is_first ? "{" : ",{");
    *is_first = false;
    otlp_add_text(out, "key", str_from(key));
    buffer_append_text(out, ",\"value\":{");
}

static void otlp_json_write_attributes(struct buffer *out, const struct span *span)
{
    bool is_first = true;
    buffer_append_text(out, ",\"attributes\":[");
    for (size_t i = 0; i < ATTRIBUTE_COUNT; i++) {
        const struct span_value *value = &span->values[i];
        if (!value->is_set)
            continue;
        begin_attribute(out, &is_first, attribute_name((enum span_attribute)i));
        if (value->text)
            otlp_add_text(out, "stringValue", str_slice(value->text, value->length));
        else
            buffer_append_format(out, "\"intValue\":\"%" PRId64 "\"", value->number);
        buffer_append_text(out, "}}");
    }
    buffer_append_char(out, ']');
}

static void otlp_json_write_links(struct buffer *out, const struct span *span)
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

static void otlp_json_write_status(struct buffer *out, const struct span *span)
{
    if (!span->is_failed)
        return;
    buffer_append_format(out, ",\"status\":{\"code\":%d", OTLP_STATUS_ERROR);
    if (span->message) {
        buffer_append_char(out, ',');
        otlp_add_text(out, "message", str_from(span->message));
    }
    buffer_append_char(out, '}');
}

static void otlp_json_write_span(struct buffer *out, const struct span *span)
{
    buffer_append_char(out, '{');
    add_hex(out, "traceId", span->context.trace_id, TRACE_ID_BYTES);
    buffer_append_char(out, ',');
    add_hex(out, "spanId", span->context.span_id, SPAN_ID_BYTES);
    buffer_append_char(out, ',');
    if (span->state) {
        otlp_add_text(out, "traceState", str_from(span->state));
        buffer_append_char(out, ',');
    }
    if (span->has_parent) {
        add_hex(out, "parentSpanId", span->parent_id, SPAN_ID_BYTES);
        buffer_append_char(out, ',');
    }
    otlp_add_text(out, "name", str_from(span->name));
    buffer_append_format(out,
                         ",\"kind\":%d,\"startTimeUnixNano\":\"%" PRIu64
                         "\",\"endTimeUnixNano\":\"%" PRIu64 "\"",
                         (int)span->kind, span->start_ns, span->end_ns);
    otlp_json_write_attributes(out, span);
    otlp_json_write_links(out, span);
    otlp_json_write_status(out, span);
    buffer_append_format(out, ",\"flags\":%" PRIu32 "}", otlp_flags(span));
}

static void otlp_json_write_resource(struct buffer *out, const struct resource *resource)
{
    bool is_first = true;
    buffer_append_text(out, "\"resource\":{\"attributes\":[");
    for (size_t i = 0; i < resource->count; i++) {
        begin_attribute(out, &is_first, resource->items[i].name);
        otlp_add_text(out, "stringValue", str_from(resource->items[i].value));
        buffer_append_text(out, "}}");
    }
    buffer_append_text(out, "]}");
}

void otlp_write_json(struct buffer *out, const struct resource *resource, const struct list *spans)
{
    bool is_first = true;
    buffer_append_text(out, "{\"resourceSpans\":[{");
    otlp_json_write_resource(out, resource);
    buffer_append_text(out, ",\"scopeSpans\":[{\"scope\":{\"name\":\"" OTLP_SCOPE
                            "\",\"version\":\"" TASKGATE_VERSION "\"},\"spans\":[");
    LIST_FOR_EACH_SAFE (node, next, (struct list *)spans) {
        if (!is_first)
            buffer_append_char(out, ',');
        is_first = false;
        otlp_json_write_span(out, LIST_ENTRY(node, struct span, node));
    }
    buffer_append_text(out, "]}]}]}");
}
