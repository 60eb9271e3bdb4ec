/* A growing byte buffer, and JSON string escaping into it. */
#include "taskgate/core/buffer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "taskgate/core/assert.h"
#include "taskgate/core/memory.h"

void buffer_init(struct buffer *buffer)
{
    *buffer = (struct buffer){NULL, 0, 0};
}

void buffer_finish(struct buffer *buffer)
{
    if (buffer->bytes) /* most have never been written to */
        free(buffer->bytes);
    buffer_init(buffer);
}

void buffer_clear(struct buffer *buffer)
{
    buffer->length = 0;
}

void buffer_drop(struct buffer *buffer, size_t count)
{
    if (count >= buffer->length) {
        buffer->length = 0;
        return;
    }
    memmove(buffer->bytes, buffer->bytes + count, buffer->length - count);
    buffer->length -= count;
}

void buffer_reserve(struct buffer *buffer, size_t extra)
{
    if (extra > SIZE_MAX - buffer->length)
        memory_exhausted();
    size_t needed = buffer->length + extra;
    if (needed <= buffer->capacity)
        return;
    ASSERT_NUMBERS(buffer->length, <=, buffer->capacity);
    size_t capacity = buffer->capacity ? buffer->capacity : 256;
    while (capacity < needed)
        capacity = capacity <= SIZE_MAX / 2 ? capacity * 2 : needed;
    buffer->bytes = memory_grow_array(buffer->bytes, capacity, 1);
    buffer->capacity = capacity;
}

void buffer_append(struct buffer *buffer, struct str s)
{
    if (s.length == 0)
        return;
    buffer_reserve(buffer, s.length);
    memcpy(buffer->bytes + buffer->length, s.bytes, s.length);
    buffer->length += s.length;
}

void buffer_append_replaced(struct buffer *buffer, struct str whole, struct str part,
                            struct str text)
{
    size_t before = str_offset(whole, part), behind = before + part.length;
    buffer_reserve(buffer, before);
    buffer_append(buffer, str_slice(whole.bytes, before));
    buffer_append(buffer, text);
    buffer_append(buffer, str_slice(whole.bytes + behind, whole.length - behind));
}

void buffer_append_char(struct buffer *buffer, char c)
{
    buffer_reserve(buffer, 1);
    buffer->bytes[buffer->length++] = c;
}

/* Writes behind the content; returns the whole length of the formatted text. */
static size_t format_behind(struct buffer *buffer, const char *format, va_list arguments)
{
    size_t room = buffer->capacity - buffer->length;
    int length = vsnprintf(buffer->bytes + buffer->length, room, format, arguments);
    return length > 0 ? (size_t)length : 0;
}

void buffer_append_format(struct buffer *buffer, const char *format, ...)
{
    va_list arguments;
    buffer_reserve(buffer, 64);
    va_start(arguments, format);
    size_t length = format_behind(buffer, format, arguments);
    va_end(arguments);
    if (length >= buffer->capacity - buffer->length) {
        buffer_reserve(buffer, length + 1);
        va_start(arguments, format);
        size_t again = format_behind(buffer, format, arguments);
        va_end(arguments);
        ASSERT_NUMBERS(again, ==, length); /* the arguments did not change meanwhile */
    }
    buffer->length += length;
}

/* These were always escaped. Hashes of the audit trail cover the text, so they stay as they are;
 * core/visible.h is what people are shown. */
static bool is_misleading(unsigned c)
{
    return c < 0x20 || (c >= 0x7F && c <= 0x9F) || c == 0x061C || c == 0x200E || c == 0x200F ||
           (c >= 0x2028 && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069) || c == 0xFEFF;
}

static void buffer_append_escaped(struct buffer *buffer, unsigned c)
{
    switch (c) {
    case '"':
        buffer_append(buffer, STR("\\\""));
        return;
    case '\\':
        buffer_append(buffer, STR("\\\\"));
        return;
    case '\n':
        buffer_append(buffer, STR("\\n"));
        return;
    case '\r':
        buffer_append(buffer, STR("\\r"));
        return;
    case '\t':
        buffer_append(buffer, STR("\\t"));
        return;
    default:
        buffer_append_format(buffer, "\\u%04x", c);
    }
}

#define EACH_BYTE(value) (UINT64_MAX / UINT8_MAX * (uint64_t)(value))

static bool has_zero(uint64_t bytes)
{
    return (bytes - EACH_BYTE(1)) & ~bytes & EACH_BYTE(0x80);
}

/* Whether one of eight bytes is a control character, a quote, a backslash or not of ASCII. */
static bool is_special(uint64_t bytes)
{
    uint64_t low = (bytes - EACH_BYTE(0x20)) & ~bytes, high = bytes | (bytes + EACH_BYTE(1));
    return ((low | high) & EACH_BYTE(0x80)) || has_zero(bytes ^ EACH_BYTE('"')) ||
           has_zero(bytes ^ EACH_BYTE('\\'));
}

/* How many bytes stand for themselves. */
static size_t plain_length(struct str s)
{
    size_t i = 0;
    uint64_t bytes;
    for (; s.length - i >= sizeof bytes; i += sizeof bytes) {
        memcpy(&bytes, s.bytes + i, sizeof bytes);
        if (is_special(bytes))
            break;
    }
    while (i < s.length && (unsigned char)(s.bytes[i] - 0x20) < 0x5F && s.bytes[i] != '"' &&
           s.bytes[i] != '\\')
        i++;
    return i;
}

void buffer_append_json_string(struct buffer *buffer, struct str s)
{
    buffer_reserve(buffer, s.length + 2);
    buffer_append_char(buffer, '"');
    size_t plain = 0; /* start of the run that needs no escape */
    for (size_t i = plain_length(s); i < s.length;
         i += plain_length(str_slice(s.bytes + i, s.length - i))) {
        unsigned c;
        size_t length = str_code_point(str_slice(s.bytes + i, s.length - i), &c);
        bool replaced = length == 0;
        if (replaced) {
            c = 0xFFFD;
            length = 1;
        }
        if (replaced || c == '"' || c == '\\' || is_misleading(c)) {
            buffer_append(buffer, str_slice(s.bytes + plain, i - plain));
            buffer_append_escaped(buffer, c);
            plain = i + length;
        }
        i += length;
    }
    if (plain < s.length)
        buffer_append(buffer, str_slice(s.bytes + plain, s.length - plain));
    buffer_append_char(buffer, '"');
}

void buffer_append_url_encoded(struct buffer *buffer, struct str s)
{
    for (size_t i = 0; i < s.length; i++) {
        char c = s.bytes[i];
        bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                        (c >= '0' && c <= '9') || (c && strchr("-._~", c));
        if (is_plain)
            buffer_append_char(buffer, c);
        else
            buffer_append_format(buffer, "%%%02X", (unsigned char)c);
    }
}

bool buffer_append_url_decoded(struct buffer *buffer, struct str s)
{
    for (size_t i = 0; i < s.length; i++) {
        unsigned char c = (unsigned char)s.bytes[i];
        if (c == '+')
            c = ' ';
        if (c == '%') {
            if (s.length - i < 3 || !str_read_hex(str_slice(s.bytes + i + 1, 2), &c))
                return false;
            i += 2;
        }
        buffer_append_char(buffer, (char)c);
    }
    return true;
}

struct str buffer_str(const struct buffer *buffer)
{
    return str_slice(buffer->bytes, buffer->length);
}

char *buffer_take(struct buffer *buffer, size_t *length)
{
    buffer_append_char(buffer, '\0');
    char *bytes = buffer->bytes;
    if (length)
        *length = buffer->length - 1;
    buffer_init(buffer);
    return bytes;
}
