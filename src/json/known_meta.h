/*
 * `params._meta` objects that were read before. Modern clients send the same one in each request,
 * but for a progress token or a trace: bytes that were accepted at this place before need no second
 * reading, only what stands in these values does. Thread-local; nothing is allocated.
 */
#pragma once

#include <stdbool.h>

#include "scanner.h"
#include "taskgate/core/str.h"
#include "taskgate/json/envelope.h"

#define META_SCALARS 4
#define META_MEMBERS 8

/* Strings and numbers of the object itself that may differ the next time, in their order. */
struct meta_scalars {
    size_t count;
    struct str values[META_SCALARS];
};

/* A value that the envelope has taken. */
struct meta_member {
    size_t offset; /* of its struct str in the envelope */
    struct str span;
};

/* Whether a value that begins like this is a string or a number. */
bool meta_is_scalar(char first);

/* Takes note of a value, unless there are enough. */
void meta_scalars_add(struct meta_scalars *scalars, struct str value);

/* Whether the object at `at` is known. Then the envelope has its members, and `*end` is behind it,
 * or NULL where a value is unreadable, which the scanner has said. */
bool known_meta_recall(struct scanner *scanner, const char *at, struct envelope *envelope,
                       const char **end);

/* Remembers an object that was read without a fault, in place of the oldest. `members` are at most
 * META_MEMBERS parts of `text`. */
void known_meta_keep(struct str text, const struct meta_scalars *scalars,
                     const struct meta_member *members, size_t count);
