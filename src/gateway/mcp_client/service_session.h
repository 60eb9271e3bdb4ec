/*
 * A session of the gateway's own at upstream, opened with the source's static headers where
 * there is no client whose session could be used. Whoever opens one carries its headers, and
 * ends it.
 */
#pragma once

#include "rpc_call.h"

/* The params of its `initialize`. */
struct str service_session_params(void);
/* The message that follows upstream's answer. */
struct str service_session_initialized(void);
/* Static headers of the source; every request of the session brings them. */
void service_session_begin(struct headers *headers, const struct config_source *source);
/* Upstream has answered `initialize` with a result: takes the session's id and version over. */
void service_session_opened(struct headers *headers, const struct rpc_call_reply *reply);
/* Nothing is left behind at upstream: sends DELETE if it gave out a session. */
void service_session_end(struct gateway_worker *worker, struct snapshot *snapshot,
                         const struct config_source *source, const struct headers *headers);
