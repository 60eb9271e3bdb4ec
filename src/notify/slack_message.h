/*
 * A task's message in Slack, and Slack's answer to it. Any thread; pure. Source: Slack's Web API
 * (chat.postMessage, chat.update), Block Kit.
 */
#pragma once

#include "taskgate/config/config.h"
#include "taskgate/store/store.h"

#include "letter.h"

/* The first letter of a task posts a message; the later ones, which have its reference, change it;
 * or, where people are called again, answer it. */
void slack_message_write(struct channel_letter *letter, const struct store_delivery *delivery,
                         const struct config_notify *notify, const struct config *config);
/* Of an answer with a status of success: whether it was done; else a word in `problem`. `reference`
 * tells the message, as slack_posted_read() reads it; `votes_on` is the letter's. The caller frees
 * it; NULL where the answer has none. */
bool slack_message_accepts(struct str answer, const char *votes_on, char **reference,
                           char problem[CHANNEL_PROBLEM_BYTES]);
