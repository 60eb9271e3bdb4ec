/*
 * A request that waits for the store. It outlives the handler, the client and, at the end of
 * the process, the server; only the answer of the store ends it.
 */
#pragma once

#include "internal.h"

#include "taskgate/core/magic.h"

#include "task_json.h"

struct pending_reply {
    uint32_t magic;                 /* PENDING_REPLY_MAGIC while it lives */
    struct http_exchange *exchange; /* NULL once the client has gone */
    struct snapshot *snapshot;      /* owned reference */
    struct admin *admin;
    struct operator_identity *who;   /* NULL where the route needs no role */
    enum right right;                /* theirs, of the request */
    const struct decision *decision; /* of decisions.c; NULL for reads */
    char *reason;                    /* of the decision, or NULL */
    char *typed;                     /* the value that was typed for it, or NULL */
    char *shown_digest;              /* of the request that the decision is about, or NULL */
    enum store_task_order order;     /* of a list of tasks */
    char *reaction;                  /* of slack_votes.c, or NULL */
    bool with_arguments;             /* of audit.c */
    bool with_history;               /* of tasks.c: one task, not a list */
    bool is_emergency;               /* the decision is */
    char *arguments;                 /* that the decision puts in place of the client's, or NULL */
    const struct store_edit *edit;   /* the edits of the call, while the vote is cast; or NULL */
    const struct store_claim *claim; /* that comes behind the vote, while it is cast; or NULL */
    struct ballot_wish grant;        /* the grant that the decision asks for */
};
#define PENDING_REPLY_MAGIC 0x70e4d9a1

static inline struct pending_reply *pending_reply_from(void *context)
{
    return MAGIC_CAST(struct pending_reply, PENDING_REPLY_MAGIC, context);
}

/* `request` may be one of no client, without an exchange. */
struct pending_reply *pending_reply_create(const struct request *request);
void pending_reply_destroy(struct pending_reply *pending);
/* Takes the exchange back for the answer; NULL if the client has left. */
struct http_exchange *pending_reply_take(struct pending_reply *pending);
/* Whether the operator may see the task that the store has answered with. */
bool pending_reply_may_see(const struct pending_reply *pending, const struct store_reply *reply);
/* As if there were no such task. */
void pending_reply_unknown(struct http_exchange *exchange);
/* How the operator who asks sees tasks; valid as long as `pending`. */
struct task_view pending_reply_view(const struct pending_reply *pending);
/* Answers with the task, or with the error that the store's status stands for. */
void pending_reply_with_task(struct http_exchange *exchange, const struct store_reply *reply,
                             const struct pending_reply *pending);
/* The same with another status than 200 for the task. */
void pending_reply_with_task_as(struct http_exchange *exchange, int status,
                                const struct store_reply *reply,
                                const struct pending_reply *pending);

/* A page of a list of other things than tasks. */
struct pending_page {
    const char *name; /* of the list's member */
    size_t count;
    void (*write)(struct buffer *out, const struct store_reply *reply, size_t i,
                  const struct pending_reply *pending);
};
/* Answers with the page and the cursor of the next one, or with the error of the store's status,
 * and destroys `pending`. */
void pending_reply_with_page(struct pending_reply *pending, const struct store_reply *reply,
                             const struct pending_page *page);
/* Asks for a page of what lasts for a while, and is named so; or answers a query that is wrong. */
void pending_reply_list(const struct request *request, const char *what,
                        void (*list)(struct store *store, bool in_force_only,
                                     int64_t before_sequence, size_t limit, struct store_call call),
                        store_callback answer);
