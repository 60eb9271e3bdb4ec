/*
 * Many globs at once: which is the first of a list that matches a name. Every glob is found
 * through one literal that its matches must hold, so that only those are tried whose literal
 * occurs in the name. Immutable once made, any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "taskgate/config/glob.h"

struct index;

/* Borrows the globs, which must outlive it. */
struct index *index_create(struct glob *const *globs, size_t count);
void index_destroy(struct index *index); /* NULL is allowed */
/* The lowest position of a glob that matches and whose `allowed` byte is set (NULL: all of
 * them are). Each glob is tried once at most for a long name, so that one that repeats a literal
 * costs no more than its length; for a short one nothing is allocated. */
bool index_first(const struct index *index, struct str name, const unsigned char *allowed,
                 size_t *position);
