/*
 * Shared by the files of the room. Each calls only those below it:
 *
 *     slack.c     the accounts of a configuration; presses; rounds: which messages are looked at,
 *                 and when; what their reactions come to
 *     account.c   one token: its calls to Slack, their pace, what it is of
 */
#pragma once

#include "taskgate/approval/terms.h"
#include "taskgate/core/digest.h"
#include "taskgate/core/list.h"
#include "taskgate/core/magic.h"
#include "taskgate/core/map.h"
#include "taskgate/identity/fetch.h"
#include "taskgate/slack/slack.h"

struct slack {
    uint32_t magic; /* SLACK_MAGIC */
    struct loop *loop;
    struct store *store;
    slack_decider decider;
    void *context;
    struct fetcher *fetcher; /* NULL before the first account */
    struct list accounts;    /* of the configuration in force */
    struct list leaving;     /* others, until their last answer has come */
    struct map *told;        /* "CHANNEL TS USER" of reactions, to any pointer */
    bool is_closed;
};
#define SLACK_MAGIC 0x51ac0001

/* A message of a pending task. */
struct slack_message {
    const struct slack_channel *channel;
    char *task_id, *channel_id, *ts, *seen;
    char *votes_on; /* as slack_posted.h has it */
    bool counts;    /* a reaction that comes may be a vote */
    bool is_read;   /* in this round */
};

struct slack_channel {
    char key[DIGEST_HEX_BYTES];         /* of its endpoint */
    const struct config_notify *notify; /* of the account's configuration */
};

struct slack_answer {
    bool is_ok;
    char problem[64]; /* Slack's word, or what has failed; "" when ok */
    struct str body;  /* JSON, when ok */
};
struct slack_account;
typedef void (*slack_answered)(struct slack_account *account, const struct slack_answer *answer);

/* A bot in a workspace: one address and one token. */
struct slack_account {
    uint32_t magic;   /* ACCOUNT_MAGIC */
    struct list node; /* in slack->accounts, or slack->leaving */
    struct slack *slack;
    struct config *config;
    char *url, *token;
    struct slack_channel *channels;
    size_t channel_count;
    char *team, *app, *bot; /* as Slack has told; NULL: not yet, or not at all */
    /* ---- calls: one at a time, but for those that answer a press ---- */
    struct fetch *fetch;
    slack_answered answered;
    const char *method;
    int64_t next_call_ms; /* monotonic; not before */
    bool is_failing;      /* it was said in the log */
    bool has_failed;      /* in this round */
    /* ---- rounds ---- */
    struct loop_timer timer;
    void (*step)(struct slack_account *account); /* of the timer */
    int64_t round_ms;                            /* monotonic, of the begin */
    struct slack_message *messages;
    size_t message_count;
    size_t asked; /* channels whose messages the store has told in this round */
    size_t at;    /* the message, or in the history the channel, that is looked at */
    size_t turn;  /* rotates where a round begins */
    char *cursor; /* of the history's next page */
    size_t calls; /* of reactions.get, in this round */
    size_t pages; /* of this channel's history, that were read */
    bool has_reactions, has_history; /* the scopes of the token */
    size_t pending; /* answers of the store or the decider that are still to come */
    bool is_leaving;
};
#define ACCOUNT_MAGIC 0x51ac0002

static inline struct slack_account *account_from(void *context)
{
    return MAGIC_CAST(struct slack_account, ACCOUNT_MAGIC, context);
}

/* ---- account.c ---- */
struct slack_account *account_create(struct slack *slack, struct config *config,
                                     const struct config_notify *notify);
void account_add_channel(struct slack_account *account, const struct config_notify *notify);
/* Ends what it does. It is freed once nothing is to come. */
void account_leave(struct slack_account *account);
/* An answer of the store or the decider has come; may free an account that leaves. Returns whether
 * it goes on. */
bool account_settle(struct slack_account *account);
void account_free(struct slack_account *account);
void account_clear_messages(struct slack_account *account);
/* Tells the log that a round has worked again. */
void account_end_round(struct slack_account *account);
/* Runs `step` in `delay_ms`, or later where Slack has asked for a pause. */
void account_step_in(struct slack_account *account, int64_t delay_ms,
                     void (*step)(struct slack_account *account));
/* Asks by GET (`query` without "?"), keeping the pace; one at a time. */
void account_ask(struct slack_account *account, const char *method, struct str query,
                 slack_answered answered);
/* Asks by POST what the token is of. */
void account_ask_origin(struct slack_account *account, slack_answered answered);
/* Posts at once a JSON body that answers a press; `body` is taken over. */
void account_post(struct slack_account *account, const char *method, struct buffer *body);
