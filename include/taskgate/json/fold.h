/*
 * Names as a lenient reader compares them: without case, and without the difference between
 * characters that look alike.
 *
 * A name folds by Unicode: full case folding of the canonical decomposition ("É" to "e" and its
 * accent, "ß" to "ss", the kelvin sign to "k"). Beyond that, what is compatible with ASCII text
 * folds to it (full width, ligatures, mathematical letters), i with a dot and without one to
 * "i", and characters that are not shown to nothing. Not covered: composed Hangul, the order of
 * several accents, and letters of two scripts that merely look alike. Any thread.
 */
#pragma once

#include <stdbool.h>

#include "taskgate/core/buffer.h"
#include "taskgate/core/error.h"
#include "taskgate/core/str.h"

/* No text folds to more than so many times its bytes. */
#define FOLD_GROWTH 3

/* Folds the first character of `rest` and steps over it. `rest` must not be empty.
 * The result points into `rest` or to constant memory. Bytes that are no UTF-8 stay as they are. */
struct str fold_next(struct str *rest);
/* Folding what was folded changes nothing. */
void fold_append(struct buffer *out, struct str text);
/* Whether folding would change nothing of it. */
bool fold_is_folded(struct str text);

/* Whether an object anywhere in `json`, which json_check() has accepted, has two keys that fold
 * alike; `error` (may be NULL) says where. Time is proportional to the text, whatever it holds. */
bool fold_finds_variants(struct str json, struct error *error);
