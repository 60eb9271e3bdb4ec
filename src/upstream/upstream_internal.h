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

#include "taskgate/core/str.h"
#include "taskgate/http/server.h"
#include "taskgate/upstream/upstream.h"

/* When a request sets no limit of its own. */
#define UPSTREAM_CONNECT_TIMEOUT_MS 5000
/* The kernel finds a server that has vanished silently after about a minute. Streams, and calls
 * that have become tasks, have no limit of silence. */
#define UPSTREAM_KEEPALIVE_IDLE_S 30
#define UPSTREAM_KEEPALIVE_INTERVAL_S 10
#define UPSTREAM_KEEPALIVE_PROBES 3

/* Behind the upstream_call_…() of the same name. */
struct upstream_implementation {
    void (*cancel)(struct upstream_call *call);
    void (*pause)(struct upstream_call *call);
    void (*resume)(struct upstream_call *call);
    void (*prove)(struct upstream_call *call);
    bool (*has_begun)(const struct upstream_call *call);
    bool (*has_sent)(const struct upstream_call *call);
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
bool request_header_is_token(struct str name);
bool request_header_has_valid_text(const struct http_header *header);
/* What a parser has read under a name of the table is valid. */
static inline bool request_header_is_valid(const struct http_header *header)
{
    return (header->is_clean && http_name_has_row((enum http_name)header->known)) ||
           request_header_has_valid_text(header);
}
/* The connection's own, or what makes a reply unreadable to us: not the caller's. */
bool request_header_is_left_out(const struct http_header *header);

/* ---- http1_client.c, http1_call.c: plain http, on the loop's own sockets ---- */

/* The parts of a plain http URL. */
struct http1_url {
    struct str authority; /* as it stands in the URL: what connections are kept under */
    struct str host;      /* a name or an address, without brackets */
    struct str host_line; /* for the Host header: without the port that is the default */
    struct str target;    /* path and query; empty stands for "/" */
    uint16_t port;
};

/* A view of `text`. false: not http, or with anything out of the ordinary in it (user names,
 * escapes in the host, a fragment, …). */
bool http1_url_read(struct http1_url *url, const char *text);

struct http1_client;

struct http1_client *http1_client_create(struct loop *loop, size_t max_idle_connections);
void http1_client_destroy(struct http1_client *client);
/* As http1_url_read(); what it gives is good until the next such call. */
bool http1_client_read_url(struct http1_client *client, struct http1_url *url, const char *text);
/* `url` is request->url, read. */
struct upstream_call *http1_call_start(struct http1_client *client, const struct http1_url *url,
                                       const struct upstream_request *request,
                                       const struct upstream_callbacks *callbacks, void *context);
/* One that fails from the loop, with this `detail`. */
struct upstream_call *http1_call_refuse(struct http1_client *client, const char *detail,
                                        const struct upstream_callbacks *callbacks, void *context);

/* ---- curl_client.c, curl_call.c: what the other does not take ---- */

struct curl_client;

struct curl_client *curl_client_create(struct loop *loop, long max_idle_connections,
                                       struct error *error);
void curl_client_destroy(struct curl_client *client);
struct upstream_call *curl_call_start(struct curl_client *client,
                                      const struct upstream_request *request,
                                      const struct upstream_callbacks *callbacks, void *context);
