/*
 * Calls by HTTP/1.1 on the loop's own sockets, as upstream.h says of the functions of like
 * names; plain http alone.
 */
#pragma once

#include "http1_url.h"
#include "upstream_internal.h"

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
