/*
 * The era of a request, once its envelope is read: which dialect the call gets, and the refusal of
 * a modern request that is incomplete or disagrees with its headers (MCP 2026-07-28, basic
 * "Requests", transports/streamable-http "Server Validation").
 */
#pragma once

#include "call/call.h"

/* Sets the call's dialect, takes the headers of the other era out of the request, and goes on with
 * `next`, at once or when the server has been asked what it speaks; or answers the call: it is
 * refused, or it is a modern notification, which means nothing here. */
void era_check_then(struct call *call, call_step next);
/* Whether modern clients are served: by the server, or by the bridge to it. */
bool era_check_serves_modern(const struct call *call);
/* Whether the source has GET and DELETE, which the modern era does not have. */
bool era_check_has_sessions(const struct call *call);
