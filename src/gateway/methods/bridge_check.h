/* Whether a legacy client's request is one that the gateway bridges to a modern server. */
#pragma once

#include "call/call.h"

/* Sets call->is_bridged: the source bridges legacy clients, and its server is known to speak the
 * modern era alone, or the session is one that the gateway has given out. */
void bridge_check(struct call *call);
/* The same once the server has refused `initialize`, with HTTP or JSON-RPC. True: it may speak the
 * modern era alone, which is asked now; then the call goes on with `next`, or is bridged. */
bool bridge_check_refused(struct call *call, call_step next);

/* Writes a session id of the gateway's own. */
void bridge_check_write_session(struct buffer *id);
