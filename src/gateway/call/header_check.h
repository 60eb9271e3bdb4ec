/*
 * Headers that two readers could read in two ways. The gateway judges a request by its first
 * Authorization and by its bytes as UTF-8, and the server must read the same (design invariant 1).
 */
#pragma once

#include "taskgate/http/server.h"

/* The header that stands there more than once and must not (who asks, in which session, how
 * the body is to be read), lower case; NULL when all is clear. */
const char *header_check_repeated_header(const struct http_exchange *exchange);
/* Whether the body is announced as JSON in UTF-8 without a coding, in words that everybody
 * reads alike. */
bool header_check_is_plain_json(const struct http_exchange *exchange);
