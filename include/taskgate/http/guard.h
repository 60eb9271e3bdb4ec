/*
 * The checks of Host and Origin: the defence of a local port against web pages (DNS rebinding,
 * cross-site requests). Behaviour 3.2. Any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "taskgate/http/server.h"

/* "localhost", "127.x.y.z" or "[::1]", with or without a port. */
bool http_guard_is_loopback_name(struct str authority);
/* On a connection to a loopback address Host must be a loopback name or one of `allowed`; with
 * `allowed` given, on any connection. Allowed names match with or without their port. */
bool http_guard_allows_host(const struct http_exchange *exchange, char *const *allowed,
                            size_t allowed_count);
/* An Origin, when present, must be a loopback one or stand in `allowed`, whole; of several, each.
 */
bool http_guard_allows_origin(const struct http_exchange *exchange, char *const *allowed,
                              size_t allowed_count);
