/* The form of a question, and the permitted answers. */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "taskgate/core/assert.h"
#include "taskgate/core/buffer.h"
#include "taskgate/core/error.h"
#include "taskgate/core/map.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/core/str.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/elicitation.h"

/* email, uri, date, date-time: as far as a form needs them; strict about impossible values. */

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

static bool elicitation_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool elicitation_is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Control characters and white space stand in none of them. */
static bool has_blank(struct str text)
{
    for (size_t i = 0; i < text.length; i++) {
        if ((unsigned char)text.bytes[i] <= ' ' || text.bytes[i] == 0x7F)
            return true;
    }
    return false;
}

static bool is_email(struct str text)
{
    struct str name, domain;
    return !has_blank(text) && str_cut(text, '@', &name, &domain) && name.length > 0 &&
           domain.length > 0 && !memchr(domain.bytes, '@', domain.length) &&
           domain.bytes[0] != '.' && domain.bytes[domain.length - 1] != '.';
}

/* RFC 3986: a scheme, then something. */
static bool is_uri(struct str text)
{
    struct str scheme, rest;
    if (has_blank(text) || !str_cut(text, ':', &scheme, &rest) || rest.length == 0 ||
        scheme.length == 0 || !elicitation_is_letter(scheme.bytes[0]))
        return false;
    for (size_t i = 0; i < scheme.length; i++) {
        char c = scheme.bytes[i];
        if (!elicitation_is_letter(c) && !elicitation_is_digit(c) && c != '+' && c != '-' &&
            c != '.')
            return false;
    }
    for (size_t i = 0; i < rest.length; i++) {
        if (strchr("\"<>\\^`{|}", rest.bytes[i]))
            return false;
    }
    return true;
}

/* `shape` has 0 for each digit; other characters stand for themselves. */
static bool has_shape(struct str text, const char *shape)
{
    if (text.length < strlen(shape))
        return false;
    for (size_t i = 0; shape[i]; i++) {
        if (shape[i] == '0' ? !elicitation_is_digit(text.bytes[i]) : text.bytes[i] != shape[i])
            return false;
    }
    return true;
}

static int two_digits(struct str text, size_t at)
{
    return (text.bytes[at] - '0') * 10 + text.bytes[at + 1] - '0';
}

static int days_in(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return days[month - 1] + (month == 2 && is_leap);
}

static bool begins_with_date(struct str text)
{
    if (!has_shape(text, "0000-00-00"))
        return false;
    int year = two_digits(text, 0) * 100 + two_digits(text, 2);
    int month = two_digits(text, 5), day = two_digits(text, 8);
    return month >= 1 && month <= 12 && day >= 1 && day <= days_in(year, month);
}

static bool is_date(struct str text)
{
    return text.length == 10 && begins_with_date(text);
}

static bool is_zone(struct str text)
{
    if (text.length == 1)
        return text.bytes[0] == 'Z' || text.bytes[0] == 'z';
    return text.length == 6 && (has_shape(text, "+00:00") || has_shape(text, "-00:00")) &&
           two_digits(text, 1) <= 23 && two_digits(text, 4) <= 59;
}

/* RFC 3339; a second of 60 is a leap second. */
static bool is_date_time(struct str text)
{
    if (!begins_with_date(text) || text.length < 20 ||
        (text.bytes[10] != 'T' && text.bytes[10] != 't' && text.bytes[10] != ' '))
        return false;
    struct str time = str_slice(text.bytes + 11, text.length - 11);
    if (!has_shape(time, "00:00:00") || two_digits(time, 0) > 23 || two_digits(time, 3) > 59 ||
        two_digits(time, 6) > 60)
        return false;
    size_t at = 8;
    if (at < time.length && time.bytes[at] == '.') {
        size_t first = ++at;
        while (at < time.length && elicitation_is_digit(time.bytes[at]))
            at++;
        if (at == first)
            return false;
    }
    return is_zone(str_slice(time.bytes + at, time.length - at));
}

/* `format` is JSON text. A format that is not one of the protocol's is had by every text. */
static bool elicitation_has_format(struct str format, struct str text)
{
    static const struct {
        const char *name;
        bool (*has)(struct str text);
    } formats[] = {
        {"email", is_email}, {"uri", is_uri}, {"date", is_date}, {"date-time", is_date_time}};
    for (size_t i = 0; i < COUNT_OF(formats); i++) {
        if (json_string_equals(format, str_from(formats[i].name)))
            return formats[i].has(text);
    }
    return true;
}

struct elicitation_field;

/* A value against a field. A server chooses the length of the schema, and a client the length of
 * the answer, so each of them is walked only once. */

enum key {
    KEY_TYPE,
    KEY_ITEMS,
    KEY_FORMAT,
    KEY_ENUM,
    KEY_ONE_OF,
    KEY_ANY_OF,
    /* The rest are bounds. */
    KEY_MINIMUM,
    KEY_MAXIMUM,
    KEY_MIN_LENGTH,
    KEY_MAX_LENGTH,
    KEY_MIN_ITEMS,
    KEY_MAX_ITEMS,
    KEY_COUNT
};
#define FIRST_BOUND KEY_MINIMUM

static const char *const key_names[KEY_COUNT] = {
    [KEY_TYPE] = "type",
    [KEY_ITEMS] = "items",
    [KEY_FORMAT] = "format",
    [KEY_ENUM] = "enum",
    [KEY_ONE_OF] = "oneOf",
    [KEY_ANY_OF] = "anyOf",
    [KEY_MINIMUM] = "minimum",
    [KEY_MAXIMUM] = "maximum",
    [KEY_MIN_LENGTH] = "minLength",
    [KEY_MAX_LENGTH] = "maxLength",
    [KEY_MIN_ITEMS] = "minItems",
    [KEY_MAX_ITEMS] = "maxItems",
};

struct elicitation_field {
    struct str keys[KEY_COUNT];      /* values in the schema; empty when absent */
    double bounds[KEY_COUNT];        /* those that are; infinite where nothing is bound */
    struct map *choices;             /* decoded texts; NULL where every text will do */
    struct elicitation_field *items; /* of a list; made with the first one */
};

/* ---- choices ---- */

static void add_choice(struct map *choices, struct str text)
{
    OWNED_BUFFER(name);
    if (json_decode_string(text, &name))
        map_put(choices, buffer_str(&name), choices);
}

/* The texts of `enum`, and each `const` of `oneOf` and `anyOf`. */
static void elicitation_read_choices(struct elicitation_field *field)
{
    static const enum key lists[] = {KEY_ENUM, KEY_ONE_OF, KEY_ANY_OF};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        struct str list = field->keys[lists[i]], choice;
        size_t position = 0;
        if (json_type(list) != JSON_ARRAY)
            continue;
        if (!field->choices)
            field->choices = map_create();
        while (json_next_element(list, &position, &choice))
            add_choice(field->choices,
                       lists[i] == KEY_ENUM ? choice : json_member(choice, "const"));
    }
}

/* A bound that is not there, or makes no sense, binds nothing. */
static void read_bounds(struct elicitation_field *field)
{
    for (enum key key = FIRST_BOUND; key < KEY_COUNT; key++) {
        bool is_lower = (key - FIRST_BOUND) % 2 == 0;
        if (!json_number(field->keys[key], &field->bounds[key]))
            field->bounds[key] = is_lower ? -HUGE_VAL : HUGE_VAL;
    }
}

/* `schema` is JSON text that stays where it is; empty for a member that the form does not name. */
static struct elicitation_field *elicitation_field_create(struct str schema)
{
    struct elicitation_field *field = memory_alloc(sizeof *field);
    json_members(schema, key_names, KEY_COUNT, field->keys);
    elicitation_read_choices(field);
    read_bounds(field);
    return field;
}

/* NULL is allowed. */
static void elicitation_field_destroy(struct elicitation_field *field)
{
    if (!field)
        return;
    elicitation_field_destroy(field->items);
    map_destroy(field->choices, NULL);
    free(field);
}

/* ---- numbers ---- */

/* `low` is the lower one of a pair of bounds. */
static bool is_within(double value, const struct elicitation_field *field, enum key low)
{
    return value >= field->bounds[low] && value <= field->bounds[low + 1];
}

/* 1.0 is an integer; and beyond 2^53 a double has no fraction any more. */
static bool elicitation_is_whole(double number)
{
    const double exact = 9007199254740992.0;
    return number <= -exact || number >= exact || (double)(int64_t)number == number;
}

static bool check_number(const struct elicitation_field *field, struct str value, bool is_integer,
                         struct error *error)
{
    double number;
    if (!json_number(value, &number))
        return error_set(error, is_integer ? "must be an integer" : "must be a number");
    if (is_integer && !elicitation_is_whole(number))
        return error_set(error, "must be an integer");
    return is_within(number, field, KEY_MINIMUM) || error_set(error, "is out of range");
}

/* ---- texts ---- */

static bool check_text(const struct elicitation_field *field, struct str value, struct error *error)
{
    OWNED_BUFFER(text);
    bool good = false;
    if (!json_decode_string(value, &text))
        error_set(error, "must be a string");
    else if (!is_within((double)str_utf8_count(buffer_str(&text)), field, KEY_MIN_LENGTH))
        error_set(error, "is too short or too long");
    else if (field->choices && !map_get(field->choices, buffer_str(&text)))
        error_set(error, "is none of the choices");
    else if (!elicitation_has_format(field->keys[KEY_FORMAT], buffer_str(&text)))
        error_set(error, "is not of the format asked for");
    else
        good = true;
    return good;
}

/* ---- lists of choices ---- */

static bool elicitation_check_list(struct elicitation_field *field, struct str value,
                                   struct error *error)
{
    struct str item;
    size_t position = 0;
    if (json_type(value) != JSON_ARRAY)
        return error_set(error, "must be a list");
    if (!is_within((double)json_count(value), field, KEY_MIN_ITEMS))
        return error_set(error, "has too few or too many items");
    if (!field->items)
        field->items = elicitation_field_create(field->keys[KEY_ITEMS]);
    while (json_next_element(value, &position, &item)) {
        if (!check_text(field->items, item, error))
            return false;
    }
    return true;
}

/* ---- all of them ---- */

/* Whether ElicitResult.content allows the value at all, for any form. */
static bool elicitation_is_plain(struct str value)
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

/* Whether `value` (JSON text) answers the field. Takes time by the length of the value, and once
 * by that of the schema. false: `error` has the requirement. */
static bool elicitation_field_check(struct elicitation_field *field, struct str value,
                                    struct error *error)
{
    struct str type = field->keys[KEY_TYPE];
    if (!elicitation_is_plain(value))
        return error_set(error, "must be a text, a number, a boolean or a list of texts");
    if (json_string_equals(type, STR("string")))
        return check_text(field, value, error);
    if (json_string_equals(type, STR("number")))
        return check_number(field, value, false, error);
    if (json_string_equals(type, STR("integer")))
        return check_number(field, value, true, error);
    if (json_string_equals(type, STR("array")))
        return elicitation_check_list(field, value, error);
    if (json_string_equals(type, STR("boolean")) && json_type(value) != JSON_TRUE &&
        json_type(value) != JSON_FALSE)
        return error_set(error, "must be true or false");
    return true; /* a type that no form of the protocol has is upstream's to judge */
}

/* The answer to a form: its members against the fields, and the required fields. */

/* The members of an object by their decoded names. */
struct names {
    struct map *map;    /* to `values` */
    struct str *values; /* NULL when there are none */
};

static void names_init(struct names *names, struct str object)
{
    struct str key, value;
    OWNED_BUFFER(name);
    size_t position = 0, count = 0, capacity = 0;
    names->map = map_create();
    names->values = NULL;
    if (json_type(object) == JSON_OBJECT)
        capacity = json_count(object);
    if (capacity > 0)
        names->values = memory_alloc_array(capacity, sizeof *names->values);
    while (count < capacity && json_next_member(object, &position, &key, &value)) {
        buffer_clear(&name);
        json_decode_string(str_slice(key.bytes - 1, key.length + 2), &name);
        names->values[count] = value;
        map_put(names->map, buffer_str(&name), &names->values[count++]);
    }
}

static void elicitation_names_finish(struct names *names)
{
    map_destroy(names->map, NULL);
    free(names->values);
}

/* `name` is JSON text; NULL when there is no such member. */
static const struct str *names_find(const struct names *names, struct str name)
{
    OWNED_BUFFER(text);
    const struct str *value = NULL;
    if (json_decode_string(name, &text))
        value = map_get(names->map, buffer_str(&text));
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

static bool elicitation_check_members(struct str schema, struct str content, struct error *error)
{
    bool is_closed = json_type(json_member(schema, "additionalProperties")) == JSON_FALSE;
    struct names properties;
    struct str key, value;
    size_t position = 0;
    bool good = true;
    names_init(&properties, json_member(schema, "properties"));
    while (good && json_next_member(content, &position, &key, &value))
        good = check_member(&properties, is_closed, key, value, error);
    elicitation_names_finish(&properties);
    return good;
}

static bool elicitation_check_required(struct str schema, struct str content, struct error *error)
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
    elicitation_names_finish(&given);
    return good;
}

bool elicitation_check_content(struct str schema, struct str content, struct error *error)
{
    struct str given = content.length > 0 ? content : STR("{}");
    if (json_type(given) != JSON_OBJECT)
        return error_set(error, "content must be an object");
    return elicitation_check_members(schema, given, error) &&
           elicitation_check_required(schema, given, error);
}

/* Checks a server's request for a message of a model. */

static bool elicitation_is_message(struct str message)
{
    struct str role = json_member(message, "role");
    enum json_type content = json_type(json_member(message, "content"));
    return (json_string_equals(role, STR("user")) || json_string_equals(role, STR("assistant"))) &&
           (content == JSON_OBJECT || content == JSON_ARRAY);
}

bool sampling_check_request(struct str params, struct error *error)
{
    struct str messages = json_member(params, "messages"), message;
    size_t position = 0;
    if (json_type(params) != JSON_OBJECT)
        return error_set(error, "params must be an object");
    if (json_type(messages) != JSON_ARRAY)
        return error_set(error, "params.messages must be an array");
    while (json_next_element(messages, &position, &message)) {
        if (!elicitation_is_message(message))
            return error_set(error, "each of params.messages must have a role and content");
    }
    return json_type(json_member(params, "maxTokens")) == JSON_NUMBER ||
           error_set(error, "params.maxTokens must be a number");
}

static const char *const actions[] = {"accept", "decline", "cancel"};

const char *elicitation_action_name(enum elicitation_action action)
{
    ASSERT_NUMBERS(action, <, sizeof actions / sizeof *actions);
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

static bool elicitation_has_text(struct str params, const char *key, struct error *error)
{
    return json_type(json_member(params, key)) == JSON_STRING ||
           error_set(error, "params.%s must be a string", key);
}

bool elicitation_check_request(struct str params, struct error *error)
{
    struct str mode = json_member(params, "mode");
    if (json_type(params) != JSON_OBJECT)
        return error_set(error, "params must be an object");
    if (!elicitation_has_text(params, "message", error))
        return false;
    if (elicitation_is_url(params))
        return elicitation_has_text(params, "url", error) &&
               elicitation_has_text(params, "elicitationId", error);
    if (mode.length > 0 && !json_string_equals(mode, STR("form")))
        return error_set(error, "params.mode must be form or url");
    return json_type(json_member(params, "requestedSchema")) == JSON_OBJECT ||
           error_set(error, "params.requestedSchema must be an object");
}
