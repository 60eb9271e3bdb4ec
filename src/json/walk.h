/*
 * Stepping over JSON text that has been checked. `end` bounds every step; on text that was
 * not checked the result has no meaning but stays within bounds.
 */
#pragma once

#include "taskgate/core/str.h"

/* `at` is the first byte of a value (for walk_string: a quote); the result is behind it. */
const char *walk_string(const char *at, const char *end);
const char *walk_value(const char *at, const char *end);

/* Cutting a member out of the text of its object. */

/* The span to cut from `text` (checked JSON) so that `member`, a span inside it from a key's quote
 * to the end of the value, leaves a valid object: it with one joining comma and the white
 * space beside it. */
struct str splice_member(struct str text, struct str member);
