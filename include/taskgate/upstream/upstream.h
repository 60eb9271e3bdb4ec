/*
 * One HTTP call to one MCP server, by libcurl, on a loop. A second implementation may stand
 * behind this header later.
 *
 * A client belongs to one loop and keeps connections alive between calls. Nothing blocks:
 * DNS is resolved off the loop. Redirects are not followed, proxies of the environment are
 * not used, Accept-Encoding is never sent.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "taskgate/core/error.h"
#include "taskgate/core/str.h"
#include "taskgate/http/server.h"
#include "taskgate/loop/loop.h"

struct upstream_client;
struct upstream_call;

/* `max_idle_connections` per loop. NULL on failure. */
struct upstream_client *upstream_client_create(struct loop *loop, long max_idle_connections,
                                               struct error *error);
/* Cancels what is running, without callbacks. NULL is allowed. */
void upstream_client_destroy(struct upstream_client *client);

struct upstream_request {
    const char *method;                /* "POST", "GET", "DELETE" */
    const char *url;                   /* absolute, http or https */
    const struct http_header *headers; /* sent as they are, in this order; copied */
    size_t header_count;
    struct str body;            /* borrowed until the call ends; not copied */
    int64_t connect_timeout_ms; /* 0: 5 s */
    int64_t silence_timeout_ms; /* no byte for so long ends the call; 0: never */
};

enum upstream_result {
    UPSTREAM_DONE,           /* the whole response was received */
    UPSTREAM_CONNECT_FAILED, /* refused, no route, DNS, TLS, connect time-out: nothing sent */
    UPSTREAM_SILENT,         /* the silence limit */
    UPSTREAM_GONE,           /* the connection broke after the request began to go out */
};

/* All on the client's loop. `head` once, unless the call ends without a response; `body` any
 * number of times with bytes that live until it returns; `end` exactly once, unless the
 * call is cancelled; the call is gone when `end` returns. A callback may cancel the call
 * (then no further callback comes). Interim 1xx responses are not shown. */
struct upstream_callbacks {
    void (*head)(void *context, int status, const struct http_header *headers, size_t count);
    void (*body)(void *context, struct str bytes);
    void (*end)(void *context, enum upstream_result result, const char *detail);
};

/* Starts; callbacks come from the loop, never from inside this function. A connection that
 * was kept alive and turns out to be closed before any byte of a response is retried once on
 * a new one only if nothing of the request can have been processed. */
struct upstream_call *upstream_call_start(struct upstream_client *client,
                                          const struct upstream_request *request,
                                          const struct upstream_callbacks *callbacks,
                                          void *context);
/* Drops the connection of a running call; no callback comes afterwards. */
void upstream_call_cancel(struct upstream_call *call);
/* Back-pressure: while paused no `body` comes and no silence is counted. */
void upstream_call_pause(struct upstream_call *call);
void upstream_call_resume(struct upstream_call *call);
