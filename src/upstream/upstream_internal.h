/*
 * What stands behind the module's door, for the implementations of a call.
 *
 *     upstream.c         the door: which implementation a call goes by
 *     request_header.c   which headers of a request are sent, for both
 *     curl_….c           libcurl: https, and whatever the other does not take
 *     http1_….c          HTTP/1.1 on the loop's own sockets: plain http
 */
#pragma once

#include "taskgate/upstream/upstream.h"

/* When a request sets no limit of its own. */
#define UPSTREAM_CONNECT_TIMEOUT_MS 5000

/* Behind upstream_call_cancel(), …_pause() and …_resume(). */
struct upstream_implementation {
    void (*cancel)(struct upstream_call *call);
    void (*pause)(struct upstream_call *call);
    void (*resume)(struct upstream_call *call);
};

/* The first member of each implementation's call. */
struct upstream_call {
    const struct upstream_implementation *implementation;
};
