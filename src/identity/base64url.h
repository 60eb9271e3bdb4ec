/*
 * Base64url as JOSE writes it (RFC 7515 §2): no padding, no white space, and one spelling for each
 * value. Any thread.
 */
#pragma once

#include <stdbool.h>

#include "taskgate/core/buffer.h"
#include "taskgate/core/str.h"

/* Appends the decoded bytes. False, with nothing appended, for a character that is none of the
 * alphabet, a length that no value has, or bits left over that are not zero: a second spelling of
 * one token would be a second token to a cache. */
bool base64url_decode(struct str text, struct buffer *out);
void base64url_encode(struct str bytes, struct buffer *out);
