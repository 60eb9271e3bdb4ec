/*
 * The origin of a browser's request: its Host and its Origin. A request that a browser lets another
 * site send has another Origin, or none of the headers that a script of that site may not set.
 */
#pragma once

#include "internal.h"

/* Whether browsers come by https: admin.public_url says so. */
bool site_is_https(const struct config *config);
/* Whether the Host is served here, and a present Origin may use the endpoint. If not, the request
 * is answered. Probes come by pod address: `any_host`. */
bool site_check(const struct request *request, bool any_host);
/* Whether a page of admin.public_url has sent the request, and no other: it has X-Taskgate: 1 and
 * that Origin. */
bool site_is_own_page(const struct request *request);
/* Whether the request has a header that browsers add by themselves to what a page sends. */
bool site_is_browser(const struct http_exchange *exchange);
