/*
 * Calls by HTTP/1.1 on the loop's own sockets, as upstream.h says of the functions of like
 * names; plain http alone.
 */
#pragma once

#include "taskgate/core/str.h"
#include "upstream_internal.h"

/*
 * The parts of a plain http URL.
 */

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
