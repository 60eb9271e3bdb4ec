/*
 * A session of the gateway's own at a server, opened with the source's static headers when no
 * client's session can be used. The opener keeps its headers, and ends it.
 */
#pragma once

#include "rpc_call.h"

/* The params of its `initialize`. */
struct str service_session_params(void);
/* The message that follows the server's answer. */
struct str service_session_initialized(void);
/* Whether a request of a legacy client needs one: its headers name no session, as a client with a
 * token may leave it out, and it is not known that the server has none. */
bool service_session_is_wanted(struct gateway_worker *worker, const struct config_source *source,
                               const struct headers *headers);
/* Sets the source's static headers, which every request of the session has. */
void service_session_begin(struct headers *headers, const struct config_source *source);
/* The server has answered `initialize` with a result: takes the session's id and version from it.
 */
void service_session_opened(struct headers *headers, const struct rpc_call_reply *reply);
/* Sends DELETE if the server gave out a session. */
void service_session_end(struct gateway_worker *worker, struct snapshot *snapshot,
                         const struct config_source *source, const struct headers *headers);
