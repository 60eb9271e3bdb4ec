/*
 * URIs for rules: one spelling for all URIs that RFC 3986 calls equivalent.
 *
 * Source: RFC 3986 §6.2.2 and §5.2.4. Scheme and host in lower case, escapes of unreserved
 * characters decoded and all others in upper case, dot segments of the path removed. A text
 * that is not a URI is treated as a path, and a "%" that begins no escape as %25. Not unified:
 * escapes of reserved characters (%2F), doubled slashes, default ports, and spellings that a single
 * scheme allows. Any thread.
 */
#pragma once

#include "taskgate/core/buffer.h"
#include "taskgate/core/str.h"

/* Appends the one spelling. Normalizing it again changes nothing. */
void uri_normalize(struct buffer *out, struct str uri);
