/*
 * Many globs at once: finds the first of a list that matches a name. Every glob has one literal
 * that its matches must contain. Only globs with a literal in the name are tried. Immutable once
 * made, any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "taskgate/config/glob.h"

struct index;

/* Borrows the globs, which must outlive it. */
struct index *index_create(struct glob *const *globs, size_t count);
void index_destroy(struct index *index); /* NULL is allowed */
/* The globs that count; NULL: all of them do. */
struct index_filter {
    const unsigned char *allowed;                       /* a byte that is set for each; or NULL */
    bool (*fits)(const void *context, size_t position); /* asked of those that match; or NULL */
    const void *context;
};
/* The lowest position of a glob that matches and counts. Each glob is tried at most once for a long
 * name, so that a name with a repeated literal costs time by its length only. A short name needs no
 * allocation. */
bool index_first(const struct index *index, struct str name, const struct index_filter *filter,
                 size_t *position);
