/*
 * Slack as a place where people decide: it asks for the reactions to messages of pending tasks, and
 * knows which workspace and which app a press of a button must come from.
 *
 * Lives on one loop. Calls to Slack run on a thread of their own. The decider judges whose vote an
 * entry is, if any; a failed call decides nothing. Behaviour 14.4.
 *
 * Reactions are asked for by reactions.get, message by message: it needs only the scope
 * reactions:read and names everybody who has reacted. If more messages wait than that reaches
 * in time, conversations.history tells the reactions to all messages of a channel in a few calls,
 * and reactions.get only those that it does not tell whole.
 */
#pragma once

#include "taskgate/config/config.h"
#include "taskgate/loop/loop.h"
#include "taskgate/slack/press.h"
#include "taskgate/store/store.h"

struct slack;

enum slack_want { SLACK_APPROVE, SLACK_REJECT, SLACK_WITHDRAW };

/* A reaction that has come, or has gone. */
struct slack_wish {
    const char *task_id;
    const char *user; /* Slack id of a person of the configuration */
    enum slack_want want;
    const char *shown_digest; /* of the request that the message shows; "" where it is not known */
    const char *channel, *ts; /* the place of the message */
    const char *reaction;     /* the message's mark: a vote by it is withdrawn by it alone */
};
/* `is_settled`: false where the store has failed, so that the wish is told again. */
typedef void (*slack_wish_done)(void *context, bool is_settled);
/* Calls `done` once, also from inside. */
typedef void (*slack_decider)(void *context, const struct slack_wish *wish, slack_wish_done done,
                              void *done_context);

/* Before the loop runs. */
struct slack *slack_create(struct loop *loop, struct store *store, slack_decider decider,
                           void *context);
/* The channels and people from now on; takes a reference of its own. On the loop, or before it
 * runs. */
void slack_configure(struct slack *slack, struct config *config);
/* After the loop has stopped: asks neither Slack nor the store any more. */
void slack_close(struct slack *slack);
/* Closed, and the store's answers have been delivered. NULL is allowed. */
void slack_destroy(struct slack *slack);

/* ---- presses; on the loop ---- */
enum slack_origin {
    SLACK_ORIGIN_OWN,     /* of the workspace, and the app, that the token is of */
    SLACK_ORIGIN_FOREIGN, /* of another one */
    SLACK_ORIGIN_UNKNOWN, /* Slack has not told yet what the token is of: none counts */
};
/* `notify`: of the configuration in force. */
enum slack_origin slack_origin_of(struct slack *slack, const struct config_notify *notify,
                                  const struct slack_press *press);
/* Asks the person by a dialog, whose press this was. */
void slack_ask(struct slack *slack, const struct config_notify *notify,
               const struct slack_press *press, const struct slack_asked *asked);
/* Tells the person of a reaction a line that they alone see, in the thread of the message, once
 * for each person and message as far as is remembered. */
void slack_tell_reaction(struct slack *slack, const struct slack_wish *wish, const char *text);
/* Tells the person alone a line, under the message. */
void slack_tell(struct slack *slack, const struct config_notify *notify,
                const struct slack_press *press, const char *text);
