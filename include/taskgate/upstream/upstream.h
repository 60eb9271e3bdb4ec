/*
 * One HTTP call to one MCP server, on a loop.
 *
 * Two implementations stand behind this header: a small HTTP/1.1 client on the loop's own
 * sockets for plain http, and libcurl for https and every unusual URL. With
 * THOUGHTGATE_UPSTREAM_CLIENT=curl in the environment ("auto" is the default) libcurl sends all
 * calls.
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
#include "taskgate/tls/client.h"

struct upstream_client;
struct upstream_call;

/* Idle connections are kept alive for the next calls: at most `max_idle_connections` per loop by
 * each implementation; libcurl keeps as many again for requests with an owner. Reads the
 * environment (see above); NULL on failure, an unknown value there among it. */
struct upstream_client *upstream_client_create(struct loop *loop, long max_idle_connections,
                                               struct error *error);
/* Cancels running calls, without callbacks. Not from inside a callback. NULL is allowed. */
void upstream_client_destroy(struct upstream_client *client);

/* Loads from files what the first call to this URL would have to load: not on a loop. Any
 * thread. */
bool upstream_prepare(const char *url, struct error *error);

struct upstream_request {
    const char *method;                /* "POST", "GET", "DELETE" */
    const char *url;                   /* absolute, http or https */
    struct tls_client *tls;            /* for https; NULL: the system's authorities; referenced */
    const struct http_header *headers; /* sent as they are, in this order; copied; see below */
    size_t header_count;
    struct str body; /* borrowed until the call ends or
                               upstream_call_has_sent() it; not copied */
    /* A connection that has carried a request of one owner carries no other's. Any text, copied;
     * empty: the request shares connections with all the others without an owner. */
    struct str owner;
    /* The connection is kept for other calls only after upstream_call_prove(): what a server sends
     * in place of the response to this request may be followed by it, and meet the next call. */
    bool needs_proof;
    int64_t connect_timeout_ms; /* 0: 5 s */
    int64_t silence_timeout_ms; /* no byte for so long ends the call; 0: never */
};

/*
 * Left out of `headers`, because they are the connection's own: Accept-Encoding, Connection,
 * Content-Length, Expect, Host, Keep-Alive, Proxy-…, TE, Trailer, Transfer-Encoding, Upgrade.
 * Nothing is added but Host and the body's length. A header that is not one (a line break or
 * NUL in it) fails the call before anything is sent.
 */

enum upstream_result {
    UPSTREAM_DONE,           /* the whole response was received */
    UPSTREAM_CONNECT_FAILED, /* refused, no route, DNS, TLS, time-out, bad request: nothing sent */
    UPSTREAM_SILENT,         /* the silence limit */
    UPSTREAM_GONE,           /* the connection broke after the request began to go out, or the
                                response is not reliable (its frame is malformed or ambiguous) */
};

/* All on the client's loop; NULL where nothing is to be told. Header names are lower case,
 * values as they came, repeated ones kept; headers live until `head` returns. `head` once, unless
 * the call ends without a response; `body` any number of times with bytes that live until it
 * returns; `end` exactly once, unless the call is cancelled; the call is gone when `end` returns. A
 * callback may cancel the call (then no further callback comes). Interim 1xx responses and trailers
 * are not shown. */
struct upstream_callbacks {
    void (*head)(void *context, int status, const struct http_header *headers, size_t count);
    void (*body)(void *context, struct str bytes);
    void (*end)(void *context, enum upstream_result result, const char *detail);
};

/* Starts; callbacks come from the loop, never from inside this function. May be called in
 * callbacks. A POST of which any byte was sent is never sent again: when a connection that
 * was kept alive breaks under it, the call is UPSTREAM_GONE. One of which nothing was sent,
 * and any GET or DELETE, goes out again on a new connection. */
struct upstream_call *upstream_call_start(struct upstream_client *client,
                                          const struct upstream_request *request,
                                          const struct upstream_callbacks *callbacks,
                                          void *context);
/* Drops the connection of a running call; no callback comes afterwards, and `context` and
 * the body may go. Does nothing from inside `end`. */
void upstream_call_cancel(struct upstream_call *call);
/* Back-pressure: while paused no `body` comes and no silence is counted; at most the bytes of
 * one read (64 KiB) are kept. Both are allowed in callbacks. */
void upstream_call_pause(struct upstream_call *call);
void upstream_call_resume(struct upstream_call *call);

/* The response to the request has come, and nothing else. In `body`. */
void upstream_call_prove(struct upstream_call *call);

/* Whether any byte of the request has gone out: the server may act upon it. */
bool upstream_call_has_begun(const struct upstream_call *call);

/* Whether the caller's body is no longer needed: it has all gone out and is not sent again, or
 * there is none. */
bool upstream_call_has_sent(const struct upstream_call *call);
/* Sets another silence limit, counted from now; 0: none. Not in `end`. */
void upstream_call_set_silence(struct upstream_call *call, int64_t silence_timeout_ms);
