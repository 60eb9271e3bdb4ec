/* A value against a field. A server chooses the length of the schema, and a client the length of
 * the answer, so each of them is walked only once. */
#include "elicitation_field.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "elicitation_format.h"
#include "taskgate/core/buffer.h"
#include "taskgate/core/map.h"
#include "taskgate/core/memory.h"
#include "taskgate/json/text.h"

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
    struct buffer name;
    buffer_init(&name);
    if (json_decode_string(text, &name))
        map_put(choices, buffer_str(&name), choices);
    buffer_finish(&name);
}

/* The texts of `enum`, and each `const` of `oneOf` and `anyOf`. */
static void read_choices(struct elicitation_field *field)
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
static void read_bounds(struct elicitation_field *field)
{
    for (enum key key = FIRST_BOUND; key < KEY_COUNT; key++) {
        bool is_lower = (key - FIRST_BOUND) % 2 == 0;
        if (!read_number(field->keys[key], &field->bounds[key]))
            field->bounds[key] = is_lower ? -HUGE_VAL : HUGE_VAL;
    }
}

struct elicitation_field *elicitation_field_create(struct str schema)
{
    struct elicitation_field *field = memory_alloc(sizeof *field);
    json_members(schema, key_names, KEY_COUNT, field->keys);
    read_choices(field);
    read_bounds(field);
    return field;
}

void elicitation_field_destroy(struct elicitation_field *field)
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
static bool is_whole(double number)
{
    const double exact = 9007199254740992.0;
    return number <= -exact || number >= exact || (double)(int64_t)number == number;
}

static bool check_number(const struct elicitation_field *field, struct str value, bool is_integer,
                         struct error *error)
{
    double number;
    if (!read_number(value, &number))
        return error_set(error, is_integer ? "must be an integer" : "must be a number");
    if (is_integer && !is_whole(number))
        return error_set(error, "must be an integer");
    return is_within(number, field, KEY_MINIMUM) || error_set(error, "is out of range");
}

/* ---- texts ---- */

static size_t count_characters(struct str text)
{
    size_t count = 0;
    for (size_t i = 0; i < text.length; i++)
        count += ((unsigned char)text.bytes[i] & 0xC0) != 0x80;
    return count;
}

static bool check_text(const struct elicitation_field *field, struct str value, struct error *error)
{
    struct buffer text;
    buffer_init(&text);
    bool good = false;
    if (!json_decode_string(value, &text))
        error_set(error, "must be a string");
    else if (!is_within((double)count_characters(buffer_str(&text)), field, KEY_MIN_LENGTH))
        error_set(error, "is too short or too long");
    else if (field->choices && !map_get(field->choices, buffer_str(&text)))
        error_set(error, "is none of the choices");
    else if (!elicitation_has_format(field->keys[KEY_FORMAT], buffer_str(&text)))
        error_set(error, "is not of the format asked for");
    else
        good = true;
    buffer_finish(&text);
    return good;
}

/* ---- lists of choices ---- */

static bool check_list(struct elicitation_field *field, struct str value, struct error *error)
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

bool elicitation_field_check(struct elicitation_field *field, struct str value, struct error *error)
{
    struct str type = field->keys[KEY_TYPE];
    if (!is_plain(value))
        return error_set(error, "must be a text, a number, a boolean or a list of texts");
    if (json_string_equals(type, STR("string")))
        return check_text(field, value, error);
    if (json_string_equals(type, STR("number")))
        return check_number(field, value, false, error);
    if (json_string_equals(type, STR("integer")))
        return check_number(field, value, true, error);
    if (json_string_equals(type, STR("array")))
        return check_list(field, value, error);
    if (json_string_equals(type, STR("boolean")) && json_type(value) != JSON_TRUE &&
        json_type(value) != JSON_FALSE)
        return error_set(error, "must be true or false");
    return true; /* a type that no form of the protocol has is upstream's to judge */
}
