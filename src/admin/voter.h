/*
 * Votes of before: whether they still stand under the configuration in force. On the loop of the
 * operators' side, but for voter_electorate(), whose functions run anywhere.
 */
#pragma once

#include "taskgate/approval/ballot.h"
#include "taskgate/gateway/gateway.h"
#include "taskgate/store/store.h"

#include "operator.h"

/* The same for the store; it holds a reference of the configuration. The worker (or NULL) outlives
 * the store. */
struct store_electorate voter_electorate(struct config *config,
                                         const struct gateway_worker *worker);
/* The ballot of a task as it is now. ballot_finish() frees it. */
void voter_read_ballot(const struct config *config, const struct task *task, struct ballot *ballot);
