/*
 * The canonical form of a JSON value, for digests: members sorted by key bytes (decoded),
 * no white space, strings with the fewest escapes, numbers as written. Two argument objects
 * that differ only in order, spacing or escapes have one form.
 */
#pragma once

#include <stdbool.h>

#include "taskgate/core/buffer.h"
#include "taskgate/core/digest.h"
#include "taskgate/core/str.h"

/* `value` has passed json_check(). Empty text counts as {}. */
void canonical_write(struct str value, struct buffer *out);
/* One string of the canonical form, with its quotes, of a decoded text. */
void canonical_write_text(struct str text, struct buffer *out);
/* SHA-256 hex of the canonical form. */
void canonical_digest(struct str value, char hex[DIGEST_HEX_BYTES]);
