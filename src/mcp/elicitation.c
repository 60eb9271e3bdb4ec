/* Checking what was answered to a form. */
#include "taskgate/mcp/elicitation.h"

#include <stdint.h>
#include <stdlib.h>

#include "elicitation_format.h"
#include "taskgate/core/buffer.h"
#include "taskgate/core/memory.h"
#include "taskgate/json/text.h"

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

static const char *const actions[] = {"accept", "decline", "cancel"};

const char *elicitation_action_name(enum elicitation_action action)
{
    return actions[action];
}

bool elicitation_action_parse(struct str value, enum elicitation_action *action)
{
    for (size_t i = 0; i < COUNT_OF(actions); i++) {
        if (json_string_equals(value, str_from(actions[i]))) {
            *action = (enum elicitation_action)i;
            return true;
        }
    }
    return false;
}

bool elicitation_is_url(struct str params)
{
    return json_string_equals(json_member(params, "mode"), STR("url"));
}

static bool has_text(struct str params, const char *key, struct error *error)
{
    return json_type(json_member(params, key)) == JSON_STRING ||
           error_set(error, "params.%s must be a string", key);
}

bool elicitation_check_request(struct str params, struct error *error)
{
    struct str mode = json_member(params, "mode");
    if (json_type(params) != JSON_OBJECT)
        return error_set(error, "params must be an object");
    if (!has_text(params, "message", error))
        return false;
    if (elicitation_is_url(params))
        return has_text(params, "url", error) && has_text(params, "elicitationId", error);
    if (mode.length > 0 && !json_string_equals(mode, STR("form")))
        return error_set(error, "params.mode must be form or url");
    return json_type(json_member(params, "requestedSchema")) == JSON_OBJECT ||
           error_set(error, "params.requestedSchema must be an object");
}

/* ---- numbers ---- */

/* JSON text of a number, which may be longer than any buffer should be. */
static bool read_number(struct str text, double *number)
{
    if (json_type(text) != JSON_NUMBER)
        return false;
    char *copy = memory_copy_str(text);
    *number = strtod(copy, NULL);
    free(copy);
    return true;
}

/* A bound that is not there, or makes no sense, binds nothing. */
static bool is_within(double value, struct str schema, const char *low, const char *high)
{
    double bound;
    return (!read_number(json_member(schema, low), &bound) || value >= bound) &&
           (!read_number(json_member(schema, high), &bound) || value <= bound);
}

/* 1.0 is an integer; and beyond 2^53 a double has no fraction any more. */
static bool is_whole(double number)
{
    const double exact = 9007199254740992.0;
    return number <= -exact || number >= exact || (double)(int64_t)number == number;
}

static bool check_number(struct str schema, struct str value, bool is_integer, struct error *error)
{
    double number;
    if (!read_number(value, &number))
        return error_set(error, is_integer ? "must be an integer" : "must be a number");
    if (is_integer && !is_whole(number))
        return error_set(error, "must be an integer");
    return is_within(number, schema, "minimum", "maximum") || error_set(error, "is out of range");
}

/* ---- texts ---- */

static size_t count_characters(struct str text)
{
    size_t count = 0;
    for (size_t i = 0; i < text.length; i++)
        count += ((unsigned char)text.bytes[i] & 0xC0) != 0x80;
    return count;
}

/* Whether `text` is one of `enum`, or the `const` of one of `oneOf` or `anyOf`; also true where
 * the schema offers no choice. */
static bool is_choice(struct str schema, struct str text)
{
    static const char *const titled[] = {"oneOf", "anyOf"};
    struct str choices = json_member(schema, "enum"), choice;
    bool has_choices = json_type(choices) == JSON_ARRAY;
    size_t position = 0;
    while (has_choices && json_next_element(choices, &position, &choice)) {
        if (json_string_equals(choice, text))
            return true;
    }
    for (size_t i = 0; i < COUNT_OF(titled); i++) {
        choices = json_member(schema, titled[i]);
        if (json_type(choices) != JSON_ARRAY)
            continue;
        has_choices = true;
        position = 0;
        while (json_next_element(choices, &position, &choice)) {
            if (json_string_equals(json_member(choice, "const"), text))
                return true;
        }
    }
    return !has_choices;
}

static bool check_text(struct str schema, struct str value, struct error *error)
{
    struct buffer text;
    buffer_init(&text);
    bool good = false;
    if (!json_decode_string(value, &text))
        error_set(error, "must be a string");
    else if (!is_within((double)count_characters(buffer_str(&text)), schema, "minLength",
                        "maxLength"))
        error_set(error, "is too short or too long");
    else if (!is_choice(schema, buffer_str(&text)))
        error_set(error, "is none of the choices");
    else if (!elicitation_has_format(json_member(schema, "format"), buffer_str(&text)))
        error_set(error, "is not of the format asked for");
    else
        good = true;
    buffer_finish(&text);
    return good;
}

/* ---- lists of choices ---- */

static bool check_list(struct str schema, struct str value, struct error *error)
{
    struct str items = json_member(schema, "items"), item;
    size_t position = 0;
    if (json_type(value) != JSON_ARRAY)
        return error_set(error, "must be a list");
    if (!is_within((double)json_count(value), schema, "minItems", "maxItems"))
        return error_set(error, "has too few or too many items");
    while (json_next_element(value, &position, &item)) {
        if (!check_text(items, item, error))
            return false;
    }
    return true;
}

/* ---- the form ---- */

/* What may be sent at all (ElicitResult.content), whatever the form says. */
static bool is_plain(struct str value)
{
    struct str item;
    size_t position = 0;
    switch (json_type(value)) {
    case JSON_STRING:
    case JSON_NUMBER:
    case JSON_TRUE:
    case JSON_FALSE:
        return true;
    case JSON_ARRAY:
        while (json_next_element(value, &position, &item)) {
            if (json_type(item) != JSON_STRING)
                return false;
        }
        return true;
    default:
        return false;
    }
}

static bool check_value(struct str schema, struct str value, struct error *error)
{
    struct str type = json_member(schema, "type");
    if (!is_plain(value))
        return error_set(error, "must be a text, a number, a boolean or a list of texts");
    if (json_string_equals(type, STR("string")))
        return check_text(schema, value, error);
    if (json_string_equals(type, STR("number")))
        return check_number(schema, value, false, error);
    if (json_string_equals(type, STR("integer")))
        return check_number(schema, value, true, error);
    if (json_string_equals(type, STR("array")))
        return check_list(schema, value, error);
    if (json_string_equals(type, STR("boolean")) && json_type(value) != JSON_TRUE &&
        json_type(value) != JSON_FALSE)
        return error_set(error, "must be true or false");
    return true; /* a type that no form of the protocol has is upstream's to judge */
}

static bool is_named(struct str properties, struct str key, struct str *schema)
{
    struct buffer name;
    buffer_init(&name);
    buffer_append_char(&name, '"');
    buffer_append(&name, key);
    buffer_append_char(&name, '"');
    char *text = json_string_text(buffer_str(&name), NULL);
    *schema = text ? json_member(properties, text) : STR_EMPTY;
    free(text);
    buffer_finish(&name);
    return schema->length > 0;
}

static bool check_members(struct str schema, struct str content, struct error *error)
{
    struct str properties = json_member(schema, "properties"), key, value, member_schema;
    bool is_closed = json_type(json_member(schema, "additionalProperties")) == JSON_FALSE;
    struct error why = {""};
    size_t position = 0;
    while (json_next_member(content, &position, &key, &value)) {
        if (!is_named(properties, key, &member_schema) && is_closed)
            return error_set(error, "content.%.*s is not asked for", STR_ARGS(key));
        if (!check_value(member_schema, value, &why))
            return error_set(error, "content.%.*s %s", STR_ARGS(key), why.message);
    }
    return true;
}

static bool check_required(struct str schema, struct str content, struct error *error)
{
    struct str required = json_member(schema, "required"), name;
    size_t position = 0;
    while (json_type(required) == JSON_ARRAY && json_next_element(required, &position, &name)) {
        char *text = json_string_text(name, NULL);
        bool is_there = !text || json_member(content, text).length > 0;
        if (!is_there)
            error_set(error, "content.%s is required", text);
        free(text);
        if (!is_there)
            return false;
    }
    return true;
}

bool elicitation_check_content(struct str schema, struct str content, struct error *error)
{
    struct str given = content.length > 0 ? content : STR("{}");
    if (json_type(given) != JSON_OBJECT)
        return error_set(error, "content must be an object");
    return check_members(schema, given, error) && check_required(schema, given, error);
}
