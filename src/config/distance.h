/* "Did you mean": the word of a list that is nearest to one that was mistyped. */
#pragma once

#include <stddef.h>

#include "document.h"

/* Single-character insertions, removals, changes and swaps of neighbours, up to `limit`;
 * anything further is limit + 1. */
size_t distance_between(const char *a, const char *b, size_t limit);
/* The nearest of `words`, near enough to be meant, or NULL. */
const char *distance_nearest(const char *word, const char *const *words, size_t count);
/* "did you mean "…"?", else `others` with all of the words behind it. The caller frees. */
char *distance_suggest(const char *word, const char *const *words, size_t count,
                       const char *others);

/*
 * Keys that may be written in two ways: brought into one before the tree is read.
 */

/* `auth: {upstream: {exchange: {...}}}` becomes `auth: {upstream: exchange, exchange: {...}}`. Any
 * other mapping stays, and is refused when it is read. */
void spelling_normalize(struct node *root);
