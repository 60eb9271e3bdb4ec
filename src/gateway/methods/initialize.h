/* `initialize`, and which legacy clients the gateway bridges to a modern server. */
#pragma once

#include "call/call.h"

/* Sets call->is_bridged: the source bridges legacy clients, and its server is known to speak the
 * modern era alone, or the session is one that the gateway has given out. */
void bridge_check(struct call *call);
/* Opens a session of a bridged client by asking the server what it is. */
void given_session_open(struct call *call);
/* Whether a session is used only with the token that opened it. A verified token names its subject,
 * to whom the session belongs; and where sessions are owners, tokens are not asked. */
bool given_session_is_bound(const struct call *call);
