/*
 * Shared by the door of the module and the implementations of a call.
 *
 *     upstream.c         the door: which implementation a call goes by
 *     request_header.c   which headers of a request are sent, for both
 *     curl_….c           libcurl: https, and whatever the other does not take
 *     http1_….c          HTTP/1.1 on the loop's own sockets: plain http
 */
#pragma once

#include <stdbool.h>

#include "taskgate/http/server.h"
#include "taskgate/upstream/upstream.h"

/* When a request sets no limit of its own. */
#define UPSTREAM_CONNECT_TIMEOUT_MS 5000

/* Behind the upstream_call_…() of the same name. */
struct upstream_implementation {
    void (*cancel)(struct upstream_call *call);
    void (*pause)(struct upstream_call *call);
    void (*resume)(struct upstream_call *call);
    void (*prove)(struct upstream_call *call);
    bool (*has_begun)(const struct upstream_call *call);
    bool (*has_sent)(const struct upstream_call *call);
    void (*hand_over)(struct upstream_call *call, const struct upstream_callbacks *callbacks,
                      void *context);
    void (*set_silence)(struct upstream_call *call, int64_t silence_timeout_ms);
};

/* The first member of each implementation's call. */
struct upstream_call {
    const struct upstream_implementation *implementation;
};

/*
 * The headers of a request that are sent (see upstream.h), for every implementation alike.
 */

/* Why a header cannot be sent, for `detail`. */
#define REQUEST_HEADER_MALFORMED "a request header is malformed and was not sent"

/* A token, and a value without line breaks and NUL. */
bool request_header_is_valid(const struct http_header *header);
/* The connection's own, or what makes a reply unreadable to us: not the caller's. */
bool request_header_is_left_out(const struct http_header *header);
