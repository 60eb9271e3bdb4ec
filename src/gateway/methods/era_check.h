/*
 * The era of a request, once its envelope is read: which dialect the call gets, and the refusal of
 * a modern request that is incomplete or disagrees with its headers (MCP 2026-07-28, basic
 * "Requests", transports/streamable-http "Server Validation").
 */
#pragma once

#include "request/call.h"

/* Sets the call's dialect, and takes the headers of the other era out of the request. False when
 * the call is answered: it is refused, or it is a modern notification, which means nothing here. */
bool era_check_passes(struct call *call);
/* The same for GET and DELETE, which the modern era does not have. */
bool era_check_passes_verb(struct call *call);
