/*
 * The people and tokens of a configuration that may decide calls. People whom admin.oidc alone
 * knows are not in the file. Any thread.
 */
#pragma once

#include "taskgate/approval/ballot.h"
#include "taskgate/config/config.h"

/* Adds an approving vote of everybody in the file who has the role approver: the people with all
 * their groups, and the tokens that name nobody. Nobody in the file can give the votes that are
 * still missing of a workflow's terms after these. */
void electorate_add(const struct config *config, struct ballot_votes *votes);
/* Whether the person may vote in Slack: a channel is told of calls, and the entry has a Slack id
 * and the role approver, or no roles. */
bool electorate_may_in_slack(const struct config *config, const struct config_person *person);
/* Whether people may come who are not in the file. */
bool electorate_is_open(const struct config *config);
