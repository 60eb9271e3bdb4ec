/* The wire format: https://protobuf.dev/programming-guides/encoding/ */
#include "protobuf.h"

#include <string.h>

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

void protobuf_write_varint(struct buffer *out, unsigned field, uint64_t value)
{
    append_tag(out, field, PROTOBUF_VARINT);
    append_varint(out, value);
}

void protobuf_write_fixed64(struct buffer *out, unsigned field, uint64_t value)
{
    append_tag(out, field, PROTOBUF_FIXED64);
    append_fixed(out, value, 8);
}

void protobuf_write_fixed32(struct buffer *out, unsigned field, uint32_t value)
{
    append_tag(out, field, PROTOBUF_FIXED32);
    append_fixed(out, value, 4);
}

void protobuf_write_bytes(struct buffer *out, unsigned field, struct str value)
{
    append_tag(out, field, PROTOBUF_LENGTH);
    append_varint(out, value.length);
    buffer_append(out, value);
}

size_t protobuf_open(struct buffer *out, unsigned field)
{
    append_tag(out, field, PROTOBUF_LENGTH);
    return out->length;
}

/* The length stands before the content, and is known after it. */
void protobuf_close(struct buffer *out, size_t opened)
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

static bool take_bytes(struct str *rest, uint64_t length, struct str *bytes)
{
    if (length > rest->length)
        return false;
    *bytes = str_slice(rest->bytes, (size_t)length);
    *rest = str_slice(rest->bytes + length, rest->length - (size_t)length);
    return true;
}

bool protobuf_next(struct str *rest, struct protobuf_field *field)
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
        return take_bytes(rest, 8, &field->bytes);
    case PROTOBUF_FIXED32:
        return take_bytes(rest, 4, &field->bytes);
    case PROTOBUF_LENGTH:
        return take_varint(rest, &field->value) && take_bytes(rest, field->value, &field->bytes);
    default:
        return false;
    }
}
