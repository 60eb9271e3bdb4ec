/*
 * A claim that follows a vote: a call that is likely to be approved becomes executing in the commit
 * of its approval, where a worker of this process holds what the call needs, so it waits for one
 * commit less. If the vote does not approve the call, the store refuses the claim, and nothing has
 * happened.
 *
 * The worker that holds the call compares the rules and the tool with what was approved before the
 * claim is queued, and again before the first byte is sent (behaviour 1.4, 1.5). On the loop of
 * `worker`, which may be another one.
 */
#pragma once

#include "taskgate/store/store.h"

struct gateway_worker;

/* Gets the `claim`, which must be queued behind a vote of the task now, whatever has happened
 * meanwhile, for the call waits for its answer. NULL: the vote goes alone. No worker holds the
 * call, it may not run, or its worker has not answered in time. */
typedef void (*claim_callback)(void *context, struct task *task, const struct store_claim *claim);

/* Whether claim_ask() is worth reading the task for. */
bool claim_may_be_possible(const struct gateway_worker *worker, struct str id);
/* Asks for the claim of `task`, which is pending. The callback comes once, perhaps before this
 * returns. */
void claim_ask(struct gateway_worker *worker, struct task *task, claim_callback callback,
               void *context);
