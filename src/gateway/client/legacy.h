/*
 * Requests of legacy clients at servers that speak the modern era alone. The server's progress and
 * log messages go down on the client's stream, and what the server requires is asked there. A
 * client that leaves closes the server's stream, which is the cancellation there. On the call's
 * loop.
 */
#pragma once

#include "conversation/relay.h"

/* Of the sessions that the gateway gives out. A session keeps its kind, whatever its server becomes
 * meanwhile. */
#define GIVEN_SESSION_PREFIX "tg-bridge-"
/* Sets call->carrier: the source bridges legacy clients, and its server is known to speak the
 * modern era alone, or the session is one that the gateway has given out. */
void bridge_check(struct call *call);

/* Of such calls, whose session is known: call->declared. */
extern const struct call_carrier legacy_client_carrier;

/* Answers a call with a reply that has no JSON-RPC response: a refusal for want of credentials goes
 * down as it is. */
void legacy_client_answer_failure(struct call *call, const struct exchange_reply *reply);
