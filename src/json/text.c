/* JSON text read and edited in place: members, elements, strings, and one member changed. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "scanner.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/members.h"
#include "taskgate/json/text.h"
#include "unescape.h"
#include "walk.h"

/* The extent of a member with its comma. */

struct str splice_member(struct str text, struct str member)
{
    const char *from = member.bytes, *to = member.bytes + member.length;
    const char *next = skip_space(to, text.bytes + text.length);
    if (*next == ',') {
        to = skip_space(next + 1, text.bytes + text.length);
        return str_slice(from, (size_t)(to - from));
    }
    /* The last one: the comma stands before it, unless it is the only one. */
    while (skip_space(from - 1, from) == from)
        from--;
    if (from[-1] == ',') {
        from--;
        while (skip_space(from - 1, from) == from)
            from--;
    }
    return str_slice(from, (size_t)(to - from));
}

/* Members of an object that is being written. */

void json_add_key(struct buffer *out, const char *key)
{
    bool is_first = out->length > 0 && out->bytes[out->length - 1] == '{';
    buffer_append_text(out, is_first ? "\"" : ",\"");
    buffer_append_text(out, key);
    buffer_append_text(out, "\":");
}

void json_add_value(struct buffer *out, const char *key, struct str value)
{
    if (value.length == 0)
        return;
    json_add_key(out, key);
    buffer_append(out, value);
}

void json_add_bool(struct buffer *out, const char *key, bool is_true)
{
    json_add_value(out, key, is_true ? STR("true") : STR("false"));
}

void json_add_number(struct buffer *out, const char *key, int64_t number)
{
    json_add_key(out, key);
    buffer_append_format(out, "%" PRId64, number);
}

void json_add_str(struct buffer *out, const char *key, struct str text)
{
    json_add_key(out, key);
    buffer_append_json_string(out, text);
}

void json_add_text(struct buffer *out, const char *key, const char *text)
{
    json_add_str(out, key, str_from(text));
}

void json_add_text_or_null(struct buffer *out, const char *key, const char *text)
{
    if (text && *text) {
        json_add_text(out, key, text);
    } else {
        json_add_value(out, key, STR("null"));
    }
}

void json_write_texts(struct buffer *out, char *const *texts, size_t count)
{
    buffer_append_char(out, '[');
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            buffer_append_char(out, ',');
        buffer_append_json_string(out, str_from(texts[i]));
    }
    buffer_append_char(out, ']');
}

void json_add_texts(struct buffer *out, const char *key, char *const *texts, size_t count)
{
    json_add_key(out, key);
    json_write_texts(out, texts, count);
}

void json_add_time(struct buffer *out, const char *key, int64_t wall_ms)
{
    char text[CLOCK_TEXT_BYTES];
    json_add_text_or_null(out, key, wall_ms ? clock_format(wall_ms, text) : NULL);
}

bool json_check(struct str text, struct error *error)
{
    return json_check_at(text, NULL, error);
}

bool json_check_at(struct str text, size_t *place, struct error *error)
{
    struct scanner scanner;
    scanner_init(&scanner, text, error);
    scanner.place = place;
    enum scan_verdict verdict = scan_document(&scanner, NULL, NULL, NULL);
    scanner_finish(&scanner);
    return verdict == SCAN_ACCEPTED;
}

/* ---- checking and finding in one pass ---- */

static void forget_values(const struct json_wanted *wanted)
{
    for (size_t i = 0; i < wanted->count; i++)
        wanted->values[i] = STR_EMPTY;
}

static const char *text_take_wanted(struct scanner *scanner, const char *at, const struct key *key,
                                    void *context)
{
    const struct json_wanted *wanted = context;
    size_t i = 0; /* the key itself does not outlast the walk through its value */
    while (i < wanted->count &&
           !str_equal(str_slice(key->bytes, key->length), str_from(wanted->keys[i])))
        i++;
    bool is_outer = wanted->inner && i == wanted->outer && at < scanner->end && *at == '{';
    const char *behind = is_outer
                             ? scan_members(scanner, at, text_take_wanted, (void *)wanted->inner)
                             : scan_value(scanner, at);
    if (behind && i < wanted->count)
        wanted->values[i] = str_slice(at, (size_t)(behind - at));
    return behind;
}

bool json_check_members(struct str text, const struct json_wanted *wanted)
{
    struct scanner scanner;
    struct str value = STR_EMPTY;
    for (const struct json_wanted *level = wanted; level; level = level->inner)
        forget_values(level);
    scanner_init(&scanner, text, NULL);
    enum scan_verdict verdict = scan_document(&scanner, text_take_wanted, (void *)wanted, &value);
    scanner_finish(&scanner);
    return verdict == SCAN_ACCEPTED && json_type(value) == JSON_OBJECT;
}

/* ---- walking ---- */

enum json_type json_type(struct str value)
{
    const char *p = value.bytes;
    if (value.length)
        p = skip_space(p, value.bytes + value.length);
    if ((size_t)(p - value.bytes) == value.length)
        return JSON_NONE;
    switch (*p) {
    case '{':
        return JSON_OBJECT;
    case '[':
        return JSON_ARRAY;
    case '"':
        return JSON_STRING;
    case 't':
        return JSON_TRUE;
    case 'f':
        return JSON_FALSE;
    case 'n':
        return JSON_NULL;
    default:
        return JSON_NUMBER;
    }
}

bool json_number(struct str value, double *number)
{
    if (json_type(value) != JSON_NUMBER)
        return false;
    char *copy = memory_copy_str(value); /* it may be longer than any buffer should be */
    *number = strtod(copy, NULL);
    free(copy);
    return true;
}

/* The start of the next member or element, or NULL behind the last one. */
static const char *next_item(struct str container, char opening, size_t position)
{
    if (container.length == 0)
        return NULL;
    const char *end = container.bytes + container.length;
    const char *p = skip_space(container.bytes + position, end);
    if (p == end || *p != (position == 0 ? opening : ','))
        return NULL;
    p = skip_space(p + 1, end);
    return p < end && *p != '}' && *p != ']' ? p : NULL;
}

bool json_next_member(struct str object, size_t *position, struct str *key, struct str *value)
{
    const char *quote = next_item(object, '{', *position);
    if (!quote)
        return false;
    const char *end = object.bytes + object.length;
    const char *behind_key = walk_string(quote, end);
    const char *colon = skip_space(behind_key, end);
    const char *start = colon < end ? skip_space(colon + 1, end) : end;
    const char *behind = walk_value(start, end);
    *key = str_slice(quote + 1, (size_t)(behind_key - quote) - 2);
    *value = str_slice(start, (size_t)(behind - start));
    *position = (size_t)(behind - object.bytes);
    return true;
}

bool json_next_element(struct str array, size_t *position, struct str *element)
{
    const char *start = next_item(array, '[', *position);
    if (!start)
        return false;
    const char *behind = walk_value(start, array.bytes + array.length);
    *element = str_slice(start, (size_t)(behind - start));
    *position = (size_t)(behind - array.bytes);
    return true;
}

size_t json_count(struct str array_or_object)
{
    size_t count = 0, position = 0;
    struct str key, value;
    bool object = json_type(array_or_object) == JSON_OBJECT;
    while (object ? json_next_member(array_or_object, &position, &key, &value)
                  : json_next_element(array_or_object, &position, &value))
        count++;
    return count;
}

bool json_has_text(struct str array, struct str text)
{
    bool is_array = json_type(array) == JSON_ARRAY;
    struct str element;
    for (size_t position = 0; is_array && json_next_element(array, &position, &element);) {
        if (json_string_equals(element, text))
            return true;
    }
    return false;
}

/* The member with the quotes of its key, as splice_member() takes it; empty when there is none. */
static struct str find_member(struct str object, struct str key, struct str *value)
{
    size_t position = 0;
    struct str raw;
    while (json_next_member(object, &position, &raw, value)) {
        const char *quote = raw.bytes - 1;
        if (unescape_equals(raw, key))
            return str_slice(quote, (size_t)(value->bytes + value->length - quote));
    }
    *value = STR_EMPTY;
    return STR_EMPTY;
}

struct str json_member(struct str object, const char *key)
{
    struct str value;
    find_member(object, str_from(key), &value);
    return value;
}

struct str json_path_of(struct str value, const char *const *keys, size_t count)
{
    for (size_t i = 0; i < count; i++)
        value = json_member(value, keys[i]);
    return value;
}

/* Most keys differ in their first byte. */
static bool is_key(struct str raw, const char *key)
{
    bool may_be = raw.length == 0 || raw.bytes[0] == *key || raw.bytes[0] == '\\';
    return may_be && unescape_equals(raw, str_from(key));
}

/* Whether `value` is the first of its key. */
static bool take_member(struct str raw_key, struct str value, const char *const *keys, size_t count,
                        struct str *values)
{
    for (size_t i = 0; i < count; i++) {
        if (values[i].length || !is_key(raw_key, keys[i]))
            continue;
        values[i] = value;
        return true;
    }
    return false;
}

void json_members(struct str object, const char *const *keys, size_t count, struct str *values)
{
    size_t position = 0, left = count;
    struct str raw, value;
    for (size_t i = 0; i < count; i++)
        values[i] = STR_EMPTY;
    while (left > 0 && json_next_member(object, &position, &raw, &value))
        left -= take_member(raw, value, keys, count, values);
}

/* The members tell where their object ends: only to the end of the array it is known before. */
bool json_next_element_members(struct str array, size_t *position, struct str *element,
                               const char *const *keys, size_t count, struct str *values)
{
    const char *start = next_item(array, '[', *position), *end = array.bytes + array.length;
    for (size_t i = 0; i < count; i++)
        values[i] = STR_EMPTY;
    if (!start || *start != '{')
        return json_next_element(array, position, element);
    struct str object = str_slice(start, (size_t)(end - start)), raw, value;
    size_t at = 0;
    while (json_next_member(object, &at, &raw, &value))
        take_member(raw, value, keys, count, values);
    const char *brace = skip_space(start + (at > 0 ? at : 1), end);
    const char *behind = brace < end ? brace + 1 : end;
    *element = str_slice(start, (size_t)(behind - start));
    *position = (size_t)(behind - array.bytes);
    return true;
}

/* Gives the text between the quotes. False when `value` is no string. */
static bool string_inside(struct str value, struct str *raw)
{
    if (json_type(value) != JSON_STRING)
        return false;
    const char *end = value.bytes + value.length;
    const char *quote = skip_space(value.bytes, end);
    *raw = str_slice(quote + 1, (size_t)(walk_string(quote, end) - quote) - 2);
    return true;
}

bool json_decode_string(struct str value, struct buffer *out)
{
    struct str raw;
    if (!string_inside(value, &raw))
        return false;
    unescape_append(out, raw);
    return true;
}

char *json_string_text(struct str value, size_t *length)
{
    struct buffer text;
    buffer_init(&text);
    return json_decode_string(value, &text) ? buffer_take(&text, length) : NULL;
}

void json_copy_text(char *to, size_t size, struct str value)
{
    OWNED_BUFFER(text);
    if (!json_decode_string(value, &text))
        buffer_clear(&text);
    snprintf(to, size, "%.*s", STR_ARGS(buffer_str(&text)));
}

/* Without escapes, and with nothing around it, as nearly all strings of the protocol are. */
static bool is_plainly(struct str value, struct str text)
{
    return value.length == text.length + 2 && value.bytes[0] == '"' &&
           memcmp(value.bytes + 1, text.bytes, text.length) == 0 &&
           memchr(text.bytes, '\\', text.length) == NULL;
}

char *json_plain_text(struct str value)
{
    size_t length = 0;
    char *text = json_string_text(value, &length);
    if (text && strlen(text) != length) {
        free(text);
        return NULL;
    }
    return text;
}

bool json_string_equals(struct str value, struct str text)
{
    struct str raw;
    if (text.length > 0 && is_plainly(value, text))
        return true;
    return string_inside(value, &raw) && unescape_equals(raw, text);
}

static void text_append_span(struct buffer *out, const char *from, const char *to)
{
    buffer_append(out, str_slice(from, (size_t)(to - from)));
}

/* Behind the last member, so that white space before the brace stays there; behind the opening
 * brace when there is none. */
static const char *behind_members(struct str object)
{
    const char *p = object.bytes + object.length;
    while (p > object.bytes + 1 && p[-1] != '}')
        p--;
    if (p > object.bytes + 1)
        p--;
    while (p > object.bytes + 1 && is_space(p[-1]))
        p--;
    return p;
}

/* The first of the old values that stands at `at` or behind it; `count` when there is none. */
static size_t next_old(const struct json_change *changes, size_t count, const char *at)
{
    size_t next = count;
    for (size_t i = 0; i < count; i++) {
        if (changes[i].old.length && changes[i].old.bytes >= at &&
            (next == count || changes[i].old.bytes < changes[next].old.bytes))
            next = i;
    }
    return next;
}

/* Nearly all keys need no escape. */
static void text_append_member(struct buffer *out, bool is_first, struct str key, struct str value)
{
    const char *end = key.bytes + key.length;
    buffer_reserve(out, key.length + value.length + 4);
    if (!is_first)
        out->bytes[out->length++] = ',';
    if (plain_end(key.bytes, end) < end) {
        buffer_append_json_string(out, key);
        buffer_append_char(out, ':');
        buffer_append(out, value);
        return;
    }
    char *to = out->bytes + out->length;
    *to++ = '"';
    if (key.length > 0)
        to = mempcpy(to, key.bytes, key.length);
    *to++ = '"';
    *to++ = ':';
    to = mempcpy(to, value.bytes, value.length);
    out->length = (size_t)(to - out->bytes);
}

void json_write_changed(struct buffer *out, struct str object, const struct json_change *changes,
                        size_t count)
{
    if (json_type(object) != JSON_OBJECT)
        object = STR("{}");
    const char *at = object.bytes, *behind = behind_members(object);
    for (size_t i; (i = next_old(changes, count, at)) < count;) {
        const char *end = changes[i].old.bytes + changes[i].old.length;
        ASSERT(end <= behind); /* it was found in this very text */
        text_append_span(out, at, changes[i].old.bytes);
        buffer_append(out, changes[i].value);
        at = end;
    }
    text_append_span(out, at, behind);
    bool is_first = behind[-1] == '{';
    for (size_t i = 0; i < count; i++) {
        if (changes[i].old.length)
            continue;
        text_append_member(out, is_first, str_from(changes[i].key), changes[i].value);
        is_first = false;
    }
    text_append_span(out, behind, object.bytes + object.length);
}

void json_write_with_member(struct buffer *out, struct str object, const char *key,
                            struct str value)
{
    const struct json_change change = {key, json_member(object, key), value};
    json_write_changed(out, object, &change, 1);
}

void json_write_with_inner(struct buffer *out, struct str object, const char *outer,
                           const char *key, struct str value)
{
    OWNED_BUFFER(inner);
    json_write_with_member(&inner, json_member(object, outer), key, value);
    json_write_with_member(out, object, outer, buffer_str(&inner));
}

void json_write_without_member(struct buffer *out, struct str object, const char *key)
{
    struct str value;
    if (json_type(object) != JSON_OBJECT)
        object = STR("{}");
    struct str member = find_member(object, str_from(key), &value);
    struct str cut = member.length ? splice_member(object, member) : str_slice(object.bytes, 0);
    text_append_span(out, object.bytes, cut.bytes);
    text_append_span(out, cut.bytes + cut.length, object.bytes + object.length);
}

void json_set_member(struct buffer *object, const char *key, struct str value)
{
    struct buffer changed = {0};
    if (value.length > 0)
        json_write_with_member(&changed, buffer_str(object), key, value);
    else
        json_write_without_member(&changed, buffer_str(object), key);
    buffer_finish(object);
    *object = changed;
}

static bool text_is_one_of(struct str raw_key, const char *const *keys, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (unescape_equals(raw_key, str_from(keys[i])))
            return true;
    }
    return false;
}

static void append_raw_member(struct buffer *out, char *before, struct str key, struct str value)
{
    buffer_append_char(out, *before);
    *before = ',';
    buffer_append(out, str_slice(key.bytes - 1, key.length + 2)); /* with its quotes */
    buffer_append_char(out, ':');
    buffer_append(out, value);
}

void json_write_other_members(struct buffer *out, struct str object, const char *const *keys,
                              size_t count)
{
    size_t position = 0;
    struct str key, value;
    char before = '{';
    while (json_next_member(object, &position, &key, &value)) {
        if (!text_is_one_of(key, keys, count))
            append_raw_member(out, &before, key, value);
    }
    buffer_append_text(out, before == '{' ? "{}" : "}");
}

static bool begins_with(struct str raw_key, struct str prefix)
{
    OWNED_BUFFER(key);
    unescape_append(&key, raw_key);
    return str_starts_with(buffer_str(&key), prefix);
}

void json_write_members_outside(struct buffer *out, struct str object, struct str prefix)
{
    size_t position = 0;
    struct str key, value;
    char before = '{';
    while (json_next_member(object, &position, &key, &value)) {
        if (!begins_with(key, prefix))
            append_raw_member(out, &before, key, value);
    }
    buffer_append_text(out, before == '{' ? "{}" : "}");
}
