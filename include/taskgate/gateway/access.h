/*
 * Which sites may talk to us: the checks of Host and Origin that keep a web page in someone's
 * browser away from a gateway on the same machine (DNS rebinding). One rule for both ports.
 * Contract "Proxy", "Admin". Pure; any thread.
 */
#pragma once

#include <stdbool.h>

#include "taskgate/config/config.h"
#include "taskgate/core/str.h"

/* Whether `host` (the Host header) may be served. On a connection to a loopback address: a
 * loopback name (localhost, 127.0.0.0/8, [::1], any port) or one of `allowed`. On any other:
 * one of `allowed`, or anything when that is empty. An allowed entry without a port fits any
 * port. */
bool access_host_allowed(struct str host, bool is_loopback, const struct config_strings *allowed);

/* Whether a request with this Origin header may be served. Absent (bytes == NULL): yes. Else
 * an http or https origin of a loopback name, or one of `allowed`, whole. */
bool access_origin_allowed(struct str origin, const struct config_strings *allowed);
