/* The agent's reason in the schema of a tool, and in the arguments of a call. */
#include "taskgate/mcp/reason_property.h"

#include <string.h>

#include "taskgate/core/owned.h"
#include "taskgate/core/visible.h"
#include "taskgate/json/text.h"

enum { SCHEMA_TYPE, SCHEMA_PROPERTIES, SCHEMA_REQUIRED, SCHEMA_MEMBERS };
static const char *const schema_keys[] = {"type", "properties", "required"};

static bool reason_property_is_absent_or(struct str value, enum json_type type)
{
    return value.length == 0 || json_type(value) == type;
}

bool reason_property_fits(struct str schema)
{
    struct str values[SCHEMA_MEMBERS] = {STR_EMPTY, STR_EMPTY, STR_EMPTY};
    json_members(schema, schema_keys, SCHEMA_MEMBERS, values);
    return json_string_equals(values[SCHEMA_TYPE], STR("object")) &&
           reason_property_is_absent_or(values[SCHEMA_PROPERTIES], JSON_OBJECT) &&
           reason_property_is_absent_or(values[SCHEMA_REQUIRED], JSON_ARRAY) &&
           json_member(values[SCHEMA_PROPERTIES], REASON_PROPERTY).length == 0;
}

static void write_property(struct buffer *out)
{
    buffer_append_format(out,
                         "{\"type\":\"string\",\"minLength\":%d,\"maxLength\":%d,\"description\":"
                         "\"Why you make this call, for the person who decides on it.\"}",
                         REASON_PROPERTY_LEAST, REASON_PROPERTY_MOST);
}

static void reason_property_write_required(struct buffer *out, struct str required)
{
    size_t position = 0;
    struct str name;
    buffer_append_char(out, '[');
    while (json_next_element(required, &position, &name)) {
        buffer_append(out, name);
        buffer_append_char(out, ',');
    }
    buffer_append_text(out, "\"" REASON_PROPERTY "\"]");
}

void reason_property_write(struct buffer *out, struct str schema, bool is_required)
{
    struct str values[SCHEMA_MEMBERS] = {STR_EMPTY, STR_EMPTY, STR_EMPTY};
    OWNED_BUFFER(property);
    OWNED_BUFFER(properties);
    OWNED_BUFFER(required);
    json_members(schema, schema_keys, SCHEMA_MEMBERS, values);
    write_property(&property);
    json_write_with_member(&properties, values[SCHEMA_PROPERTIES], REASON_PROPERTY,
                           buffer_str(&property));
    reason_property_write_required(&required, values[SCHEMA_REQUIRED]);
    const struct json_change changes[] = {
        {schema_keys[SCHEMA_PROPERTIES], values[SCHEMA_PROPERTIES], buffer_str(&properties)},
        {schema_keys[SCHEMA_REQUIRED], values[SCHEMA_REQUIRED], buffer_str(&required)},
    };
    json_write_changed(out, schema, changes, is_required ? 2 : 1);
}

enum reason_property reason_property_read(struct str arguments, struct buffer *reason)
{
    struct str value = json_member(arguments, REASON_PROPERTY);
    OWNED_BUFFER(text);
    if (value.length == 0)
        return REASON_PROPERTY_ABSENT;
    bool is_text = json_decode_string(value, &text);
    struct str trimmed = str_trim(buffer_str(&text));
    size_t length = is_text ? str_utf8_count(trimmed) : 0;
    bool has_nul = length > 0 && memchr(trimmed.bytes, 0, trimmed.length);
    bool is_good = !has_nul && length >= REASON_PROPERTY_LEAST && length <= REASON_PROPERTY_MOST &&
                   visible_has_content(trimmed);
    if (is_good)
        buffer_append(reason, trimmed);
    return is_good ? REASON_PROPERTY_GOOD : REASON_PROPERTY_BAD;
}
