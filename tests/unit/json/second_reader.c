/* jansson as the second opinion. */
#include "second_reader.h"

#include <jansson.h>
#include <stdio.h>

static json_t *load(struct str text, json_error_t *error)
{
    const size_t flags = JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL;
    return json_loadb(text.length ? text.bytes : "", text.length, flags, error);
}

static json_t *theirs(const struct second_value *value)
{
    return (json_t *)value;
}

struct second_value *second_read(struct str text, struct second_refusal *refusal)
{
    json_error_t error = {.text = ""};
    json_t *value = load(text, &error);
    if (!value && refusal) {
        enum json_error_code code = json_error_code(&error);
        refusal->intended =
            code == json_error_numeric_overflow || code == json_error_null_byte_in_key;
        snprintf(refusal->text, sizeof refusal->text, "%s", error.text);
    }
    return (struct second_value *)value;
}

bool second_overlooks(struct str text)
{
    for (size_t i = 1; i < text.length; i++) {
        char before = text.bytes[i - 1];
        if (text.bytes[i] == '\0' &&
            ((before >= '0' && before <= '9') || (before >= 'a' && before <= 'z')))
            return true;
    }
    return false;
}

void second_free(struct second_value *value)
{
    json_decref(theirs(value));
}

bool second_equals(const struct second_value *value, struct str text)
{
    json_t *other = load(text, NULL);
    bool equal = other && json_equal(theirs(value), other);
    json_decref(other);
    return equal;
}

size_t second_count(const struct second_value *value)
{
    return json_is_object(theirs(value)) ? json_object_size(theirs(value))
                                         : json_array_size(theirs(value));
}

bool second_is_object(const struct second_value *value)
{
    return json_is_object(theirs(value));
}

struct second_value *second_member(struct second_value *value, const char *key)
{
    return (struct second_value *)json_object_get(theirs(value), key);
}

void second_set(struct second_value *object, const char *key, struct str text)
{
    json_object_set_new(theirs(object), key, load(text, NULL));
}

void second_delete(struct second_value *object, const char *key)
{
    json_object_del(theirs(object), key);
}
