/*
 * Shared by the files of the notifier.
 *
 *     notifier.c  whom to tell, and what is due for each
 *     delivery.c  one delivery: sent, judged, settled in the store
 *     message.c   what is sent
 */
#pragma once

#include "message.h"
#include "taskgate/core/digest.h"
#include "taskgate/core/list.h"
#include "taskgate/notify/notify.h"
#include "taskgate/upstream/upstream.h"

/* Deliveries under way at once, for each target. */
#define TARGET_DELIVERIES 4
/* The pause before a failed operation of the store is tried again. */
#define STORE_RETRY_MS 1000

struct notifier {
    struct loop *loop;
    struct store *store;
    struct config *config; /* NULL before the first */
    struct upstream_client *client;
    struct list targets;
    struct loop_timer configure_again;
    bool is_configuring; /* the store has been asked and not yet answered */
    bool is_stale;       /* and must be asked once more */
    bool is_closed;
};

struct target {
    struct list node; /* in notifier->targets */
    struct notifier *notifier;
    char key[DIGEST_HEX_BYTES];
    char *origin;                       /* for the log */
    const struct config_notify *config; /* of notifier->config; NULL: no longer configured */
    struct list deliveries;             /* under way */
    size_t delivery_count;
    struct loop_timer due; /* of the next look */
    bool is_looking;       /* the store has been asked and not yet answered */
    bool must_look;        /* and must be asked once more */
    bool is_failing;       /* the last attempt failed */
};

/* How an attempt went. */
enum outcome { OUTCOME_DELIVERED, OUTCOME_RETRIED, OUTCOME_GIVEN_UP, OUTCOME_DROPPED };

struct delivery {
    struct list node; /* in target->deliveries */
    struct target *target;
    int64_t sequence, attempts, at_ms;
    char *text; /* "decided of tg_…", for the log */
    struct buffer body;
    struct upstream_call *call; /* while it is sent */
    struct loop_timer timer;    /* of the attempt; then of asking the store again */
    int status;                 /* of the answer; 0 without */
    size_t answered;            /* bytes of the answer's body */
    enum outcome outcome;
    int64_t due_ms; /* OUTCOME_RETRIED */
    char reason[160];
};

/* ---- notifier.c ---- */
/* Asks for what is due, now or when the present question is answered. */
void target_look(struct target *target);
/* Once a delivery has left the list, or an answer has come. Frees a target that is gone. */
void target_settled(struct target *target);

/* ---- delivery.c ---- */
/* Sends what the store gave; copies what it needs. */
void delivery_start(struct target *target, const struct store_delivery *due);
/* Ends the attempt. One that waits for the store's answer stays until that has come. */
void delivery_cancel(struct delivery *delivery);
/* No callback comes any more. */
void delivery_destroy(struct delivery *delivery);
