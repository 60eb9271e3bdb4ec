/* A task's message in Slack, as others know it. Any thread; pure. */
#pragma once

#include "taskgate/core/str.h"

/* Its buttons, by their action_id. Their value is the task's id. */
#define SLACK_ACTION_APPROVE "taskgate_approve"
#define SLACK_ACTION_REJECT "taskgate_reject"

/* The parts of its reference, which the store keeps: where it stands, and the app that has posted
 * it, which may be empty. `app` may be NULL. False when the text is no reference. */
bool slack_posted_read(const char *reference, struct str *channel, struct str *ts, struct str *app);
