/*
 * A claim that follows a vote: a call that is likely to be approved becomes executing in the commit
 * of its approval, where this process holds what the call needs, so it waits for one commit less.
 * If the vote does not approve the call, the store refuses the claim, and nothing has happened.
 *
 * The rules and the tool are compared with what was approved before the claim is queued, and again
 * before the first byte is sent (design invariants 4 and 5). On the loop of `worker`.
 */
#pragma once

#include "taskgate/store/store.h"

struct gateway_worker;

/* Whether this worker holds what the call needs, and nothing of it is under way. */
bool claim_is_possible(const struct gateway_worker *worker, struct str id);
/* If `task`, which is pending, may run as soon as it is approved: true, and the `claim` must be
 * queued behind a vote of it now, for the call waits for its answer. */
bool claim_begin(struct gateway_worker *worker, struct task *task, struct store_claim *claim);
