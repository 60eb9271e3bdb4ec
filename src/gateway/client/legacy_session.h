/*
 * Legacy clients in front of a server that speaks the modern era alone (`sources[].bridge`). The
 * gateway is the legacy server: it gives out the sessions, answers what the modern era has not, and
 * lets the handlers of all methods judge the rest, which the relay then carries as modern requests.
 */
#pragma once

#include "call/call.h"

/* A request or notification in such a session, whose method is found. `handler` is that of the
 * method. */
void given_session_handle(struct call *call, call_step handler);
/* A JSON-RPC response of one. */
void given_session_handle_response(struct call *call);
/* A GET or DELETE of one. */
void given_session_handle_verb(struct call *call);

/* DELETE: the client ends its session. */

void session_end_handle(struct call *call);
