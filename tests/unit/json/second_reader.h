/*
 * jansson behind a door of its own: its header and taskgate/json/text.h both define
 * JSON_OBJECT and its like, so that no file can include both.
 */
#pragma once

#include <stdbool.h>

#include "taskgate/core/str.h"

struct second_value;

struct second_refusal {
    char text[160];
    bool intended; /* values that jansson cannot hold, though RFC 8259 allows them */
};

/* NULL when jansson refuses the text; `refusal` (may be NULL) says why. */
struct second_value *second_read(struct str text, struct second_refusal *refusal);
/* Text that jansson accepts, though RFC 8259 forbids it: it loses a NUL after a number or word. */
bool second_overlooks(struct str text);
void second_free(struct second_value *value);
bool second_equals(const struct second_value *value, struct str text);
/* Members or elements; 0 for anything else. */
size_t second_count(const struct second_value *value);
bool second_is_object(const struct second_value *value);
/* The member `key` of an object; NULL if there is none. Borrowed. */
struct second_value *second_member(struct second_value *value, const char *key);
void second_set(struct second_value *object, const char *key, struct str text);
void second_delete(struct second_value *object, const char *key);
