/* Cedar's JSON form of entities and of requests. */
#include <stdio.h>

#include "entities.h"
#include "json_reader.h"
#include "taskgate/json/text.h"

bool read_uid(struct json_reader *reader, struct str json, struct cedar_uid *uid)
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
    if (!read_record(reader, json, &value))
        return error_prefix(reader->error, name);
    *record = value.record;
    return true;
}

bool read_entity(struct json_reader *reader, struct cedar_entities *entities, struct str json)
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

bool read_request(struct json_reader *reader, struct str json, struct cedar_request *request)
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
        json_reader_look(reader, json); /* a missing one is told there */
        if (!read_uid(reader, json_member(json, uids[i].name), uids[i].uid))
            return error_prefix(reader->error, uids[i].name);
    }
    struct str context = json_member(json, "context");
    struct cedar_value value;
    if (!context.length)
        return true;
    /* An escape at the top is no record, although it is an object. */
    if (!read_value(reader, context, &value))
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
