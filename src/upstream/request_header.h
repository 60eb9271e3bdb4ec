/*
 * The headers of a request that are sent (see upstream.h), for every implementation alike.
 */
#pragma once

#include <stdbool.h>

#include "taskgate/http/server.h"

/* Why a header cannot be sent, for `detail`. */
#define REQUEST_HEADER_MALFORMED "a request header is malformed and was not sent"

/* A token, and a value without line breaks and NUL. */
bool request_header_is_valid(const struct http_header *header);
/* The connection's own, or what makes a reply unreadable to us: not the caller's. */
bool request_header_is_left_out(const struct http_header *header);
