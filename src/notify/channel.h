/*
 * The messages to an endpoint of each type about a task, and the meaning of its answer.
 *
 * Texts of agents, servers and people stand where the endpoint formats nothing, so that none of
 * them becomes a link, a mention or an order. Any thread; pure. Source: behaviour 14.3; Slack's
 * Web API (chat.postMessage, chat.update), Adaptive Cards 1.4, PagerDuty's Events API v2.
 */
#pragma once

#include "taskgate/config/config.h"
#include "taskgate/core/buffer.h"
#include "taskgate/notify/channel_key.h"
#include "taskgate/store/store.h"

#include "letter.h"

/* False, with nothing to finish, when this endpoint is not told of it. */
bool channel_write(struct channel_letter *letter, const struct store_delivery *delivery,
                   const struct config_notify *notify, const struct config *config);
void channel_letter_finish(struct channel_letter *letter);

/* Of an answer to the letter with a status of success. False with a word in `problem` when its body
 * says that nothing was done. `reference` is what store_outbox_posted() keeps, which the caller
 * frees, or NULL. */
bool channel_accepts(enum config_notify_type type, const struct channel_letter *letter,
                     struct str answer, char **reference, char problem[CHANNEL_PROBLEM_BYTES]);
