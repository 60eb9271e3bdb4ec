/* A task's message in Slack, as others know it. Any thread; pure. */
#pragma once

#include "taskgate/config/config.h"
#include "taskgate/core/str.h"

/* Its buttons, by their action_id. */
#define SLACK_ACTION_APPROVE "taskgate_approve"
#define SLACK_ACTION_REJECT "taskgate_reject"

/* Votes under a message are on this: the digest of the request that it shows, or a dash, where it
 * does not show the whole of it, and votes do not count. */
#define SLACK_VOTES_BYTES 65
#define SLACK_VOTES_ON_NOTHING "-"

/* The parts of its reference "CHANNEL TS APP VOTES", which the store keeps. `app` is empty where
 * Slack has not told which app has posted it; `votes_on` is empty for a message of an older
 * version, whose votes are compared with nothing. */
struct slack_posted {
    struct str channel, ts, app, votes_on;
};
/* False when the text is no reference. */
bool slack_posted_read(const char *reference, struct slack_posted *posted);
/* Whether votes under the message count, which this endpoint has posted. */
bool slack_posted_counts(const struct slack_posted *posted, const struct config_notify *notify);
