/* A message to an endpoint, ready to be sent. */
#pragma once

#include "taskgate/core/buffer.h"
#include "taskgate/notify/slack_posted.h"

struct channel_letter {
    char *url;           /* the address of a post; NULL for a mail */
    char *authorization; /* of its header, or NULL */
    struct buffer body;
    char votes_on[SLACK_VOTES_BYTES]; /* of a message of Slack's: see slack_posted.h */
};

/* Room for a word on an answer. */
#define CHANNEL_PROBLEM_BYTES 64
