/*
 * Arguments of a call as values for policies, against a second walk over the same JSON: plain
 * values alone, integers of 64 bits as numbers and all others as they were written, null as an
 * empty record, and nothing deeper than the limit.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"
#include "fuzz.h"
#include "taskgate/core/buffer.h"
#include "taskgate/json/text.h"
#include "value.h"

/* How deep lists and objects nest, by their brackets alone. */
static unsigned depth_of(struct str json)
{
    unsigned depth = 0, most = 0;
    bool in_string = false;
    for (size_t i = 0; i < json.length; i++) {
        char c = json.bytes[i];
        if (in_string && c == '\\')
            i++;
        else if (c == '"')
            in_string = !in_string;
        else if (!in_string && (c == '{' || c == '['))
            most = ++depth > most ? depth : most;
        else if (!in_string && (c == '}' || c == ']'))
            depth--;
    }
    return most;
}

static bool is_text(const struct cedar_value *value, struct str text)
{
    return value->kind == CEDAR_STRING && str_equal(value->text, text);
}

static bool is_number(const struct cedar_value *value, struct str json)
{
    char text[32];
    bool is_long = json.length < sizeof text;
    long long number = 0;
    for (size_t i = 0; is_long && i < json.length; i++)
        is_long = (json.bytes[i] >= '0' && json.bytes[i] <= '9') || json.bytes[i] == '-';
    if (is_long) {
        memcpy(text, json.bytes, json.length);
        text[json.length] = '\0';
        errno = 0;
        number = strtoll(text, NULL, 10);
        is_long = errno == 0;
    }
    return is_long ? value->kind == CEDAR_LONG && value->number == number : is_text(value, json);
}

static bool is_string(const struct cedar_value *value, struct str json)
{
    struct buffer decoded;
    buffer_init(&decoded);
    bool same = json_decode_string(json, &decoded) && is_text(value, buffer_str(&decoded));
    buffer_finish(&decoded);
    return same;
}

static bool is_same(const struct cedar_value *value, struct str json);

/* Every element is in the set, and the set has no other ones. */
static bool is_set(const struct cedar_value *value, struct str json)
{
    if (value->kind != CEDAR_SET)
        return false;
    size_t position = 0, next = 0, met = 0, count = value->set->count;
    bool *seen = calloc(count + 1, sizeof *seen);
    bool good = true;
    for (struct str element; good && json_next_element(json, &position, &element);) {
        good = false;
        for (size_t i = 0; !good && i < count; i++) {
            size_t at = (next + i) % count;
            good = is_same(&value->set->items[at], element);
            if (!good)
                continue;
            met += !seen[at];
            seen[at] = true;
            next = at + 1;
        }
    }
    free(seen);
    return good && met == count;
}

static bool is_record(const struct cedar_value *value, struct str json)
{
    struct buffer name;
    struct str key, member;
    size_t position = 0;
    bool good = value->kind == CEDAR_RECORD && value->record->count == json_count(json);
    buffer_init(&name);
    while (good && json_next_member(json, &position, &key, &member)) {
        buffer_clear(&name);
        good = json_decode_string(str_slice(key.bytes - 1, key.length + 2), &name);
        const struct cedar_value *found =
            good ? cedar_record_get(value->record, buffer_str(&name)) : NULL;
        good = found && is_same(found, member);
    }
    buffer_finish(&name);
    return good;
}

static bool is_same(const struct cedar_value *value, struct str json)
{
    switch (json_type(json)) {
    case JSON_TRUE:
    case JSON_FALSE:
        return value->kind == CEDAR_BOOL && value->boolean == (json_type(json) == JSON_TRUE);
    case JSON_NUMBER:
        return is_number(value, json);
    case JSON_STRING:
        return is_string(value, json);
    case JSON_ARRAY:
        return is_set(value, json);
    case JSON_OBJECT:
        return is_record(value, json);
    default:
        return value->kind == CEDAR_RECORD && value->record->count == 0;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str json = str_trim(str_slice((const char *)data, size));
    if (!json_check(json, NULL))
        return 0;
    struct cedar_heap *heap = cedar_heap_create();
    struct cedar_value value;
    bool good = arguments_convert(heap, json, &value);
    FUZZ_EXPECT(good == (depth_of(json) <= ENGINE_MAX_ARGUMENT_DEPTH));
    if (good)
        FUZZ_EXPECT(is_same(&value, json));
    cedar_heap_destroy(heap);
    return 0;
}
