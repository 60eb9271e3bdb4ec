/*
 * The sentence that a rule has for the people who decide (`show.summary`): a text with {path},
 * filled from the arguments of a call. `{{` and `}}` stand for single braces.
 *
 * Any thread; nothing is owned.
 */
#pragma once

#include <stdbool.h>

#include "taskgate/core/buffer.h"
#include "taskgate/core/error.h"
#include "taskgate/core/str.h"

/* Of one value, and of the whole sentence. Longer ones end with "…". */
#define SUMMARY_VALUE_BYTES ((size_t)1000)
#define SUMMARY_BYTES ((size_t)4000)

/* Whether every { has its }, with a dot path between them. */
bool summary_check(struct str text, struct error *error);
/* Appends the sentence: a text bare, another value as JSON, nothing for a value that is missing
 * (behaviour 10.4). A path looks into every element of an array on its way, and what it finds
 * stands with commas between. `arguments`: a JSON object on one line, in which values that people
 * must not see are hidden already; `text` has passed summary_check(). */
void summary_write(struct buffer *out, struct str text, struct str arguments);
