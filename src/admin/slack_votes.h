/* Votes that are given in Slack, by people of the configuration. On the loop of the operators'
 * side.
 */
#pragma once

#include "taskgate/slack/slack.h"

/* A slack_decider; `context` is the admin. */
void slack_votes_decide(void *context, const struct slack_wish *wish, slack_wish_done done,
                        void *done_context);
