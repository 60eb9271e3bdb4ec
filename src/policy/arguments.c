/* Arguments of a call as values that policies can look at: one pass, however deep they nest. */
#include <stdlib.h>
#include <string.h>

#include "engine.h"
#include "taskgate/core/memory.h"
#include "taskgate/json/text.h"

/* The text is valid JSON, so the first byte tells the kind of value. */
struct reader {
    struct cedar_heap *heap;
    const char *at, *end;
    unsigned depth;
};

static bool read_value(struct reader *reader, struct cedar_value *value);

/* Whether the next byte is one of `bytes`. */
static bool is_at(const struct reader *reader, struct str bytes)
{
    return reader->at < reader->end && memchr(bytes.bytes, *reader->at, bytes.length);
}

static char peek(struct reader *reader)
{
    while (is_at(reader, STR(" \t\r\n")))
        reader->at++;
    if (reader->at == reader->end)
        return '\0';
    return *reader->at;
}

static struct str read_string(struct reader *reader)
{
    const char *quote = reader->at++;
    bool has_escapes = false;
    for (; *reader->at != '"'; reader->at++) {
        if (*reader->at == '\\') {
            has_escapes = true;
            reader->at++;
        }
    }
    reader->at++;
    struct str quoted = str_slice(quote, (size_t)(reader->at - quote));
    if (!has_escapes)
        return str_slice(quote + 1, quoted.length - 2);
    struct buffer text;
    buffer_init(&text);
    json_decode_string(quoted, &text);
    struct str copy = cedar_heap_copy(reader->heap, buffer_str(&text));
    buffer_finish(&text);
    return copy;
}

/* Digits alone, within 64 bits. 1.0 and 1e3 are no integers: policies get them as written. */
static bool is_integer(struct str text, int64_t *number)
{
    bool is_negative = str_starts_with(text, STR("-"));
    uint64_t magnitude;
    if (is_negative)
        text = str_slice(text.bytes + 1, text.length - 1);
    if (!str_to_u64(text, &magnitude) || magnitude > (uint64_t)INT64_MAX + is_negative)
        return false;
    *number = (int64_t)(is_negative ? 0 - magnitude : magnitude);
    return true;
}

static struct cedar_value read_number(struct reader *reader)
{
    const char *start = reader->at;
    int64_t number;
    while (is_at(reader, STR("+-.0123456789eE")))
        reader->at++;
    struct str text = str_slice(start, (size_t)(reader->at - start));
    return is_integer(text, &number) ? cedar_long(number) : cedar_string(text);
}

/* Room for one more item; the arrays double. */
static void *grow(void *items, size_t count, size_t size)
{
    bool is_full = count == 0 || (count >= 8 && (count & (count - 1)) == 0);
    if (!is_full)
        return items;
    return memory_grow_array(items, count < 8 ? 8 : count * 2, size);
}

static bool read_set(struct reader *reader, struct cedar_value *value)
{
    struct cedar_value *elements = NULL;
    size_t count = 0;
    bool good = true;
    reader->at++;
    while (good && peek(reader) != ']') {
        elements = grow(elements, count, sizeof *elements);
        good = read_value(reader, &elements[count++]);
        if (good && peek(reader) == ',')
            reader->at++;
    }
    reader->at++;
    good = good && cedar_set(reader->heap, elements, count, value);
    free(elements);
    return good;
}

static bool read_record(struct reader *reader, struct cedar_value *value)
{
    struct cedar_member *members = NULL;
    size_t count = 0;
    bool good = true;
    reader->at++;
    while (good && peek(reader) != '}') {
        members = grow(members, count, sizeof *members);
        members[count].name = read_string(reader);
        peek(reader);
        reader->at++; /* the colon */
        good = read_value(reader, &members[count++].value);
        if (good && peek(reader) == ',')
            reader->at++;
    }
    reader->at++;
    good = good && cedar_record_of_names(reader->heap, members, count, value);
    free(members);
    return good;
}

static bool read_nested(struct reader *reader, struct cedar_value *value)
{
    if (reader->depth == ENGINE_MAX_ARGUMENT_DEPTH)
        return false;
    reader->depth++;
    bool good = *reader->at == '{' ? read_record(reader, value) : read_set(reader, value);
    reader->depth--;
    return good;
}

static bool read_value(struct reader *reader, struct cedar_value *value)
{
    switch (peek(reader)) {
    case '{':
    case '[':
        return read_nested(reader, value);
    case '"':
        *value = cedar_string(read_string(reader));
        return true;
    case 't':
        reader->at += 4;
        *value = cedar_bool(true);
        return true;
    case 'f':
        reader->at += 5;
        *value = cedar_bool(false);
        return true;
    case 'n':
        reader->at += 4;
        return cedar_record(reader->heap, NULL, 0, value);
    case '\0':
        return false;
    default:
        *value = read_number(reader);
        return true;
    }
}

bool arguments_convert(struct cedar_heap *heap, struct str json, struct cedar_value *value)
{
    struct reader reader = {.heap = heap, .at = json.bytes, .end = json.bytes + json.length};
    return json.length > 0 && read_value(&reader, value);
}
