/*
 * Modern clients (MCP 2026-07-28) before a server that knows the legacy era alone: their calls go
 * up in sessions of the gateway's, and what the server asks in a call comes back as a result that
 * requires input. On the worker's loop.
 */
#pragma once

#include "call/call.h"
#include "relay/relay.h"

/* As relay_start(), of any call: a bridged one goes up in a session. Of the options it uses
 * `silence_ms`, `rewrite`, `recall`, `replace_error` and `failed`. A bridged call with a
 * requestState goes on with the call that it was given in. */
void bridge_down_start(struct call *call, const struct relay_options *options);
/* Whether the call goes on with one that is open at the server: its requestState says so, and is
 * this call's. */
bool bridge_down_goes_on(const struct call *call);
/* The call that it goes on with may not go on: it is given up, and this one refused. */
void bridge_down_refuse_to_go_on(struct call *call);
/* Answers `server/discover` of a bridged call. */
void bridge_down_discover(struct call *call);

void bridge_down_worker_init(struct gateway_worker *worker);
/* The process ends soon: what nobody uses ends. */
void bridge_down_shut_down(struct gateway_worker *worker);
void bridge_down_worker_close(struct gateway_worker *worker);
