/*
 * Walking and editing JSON text in place, without a tree. Untouched parts keep their bytes.
 *
 * All functions but those that check expect text that json_check() or envelope_read() has
 * accepted. Any thread; nothing is owned.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "taskgate/core/buffer.h"
#include "taskgate/core/error.h"
#include "taskgate/core/str.h"

/* Whether `text` is one strict JSON value (RFC 8259, UTF-8, depth at most ENVELOPE_MAX_DEPTH,
 * no duplicate keys) with nothing but white space around it. */
bool json_check(struct str text, struct error *error);
/* The same with the place of the wrong byte apart from the message, for callers that report line
 * and column. */
bool json_check_at(struct str text, size_t *place, struct error *error);

/* Members of an object. `values` has room for `count`; `inner` is looked for in the value of
 * keys[outer]. */
struct json_wanted {
    const char *const *keys;
    size_t count;
    struct str *values;
    size_t outer;
    const struct json_wanted *inner; /* or NULL */
};
/* Checks `text` and finds members of the object that it is in the same pass, as json_members()
 * does. False also when it is no object. */
bool json_check_members(struct str text, const struct json_wanted *wanted);

enum json_type {
    JSON_NONE,
    JSON_OBJECT,
    JSON_ARRAY,
    JSON_STRING,
    JSON_NUMBER,
    JSON_TRUE,
    JSON_FALSE,
    JSON_NULL
};
/* JSON_NONE for empty text. */
enum json_type json_type(struct str value);

/* The value of a number, as near as a double has it. false: it is none. */
bool json_number(struct str value, double *number);

/* The value of the member `key` of an object (key given decoded), trimmed of white space;
 * empty when `object` is no object or has no such member. */
struct str json_member(struct str object, const char *key);
/* The values of several members in one walk: `values` has room for `count`. */
void json_members(struct str object, const char *const *keys, size_t count, struct str *values);
/* json_member() along a path: json_path(text, "result", "capabilities"). */
#define json_path(value, ...)                                                                      \
    json_path_of(value, (const char *const[]){__VA_ARGS__},                                        \
                 sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))
struct str json_path_of(struct str value, const char *const *keys, size_t count);

/* Iteration. Start with *position 0. `key` is the raw text between the quotes. */
bool json_next_member(struct str object, size_t *position, struct str *key, struct str *value);
bool json_next_element(struct str array, size_t *position, struct str *element);
/* json_next_element() and json_members() of the element in one walk. */
bool json_next_element_members(struct str array, size_t *position, struct str *element,
                               const char *const *keys, size_t count, struct str *values);
size_t json_count(struct str array_or_object);
/* Whether the array has a string of this decoded text; false where it is no array. */
bool json_has_text(struct str array, struct str text);

/* Decodes a JSON string's text (with its quotes) into `out`. False when it is no string. */
bool json_decode_string(struct str value, struct buffer *out);
/* The same as a new NUL-terminated text that the caller frees; NULL when it is no string.
 * An embedded NUL cuts nothing: `length` (may be NULL) tells. */
char *json_string_text(struct str value, size_t *length);
/* The same of a text without a NUL, which could be taken for a shorter one; NULL for any other. */
char *json_plain_text(struct str value);
/* Whether a JSON string equals `text` once decoded. */
bool json_string_equals(struct str value, struct str text);

/* Writes `object` with the member `key` set to the JSON text `value`: replaced where it
 * stands, else added at the end. An empty or non-object `object` counts as {}. */
void json_write_with_member(struct buffer *out, struct str object, const char *key,
                            struct str value);
/* The same of the member `key` of its member `outer`. */
void json_write_with_inner(struct buffer *out, struct str object, const char *outer,
                           const char *key, struct str value);
/* Copies the text of a JSON string, which is cut to `size`; of anything else: "". */
void json_copy_text(char *to, size_t size, struct str value);
/* Several at once, without a walk: `old` is the value that json_member() or json_members() has
 * found in this very text, empty for a member that is added. */
struct json_change {
    const char *key;
    struct str old, value;
};
void json_write_changed(struct buffer *out, struct str object, const struct json_change *changes,
                        size_t count);
/* Writes `object` without the member `key`. */
void json_write_without_member(struct buffer *out, struct str object, const char *key);
/* Sets the member `key` of `object`, or takes it out when `value` is empty. */
void json_set_member(struct buffer *object, const char *key, struct str value);
/* Writes the members of `object` but those of these keys, in their order, without the white space
 * between them. An empty or non-object `object` counts as {}. */
void json_write_other_members(struct buffer *out, struct str object, const char *const *keys,
                              size_t count);
/* The same with the members whose key, once decoded, does not begin with `prefix`. */
void json_write_members_outside(struct buffer *out, struct str object, struct str prefix);
