/* Relaying for a legacy client whose server speaks the modern era alone. */
#pragma once

#include "relay.h"

/* As relay_start(). Of the options those count that rewrite a response, or stand in for one:
 * nothing streams through, so nothing is detached. */
void relay_bridged_start(struct call *call, const struct relay_options *options);
/* A reply without a JSON-RPC response is the client's answer: a refusal for want of credentials
 * goes down as it is. */
void relay_bridged_answer_failure(struct call *call, const struct rpc_call_reply *reply);
