/*
 * The sessions at legacy servers that a worker has open for modern clients (MCP 2026-07-28 before
 * 2025-11-25). A session is of one source, owner, clientInfo and set of clientCapabilities, because
 * a legacy server learns the last two once. A call that the server may ask something has a session
 * alone, so that what the server asks on the session's own stream can only belong to that call. So
 * has a call with a log level. Calls without credentials get a session each, which ends with them.
 *
 * A session that nobody uses ends after ten minutes. On the worker's loop.
 */
#pragma once

#include "call/call.h"
#include "legacy_session.h"

/* So many sessions all workers have open together. When all are in use, calls are refused. */
#define SESSION_POOL_MOST 1000

/* Checks a session out for a bridged call, which keeps it until its end, then goes on; at once if
 * the call has one. Answers the call itself when the server opens none. */
void session_pool_then(struct call *call, call_step next);
/* The call's session; NULL without one. */
struct legacy_session *session_pool_of(const struct call *call);
/* Takes the session off the call: the caller gives it back. */
struct legacy_session *session_pool_take(struct call *call);
/* The session is not used any more: by the call that had it alone, or by one of several. */
void session_pool_give_back(struct legacy_session *session);
/* Nobody else gets the session: it ends when it is given back. */
void session_pool_retire(struct legacy_session *session);
/* Whether a call of this method may be asked something by the server meanwhile. */
bool session_pool_may_be_asked(const struct call *call);
/* Ends all sessions that nobody uses: the process ends. */
void session_pool_end_idle(struct gateway_worker *worker);
/* Ends all of them. */
void session_pool_close(struct gateway_worker *worker);
