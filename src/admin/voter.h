/*
 * Operators as voters: what the ballot asks of them, and whether a vote of before still stands
 * under the configuration in force. On the loop of the operators' side, but for
 * voter_electorate(), whose functions run anywhere.
 */
#pragma once

#include "taskgate/approval/ballot.h"
#include "taskgate/store/store.h"

#include "operator.h"

/* An operator, for the ballot. */
struct voter {
    struct ballot_person person;
    struct ballot_names owners; /* the owners of calls of theirs */
};
void voter_init(struct voter *voter, const struct operator_identity *who);
void voter_finish(struct voter *voter);

/* Sets whether the vote stands: its person is still the same, and has the role approver; and the
 * groups that the person has now. */
void voter_renew(const struct config *config, struct ballot_vote *vote);
/* The same for the store; it holds a reference of the configuration. */
struct store_electorate voter_electorate(struct config *config);
/* The ballot of a task as it is now. ballot_finish() frees it. */
void voter_read_ballot(const struct config *config, const struct task *task, struct ballot *ballot);
