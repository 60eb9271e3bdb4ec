/* The answer to a form: its members against the fields, and the required fields. */
#include <stdlib.h>

#include "elicitation_field.h"
#include "taskgate/core/buffer.h"
#include "taskgate/core/map.h"
#include "taskgate/core/memory.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/elicitation.h"

/* The members of an object by their decoded names. */
struct names {
    struct map *map;    /* to `values` */
    struct str *values; /* NULL when there are none */
};

static void names_init(struct names *names, struct str object)
{
    struct str key, value;
    struct buffer name;
    size_t position = 0, count = 0, capacity = 0;
    names->map = map_create();
    names->values = NULL;
    if (json_type(object) == JSON_OBJECT)
        capacity = json_count(object);
    if (capacity > 0)
        names->values = memory_alloc_array(capacity, sizeof *names->values);
    buffer_init(&name);
    while (count < capacity && json_next_member(object, &position, &key, &value)) {
        buffer_clear(&name);
        json_decode_string(str_slice(key.bytes - 1, key.length + 2), &name);
        names->values[count] = value;
        map_put(names->map, buffer_str(&name), &names->values[count++]);
    }
    buffer_finish(&name);
}

static void names_finish(struct names *names)
{
    map_destroy(names->map, NULL);
    free(names->values);
}

/* `name` is JSON text; NULL when there is no such member. */
static const struct str *names_find(const struct names *names, struct str name)
{
    struct buffer text;
    buffer_init(&text);
    const struct str *value = NULL;
    if (json_decode_string(name, &text))
        value = map_get(names->map, buffer_str(&text));
    buffer_finish(&text);
    return value;
}

static bool check_member(const struct names *properties, bool is_closed, struct str key,
                         struct str value, struct error *error)
{
    struct error why = {""};
    const struct str *schema = names_find(properties, str_slice(key.bytes - 1, key.length + 2));
    if (!schema && is_closed)
        return error_set(error, "content.%.*s is not asked for", STR_ARGS(key));
    struct elicitation_field *field = elicitation_field_create(schema ? *schema : STR_EMPTY);
    bool good = elicitation_field_check(field, value, &why) ||
                error_set(error, "content.%.*s %s", STR_ARGS(key), why.message);
    elicitation_field_destroy(field);
    return good;
}

static bool check_members(struct str schema, struct str content, struct error *error)
{
    bool is_closed = json_type(json_member(schema, "additionalProperties")) == JSON_FALSE;
    struct names properties;
    struct str key, value;
    size_t position = 0;
    bool good = true;
    names_init(&properties, json_member(schema, "properties"));
    while (good && json_next_member(content, &position, &key, &value))
        good = check_member(&properties, is_closed, key, value, error);
    names_finish(&properties);
    return good;
}

static bool check_required(struct str schema, struct str content, struct error *error)
{
    struct str required = json_member(schema, "required"), name;
    struct names given;
    size_t position = 0;
    bool good = true;
    if (json_type(required) != JSON_ARRAY)
        return true;
    names_init(&given, content);
    while (good && json_next_element(required, &position, &name)) {
        char *text = json_string_text(name, NULL);
        good =
            !text || names_find(&given, name) || error_set(error, "content.%s is required", text);
        free(text);
    }
    names_finish(&given);
    return good;
}

bool elicitation_check_content(struct str schema, struct str content, struct error *error)
{
    struct str given = content.length > 0 ? content : STR("{}");
    if (json_type(given) != JSON_OBJECT)
        return error_set(error, "content must be an object");
    return check_members(schema, given, error) && check_required(schema, given, error);
}
