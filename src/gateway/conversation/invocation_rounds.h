/*
 * Rounds of a modern server in a call that the gateway runs: the server requires input, the client
 * of the task is asked, and the server gets the call again with the answers. All rounds are one
 * call: it is sent anew only when the server has said that it is to be. On the invocation's loop.
 */
#pragma once

#include "invocation.h"
#include "rounds.h"

/* EVENT_ROUND. A legacy client is asked as its era has it, and each question has a clock of its
 * own. */
void invocation_rounds_ask(struct invocation *invocation, struct str requests,
                           bool has_legacy_client);
/* EVENT_LOST, with another reason than the reply. */
void invocation_rounds_lost(struct invocation *invocation, enum lost_reason reason);
/* The client has answered something: sends the call again if that was all. */
void invocation_rounds_answered(struct invocation *invocation);
/* The same in two steps. false: it was not all. */
bool invocation_rounds_take(struct invocation *invocation, struct rounds_taken *taken);
/* Sends the call again, unless the rules in force forbid it. */
void invocation_rounds_send(struct invocation *invocation, struct str answers);
/* Tells the clients of the task that what is asked of them has changed. */
void invocation_rounds_tell(const struct invocation *invocation);
