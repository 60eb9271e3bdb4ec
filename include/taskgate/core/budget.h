/*
 * One budget in bytes for all that strangers and agents make the process hold, with a share for
 * each holder: a principal, or the address of a client that is not known yet. Nothing is refused
 * beforehand: memory is counted when it is there, and beyond a bound a claim is chosen, which its
 * owner gives up. Limit `limits.bodies_bytes`. Any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "taskgate/core/list.h"
#include "taskgate/core/str.h"

struct budget;
struct budget_share;

struct budget_claim;

/* How a claim is to be given up. */
enum budget_kind {
    BUDGET_RECEIVED, /* bytes still come: the slowest goes first */
    BUDGET_KEPT,     /* to be sent, or kept for later: the oldest goes, once nothing is received */
    BUDGET_NEEDED,   /* a call under way: it is never chosen */
};

/* The part of owners of one kind; outlives their claims. */
struct budget_owner {
    /* It was chosen, and counts no more. Runs under the lock, on the thread of whoever has gone
     * beyond the bound, and only tells the owner's thread. */
    void (*chosen)(struct budget_claim *claim);
};

/* The bytes of one owner: part of the owner's struct, zeroed at first. */
struct budget_claim {
    /* Under the budget's lock: */
    struct list node;           /* in its share, or among the chosen */
    struct budget_share *share; /* NULL: it counts for nobody */
    const struct budget_owner *owner;
    enum budget_kind kind;
    size_t bytes;
    int64_t since_ms; /* monotonic */
    bool is_chosen;
};

struct budget_limits {
    size_t bytes;       /* of all */
    int64_t percent;    /* of these the share of one holder */
    size_t least_bytes; /* of a share, whatever the percent are: one request must fit */
};

struct budget *budget_create(const struct budget_limits *limits);
void budget_set_limits(struct budget *budget, const struct budget_limits *limits);
/* After all claims. NULL is allowed. */
void budget_destroy(struct budget *budget);

/* From here on the claim has `bytes`, for the account of `holder`. One that was chosen stays so. */
void budget_hold(struct budget *budget, struct budget_claim *claim,
                 const struct budget_owner *owner, struct str holder, enum budget_kind kind,
                 size_t bytes);
/* Nothing is held any more, and the claim is zeroed. */
void budget_release(struct budget *budget, struct budget_claim *claim);
/* The first chosen claim for which `is_wanted` says true, or NULL. It stays until it is released.
 */
struct budget_claim *budget_find_chosen(struct budget *budget,
                                        bool (*is_wanted)(const struct budget_claim *claim,
                                                          const void *context),
                                        const void *context);
