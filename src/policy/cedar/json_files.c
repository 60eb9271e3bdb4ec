/* Whole files in Cedar's JSON form: everything that is wrong with them, with its place. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ast.h"
#include "entities.h"
#include "taskgate/core/memory.h"
#include "taskgate/json/text.h"
#include "value.h"

struct json_reader {
    struct cedar_heap *heap;
    struct buffer decoded; /* the string that is being read */
    struct error *error;
    const char *at; /* the place of the fault, after a refusal */
};

/* Cedar's JSON form of values: plain JSON, and objects of the one member __entity or __extn. */

static bool json_files_decode(struct json_reader *reader, struct str json, struct str *text)
{
    buffer_clear(&reader->decoded);
    if (!json_decode_string(json, &reader->decoded))
        return false;
    *text = arena_copy(&reader->heap->arena, buffer_str(&reader->decoded));
    return true;
}

/* A key as json_next_member() gives it, with the quotes around it. */
static struct str json_files_quoted(struct str key)
{
    return str_slice(key.bytes - 1, key.length + 2);
}

/* The escapes' member of that name, if it is a string. */
static bool read_text_member(struct json_reader *reader, struct str object, const char *name,
                             struct str *text)
{
    struct str value = json_member(object, name);
    return json_type(value) == JSON_STRING && json_files_decode(reader, value, text);
}

static void json_reader_look(struct json_reader *reader, struct str json);

/* {"type": …, "id": …} */
static bool read_uid_members(struct json_reader *reader, struct str object, struct cedar_uid *uid)
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

static bool json_files_read_number(struct json_reader *reader, struct str json,
                                   struct cedar_value *value)
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

static bool json_files_read_value(struct json_reader *reader, struct str json,
                                  struct cedar_value *value);

static bool json_files_read_set(struct json_reader *reader, struct str json,
                                struct cedar_value *value)
{
    struct arena *arena = &reader->heap->arena;
    size_t count = json_count(json), position = 0, i = 0;
    struct cedar_value *elements = arena_alloc_array(arena, count, sizeof *elements);
    for (struct str element; json_next_element(json, &position, &element); i++)
        if (!json_files_read_value(reader, element, &elements[i]))
            return false;
    return set_build(arena, elements, i, value) ||
           error_set(reader->error, "sets and records nested deeper than %d",
                     CEDAR_MAX_VALUE_DEPTH);
}

/* An object with values as members, of any names. */
static bool json_files_read_record(struct json_reader *reader, struct str json,
                                   struct cedar_value *value)
{
    struct arena *arena = &reader->heap->arena;
    size_t count = json_count(json), position = 0, i = 0;
    struct cedar_member *members = arena_alloc_array(arena, count, sizeof *members);
    struct str key, member;
    for (; json_next_member(json, &position, &key, &member); i++)
        if (!json_files_decode(reader, json_files_quoted(key), &members[i].name) ||
            !json_files_read_value(reader, member, &members[i].value))
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
        if (!json_files_read_value(reader, argument, &arguments[count++]))
            return false;
    } else {
        for (struct str one;
             count <= EXTENSION_MAX_ARITY && json_next_element(list, &position, &one);)
            if (!json_files_read_value(reader, one, &arguments[count++]))
                return false;
    }
    return cedar_call(reader->heap, function, arguments, count, value, reader->error);
}

/* Reads one of the escapes; false in *is_escape when the object is a record after all. */
static bool json_files_read_escape(struct json_reader *reader, struct str json,
                                   struct cedar_value *value, bool *is_escape)
{
    size_t position = 0;
    struct str key, inner, unused;
    *is_escape = false;
    if (json_count(json) != 1 || !json_next_member(json, &position, &key, &inner))
        return false;
    key = json_files_quoted(key);
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

static bool json_files_read_value(struct json_reader *reader, struct str json,
                                  struct cedar_value *value)
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
        return json_files_read_number(reader, json, value);
    case JSON_STRING:
        if (!json_files_decode(reader, json, &text))
            return error_set(reader->error, "a string that cannot be read");
        *value = cedar_string(text);
        return true;
    case JSON_ARRAY:
        return json_files_read_set(reader, json, value);
    case JSON_OBJECT:
        if (json_files_read_escape(reader, json, value, &is_escape))
            return true;
        return !is_escape && json_files_read_record(reader, json, value);
    default:
        return error_set(reader->error, "null is no value");
    }
}

static void json_reader_init(struct json_reader *reader, struct cedar_heap *heap,
                             struct error *error)
{
    *reader = (struct json_reader){.heap = heap, .error = error};
    buffer_init(&reader->decoded);
}

/* Sets the place of the next text, for its errors. Missing text leaves the place as it was. */
static void json_reader_look(struct json_reader *reader, struct str json)
{
    if (json.length)
        reader->at = json.bytes;
}

static void json_reader_finish(struct json_reader *reader)
{
    buffer_finish(&reader->decoded);
}

bool cedar_value_read_json(struct cedar_heap *heap, struct str json, struct cedar_value *value,
                           struct error *error)
{
    struct json_reader reader;
    json_reader_init(&reader, heap, error);
    bool good = json_check(json, error) && json_files_read_value(&reader, str_trim(json), value);
    json_reader_finish(&reader);
    return good;
}

/* Cedar's JSON form of entities and of requests. */

/* The same, also inside __entity, or the string Type::"id". */
static bool read_uid(struct json_reader *reader, struct str json, struct cedar_uid *uid)
{
    json_reader_look(reader, json);
    if (json_type(json) == JSON_STRING) {
        buffer_clear(&reader->decoded);
        return json_decode_string(json, &reader->decoded) &&
               cedar_uid_parse(reader->heap, buffer_str(&reader->decoded), uid, reader->error);
    }
    struct str inner = json_member(json, "__entity");
    return read_uid_members(reader, inner.length ? inner : json, uid);
}

bool cedar_uid_read_json(struct cedar_heap *heap, struct str json, struct cedar_uid *uid,
                         struct error *error)
{
    struct json_reader reader;
    json_reader_init(&reader, heap, error);
    bool good = json_check(json, error) && read_uid(&reader, str_trim(json), uid);
    json_reader_finish(&reader);
    return good;
}

/* ---- Entities -------------------------------------------------------------------------- */

/* The member, which must be there unless it is `optional`, as a record. */
static bool read_record_member(struct json_reader *reader, struct str object, const char *name,
                               bool optional, const struct cedar_record **record)
{
    struct str json = json_member(object, name);
    struct cedar_value value;
    *record = NULL;
    if (!json.length && optional)
        return true;
    json_reader_look(reader, json.length ? json : object);
    if (json_type(json) != JSON_OBJECT)
        return error_set(reader->error, "%s: expected an object", name);
    if (!json_files_read_record(reader, json, &value))
        return error_prefix(reader->error, name);
    *record = value.record;
    return true;
}

/* {"uid", "attrs", "parents", "tags"?} */
static bool read_entity(struct json_reader *reader, struct cedar_entities *entities,
                        struct str json)
{
    struct cedar_uid uid;
    const struct cedar_record *attributes, *tags;
    json_reader_look(reader, json);
    if (json_type(json) != JSON_OBJECT)
        return error_set(reader->error, "expected an object");
    if (!read_uid(reader, json_member(json, "uid"), &uid))
        return error_prefix(reader->error, "uid");
    if (!read_record_member(reader, json, "attrs", false, &attributes) ||
        !read_record_member(reader, json, "tags", true, &tags))
        return false;
    struct str list = json_member(json, "parents");
    json_reader_look(reader, list.length ? list : json);
    if (json_type(list) != JSON_ARRAY)
        return error_set(reader->error, "parents: expected an array");
    size_t position = 0, count = 0;
    struct cedar_uid *parents =
        arena_alloc_array(&reader->heap->arena, json_count(list), sizeof *parents);
    for (struct str parent; json_next_element(list, &position, &parent);)
        if (!read_uid(reader, parent, &parents[count++]))
            return error_prefix(reader->error, "parents");
    json_reader_look(reader, json);
    return cedar_entities_add(entities, &uid, attributes, tags, parents, count, reader->error);
}

bool cedar_entities_read_json(struct cedar_entities *entities, struct str json, struct error *error)
{
    if (!json_check(json, error))
        return false;
    if (json_type(json) != JSON_ARRAY)
        return error_set(error, "expected an array of entities");
    struct json_reader reader;
    json_reader_init(&reader, &entities->heap, error);
    bool good = true;
    size_t position = 0, number = 0;
    for (struct str entity; good && json_next_element(json, &position, &entity); number++)
        good = read_entity(&reader, entities, entity);
    json_reader_finish(&reader);
    if (good)
        return true;
    char where[48];
    snprintf(where, sizeof where, "entity %zu", number);
    return error_prefix(error, where);
}

/* ---- Requests -------------------------------------------------------------------------- */

/* {"principal", "action", "resource", "context"?} */
static bool read_request(struct json_reader *reader, struct str json, struct cedar_request *request)
{
    *request = (struct cedar_request){.context = NULL};
    const struct {
        const char *name;
        struct cedar_uid *uid;
    } uids[] = {
        {"principal", &request->principal},
        {"action", &request->action},
        {"resource", &request->resource},
    };
    json_reader_look(reader, json);
    if (json_type(json) != JSON_OBJECT)
        return error_set(reader->error, "expected an object");
    for (size_t i = 0; i < sizeof uids / sizeof *uids; i++) {
        json_reader_look(reader, json); /* a missing one is reported there */
        if (!read_uid(reader, json_member(json, uids[i].name), uids[i].uid))
            return error_prefix(reader->error, uids[i].name);
    }
    struct str context = json_member(json, "context");
    struct cedar_value value = {.kind = CEDAR_UNKNOWN};
    if (!context.length)
        return true;
    /* An escape at the top is no record, although it is an object. */
    if (!json_files_read_value(reader, context, &value))
        return error_prefix(reader->error, "context");
    json_reader_look(reader, context);
    if (value.kind != CEDAR_RECORD)
        return error_set(reader->error, "context: expected an object");
    request->context = value.record;
    return true;
}

bool cedar_request_read_json(struct cedar_heap *heap, struct str json,
                             struct cedar_request *request, struct error *error)
{
    struct json_reader reader;
    json_reader_init(&reader, heap, error);
    bool good = json_check(json, error) && read_request(&reader, str_trim(json), request);
    json_reader_finish(&reader);
    return good;
}

#define PROBLEMS_MAX 100

struct cedar_requests {
    struct cedar_heap heap;
    struct cedar_request *items;
    size_t count;
};

/* A file while it is read, item by item. */
struct file {
    struct source source;
    struct json_reader reader;
    struct error error;
    struct buffer *problems;
    size_t problem_count;
};

static void file_init(struct file *file, const struct cedar_source *source, struct cedar_heap *heap,
                      struct buffer *problems)
{
    *file = (struct file){.source = {source->name, source->text}, .problems = problems};
    json_reader_init(&file->reader, heap, &file->error);
}

/* On one line, for names with any characters. */
static void json_files_append_message(struct buffer *out, const char *message)
{
    for (const char *c = message; *c; c++) {
        if ((unsigned char)*c < ' ')
            buffer_append_format(out, "\\u%04x", (unsigned)*c);
        else
            buffer_append_char(out, *c);
    }
    buffer_append_char(out, '\n');
}

/* Notes `file->error`; `place` is a byte of the file. */
static void json_files_note(struct file *file, size_t place)
{
    struct cedar_position position = source_position(&file->source, place);
    if (++file->problem_count > PROBLEMS_MAX)
        return;
    buffer_append_format(file->problems, "%s:%u:%u: ", position.source, position.line,
                         position.column);
    json_files_append_message(file->problems, file->error.message);
}

static void note_at(struct file *file, const char *at)
{
    json_files_note(file, at ? (size_t)(at - file->source.text.bytes) : 0);
}

/* Whether nothing was wrong. */
static bool file_finish(struct file *file)
{
    if (file->problem_count > PROBLEMS_MAX)
        buffer_append_format(file->problems, "%zu more problems\n",
                             file->problem_count - PROBLEMS_MAX);
    json_reader_finish(&file->reader);
    return file->problem_count == 0;
}

/* The file's text without the space around it; empty when it is no JSON. */
static struct str json_files_check(struct file *file)
{
    size_t place = 0;
    if (json_check_at(file->source.text, &place, &file->error))
        return str_trim(file->source.text);
    json_files_note(file, place);
    return STR_EMPTY;
}

static bool require_array(struct file *file, struct str json, struct str at, const char *wanted)
{
    if (json_type(json) == JSON_ARRAY)
        return true;
    error_set(&file->error, "expected %s", wanted);
    note_at(file, at.bytes);
    return false;
}

/* Notes the error of an item in `file->error`; items count from 1. */
static void json_files_judge(struct file *file, bool good, const char *what, size_t number)
{
    char item[48];
    if (good)
        return;
    snprintf(item, sizeof item, "%s %zu", what, number);
    error_prefix(&file->error, item);
    note_at(file, file->reader.at);
}

/* ---- entities ---- */

/* The place of the entity because of which the store could not be closed. */
static const char *find_culprit(struct file *file, struct str array, const struct cedar_uid *uid)
{
    size_t position = 0;
    struct cedar_uid other;
    for (struct str json; uid && json_next_element(array, &position, &json);)
        if (read_uid(&file->reader, json_member(json, "uid"), &other) &&
            cedar_uid_equal(uid, &other))
            return json.bytes;
    return array.bytes;
}

struct cedar_entities *cedar_entities_parse(const struct cedar_source *source,
                                            struct buffer *problems)
{
    struct cedar_entities *entities = cedar_entities_create();
    struct file file;
    file_init(&file, source, &entities->heap, problems);
    struct str array = json_files_check(&file);
    if (array.length && require_array(&file, array, array, "an array of entities")) {
        size_t position = 0, number = 0;
        for (struct str json; json_next_element(array, &position, &json);)
            json_files_judge(&file, read_entity(&file.reader, entities, json), "entity", ++number);
        if (file.problem_count == 0 && !cedar_entities_seal(entities, &file.error))
            note_at(&file, find_culprit(&file, array, entities->culprit));
    }
    if (file_finish(&file))
        return entities;
    cedar_entities_destroy(entities);
    return NULL;
}

/* ---- requests ---- */

struct cedar_requests *cedar_requests_parse(const struct cedar_source *source,
                                            struct buffer *problems)
{
    struct cedar_requests *requests = memory_alloc(sizeof *requests);
    struct file file;
    arena_init(&requests->heap.arena);
    file_init(&file, source, &requests->heap, problems);
    struct str json = json_files_check(&file), member = json_member(json, "requests");
    struct str array = json_type(json) == JSON_OBJECT ? member : json;
    if (json.length && require_array(&file, array, member.length ? member : json,
                                     "an array of requests, or an object with \"requests\"")) {
        size_t position = 0;
        requests->items = memory_alloc_array(json_count(array), sizeof *requests->items);
        for (struct str one; json_next_element(array, &position, &one); requests->count++)
            json_files_judge(&file,
                             read_request(&file.reader, one, &requests->items[requests->count]),
                             "request", requests->count + 1);
    }
    if (file_finish(&file))
        return requests;
    cedar_requests_destroy(requests);
    return NULL;
}

void cedar_requests_destroy(struct cedar_requests *requests)
{
    if (!requests)
        return;
    arena_finish(&requests->heap.arena);
    free(requests->items);
    free(requests);
}

size_t cedar_requests_count(const struct cedar_requests *requests)
{
    return requests->count;
}

const struct cedar_request *cedar_requests_at(const struct cedar_requests *requests, size_t index)
{
    return &requests->items[index];
}
