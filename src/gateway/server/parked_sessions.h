/*
 * Sessions of the gateway's own, opened with a source's static headers, that the server refuses to
 * end (MCP 2025-11-25, transports: 405). The next fetch takes one of them, instead of one more. On
 * the worker's loop.
 */
#pragma once

#include "rpc_call.h"

/* Ends the session of these headers, which are copied. If the server refuses, it is kept. */
void parked_sessions_end(struct gateway_worker *worker, struct snapshot *snapshot,
                         const struct config_source *source, const struct headers *headers);
/* Takes one that was kept for this server and these static headers, with all its headers. The
 * server may have forgotten it. false: there is none. */
bool parked_sessions_take(struct gateway_worker *worker, const struct config_source *source,
                          struct headers *headers);
/* Forgets all of the worker's. */
void parked_sessions_finish(struct gateway_worker *worker);
