/* Cedar's JSON form of values: plain JSON, and objects of the one member __entity or __extn. */
#include <string.h>

#include "json_reader.h"
#include "taskgate/json/text.h"

static bool decode(struct json_reader *reader, struct str json, struct str *text)
{
    buffer_clear(&reader->decoded);
    if (!json_decode_string(json, &reader->decoded))
        return false;
    *text = arena_copy(&reader->heap->arena, buffer_str(&reader->decoded));
    return true;
}

/* A key as json_next_member() gives it, with the quotes around it. */
static struct str quoted(struct str key)
{
    return str_slice(key.bytes - 1, key.length + 2);
}

/* The escapes' member of that name, if it is a string. */
static bool read_text_member(struct json_reader *reader, struct str object, const char *name,
                             struct str *text)
{
    struct str value = json_member(object, name);
    return json_type(value) == JSON_STRING && decode(reader, value, text);
}

bool read_uid_members(struct json_reader *reader, struct str object, struct cedar_uid *uid)
{
    struct str type, id;
    json_reader_look(reader, object);
    if (json_type(object) != JSON_OBJECT || !read_text_member(reader, object, "type", &type) ||
        !read_text_member(reader, object, "id", &id))
        return error_set(reader->error, "expected {\"type\": \"…\", \"id\": \"…\"}");
    if (!cedar_type_is_valid(type))
        return error_set(reader->error, "\"%.*s\" is not the name of an entity type",
                         STR_ARGS(type));
    *uid = cedar_uid(type, id);
    return true;
}

static bool read_number(struct json_reader *reader, struct str json, struct cedar_value *value)
{
    bool negative = json.bytes[0] == '-';
    uint64_t magnitude = 0;
    for (size_t i = negative; i < json.length; i++)
        if (json.bytes[i] < '0' || json.bytes[i] > '9' ||
            !digits_append(&magnitude, json.bytes[i]) || magnitude > (uint64_t)INT64_MAX + negative)
            return error_set(reader->error, "%.*s is not a whole number of 64 bits",
                             STR_ARGS(json));
    if (negative && magnitude == 0)
        return error_set(reader->error, "-0 is not a whole number");
    *value = cedar_long((int64_t)(negative ? 0 - magnitude : magnitude));
    return true;
}

static bool read_set(struct json_reader *reader, struct str json, struct cedar_value *value)
{
    struct arena *arena = &reader->heap->arena;
    size_t count = json_count(json), position = 0, i = 0;
    struct cedar_value *elements = arena_alloc_array(arena, count, sizeof *elements);
    for (struct str element; json_next_element(json, &position, &element); i++)
        if (!read_value(reader, element, &elements[i]))
            return false;
    return set_build(arena, elements, i, value) ||
           error_set(reader->error, "sets and records nested deeper than %d",
                     CEDAR_MAX_VALUE_DEPTH);
}

bool read_record(struct json_reader *reader, struct str json, struct cedar_value *value)
{
    struct arena *arena = &reader->heap->arena;
    size_t count = json_count(json), position = 0, i = 0;
    struct cedar_member *members = arena_alloc_array(arena, count, sizeof *members);
    struct str key, member;
    for (; json_next_member(json, &position, &key, &member); i++)
        if (!decode(reader, quoted(key), &members[i].name) ||
            !read_value(reader, member, &members[i].value))
            return false;
    return record_build(arena, members, i, value, NULL) ||
           error_set(reader->error, "sets and records nested deeper than %d",
                     CEDAR_MAX_VALUE_DEPTH);
}

/* {"fn": …, "arg": …} or {"fn": …, "args": […]}. False in *is_call when it is neither. */
static bool read_call(struct json_reader *reader, struct str object, struct cedar_value *value,
                      bool *is_call)
{
    struct str function;
    struct str argument = json_member(object, "arg"), list = json_member(object, "args");
    *is_call = read_text_member(reader, object, "fn", &function) &&
               (argument.length || json_type(list) == JSON_ARRAY);
    if (!*is_call)
        return false;
    struct cedar_value arguments[EXTENSION_MAX_ARITY + 1];
    size_t count = 0, position = 0;
    if (argument.length) {
        if (!read_value(reader, argument, &arguments[count++]))
            return false;
    } else {
        for (struct str one;
             count <= EXTENSION_MAX_ARITY && json_next_element(list, &position, &one);)
            if (!read_value(reader, one, &arguments[count++]))
                return false;
    }
    return cedar_call(reader->heap, function, arguments, count, value, reader->error);
}

/* Reads one of the escapes; false in *is_escape when the object is a record after all. */
static bool read_escape(struct json_reader *reader, struct str json, struct cedar_value *value,
                        bool *is_escape)
{
    size_t position = 0;
    struct str key, inner, unused;
    *is_escape = false;
    if (json_count(json) != 1 || !json_next_member(json, &position, &key, &inner))
        return false;
    key = quoted(key);
    if (json_string_equals(key, STR("__extn")) && json_type(inner) == JSON_OBJECT)
        return read_call(reader, inner, value, is_escape);
    if (json_string_equals(key, STR("__expr")) && json_type(inner) == JSON_STRING) {
        *is_escape = true;
        return error_set(reader->error, "__expr is not supported");
    }
    *is_escape = json_string_equals(key, STR("__entity")) && json_type(inner) == JSON_OBJECT &&
                 read_text_member(reader, inner, "type", &unused) &&
                 read_text_member(reader, inner, "id", &unused);
    struct cedar_uid uid;
    if (!*is_escape || !read_uid_members(reader, inner, &uid))
        return false;
    *value = cedar_entity(reader->heap, &uid);
    return true;
}

bool read_value(struct json_reader *reader, struct str json, struct cedar_value *value)
{
    struct str text;
    bool is_escape;
    json_reader_look(reader, json);
    switch (json_type(json)) {
    case JSON_TRUE:
    case JSON_FALSE:
        *value = cedar_bool(json.bytes[0] == 't');
        return true;
    case JSON_NUMBER:
        return read_number(reader, json, value);
    case JSON_STRING:
        if (!decode(reader, json, &text))
            return error_set(reader->error, "a string that cannot be read");
        *value = cedar_string(text);
        return true;
    case JSON_ARRAY:
        return read_set(reader, json, value);
    case JSON_OBJECT:
        if (read_escape(reader, json, value, &is_escape))
            return true;
        return !is_escape && read_record(reader, json, value);
    default:
        return error_set(reader->error, "null is no value");
    }
}

void json_reader_init(struct json_reader *reader, struct cedar_heap *heap, struct error *error)
{
    *reader = (struct json_reader){.heap = heap, .error = error};
    buffer_init(&reader->decoded);
}

void json_reader_look(struct json_reader *reader, struct str json)
{
    if (json.length)
        reader->at = json.bytes;
}

void json_reader_finish(struct json_reader *reader)
{
    buffer_finish(&reader->decoded);
}

bool cedar_value_read_json(struct cedar_heap *heap, struct str json, struct cedar_value *value,
                           struct error *error)
{
    struct json_reader reader;
    json_reader_init(&reader, heap, error);
    bool good = json_check(json, error) && read_value(&reader, str_trim(json), value);
    json_reader_finish(&reader);
    return good;
}
