/*
 * Shared by the files of the notifier. Each calls only those below it:
 *
 *     notifier.c  the targets, and the deliveries that are due for each
 *     delivery.c  one delivery: sent, judged, settled in the store
 *     channel.c   what each type of endpoint is sent, and what its answer means
 *     recipients.c  who is told of what
 *     smtp.c      mails on their way, each on a thread of its own
 *     message.c   the bytes of a webhook, its signature, the time of the next attempt
 */
#pragma once

#include "channel.h"
#include "message.h"
#include "recipients.h"
#include "smtp.h"
#include "taskgate/core/digest.h"
#include "taskgate/core/list.h"
#include "taskgate/core/magic.h"
#include "taskgate/notify/notify.h"
#include "taskgate/upstream/upstream.h"

/* Deliveries under way at once, for each target. */
#define TARGET_DELIVERIES 4
/* The pause before a failed operation of the store is tried again. */
#define STORE_RETRY_MS 1000

struct notifier {
    uint32_t magic; /* NOTIFIER_MAGIC */
    struct loop *loop;
    struct store *store;
    struct config *config; /* NULL before the first */
    struct upstream_client *client;
    struct smtp_client *mailer;
    struct list targets;
    struct loop_timer configure_again;
    bool is_configuring; /* the store has been asked and not yet answered */
    bool is_stale;       /* and must be asked once more */
    bool is_closed;
    size_t failing; /* targets whose last attempt failed */
};
#define NOTIFIER_MAGIC 0x4e4f4e01

static inline struct notifier *notifier_from(void *context)
{
    return MAGIC_CAST(struct notifier, NOTIFIER_MAGIC, context);
}

struct target {
    uint32_t magic;   /* TARGET_MAGIC */
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
    int64_t resume_ms;     /* monotonic: the endpoint has asked for a pause until then */
    /* Set by notifier.c. To be called once a delivery has left the list; may free the target. */
    void (*settled)(struct target *target);
};
#define TARGET_MAGIC 0x4e4f5402

static inline struct target *target_from(void *context)
{
    return MAGIC_CAST(struct target, TARGET_MAGIC, context);
}

/* How an attempt went. */
enum outcome { OUTCOME_DELIVERED, OUTCOME_RETRIED, OUTCOME_GIVEN_UP, OUTCOME_DROPPED };

struct delivery {
    uint32_t magic;   /* DELIVERY_MAGIC */
    struct list node; /* in target->deliveries */
    struct target *target;
    int64_t sequence, attempts, at_ms;
    char *text; /* "decided of tg_…", for the log */
    struct channel_letter letter;
    char id[33];
    unsigned event;
    struct upstream_call *call; /* while it is posted, */
    struct smtp_call *mail;     /* or mailed */
    struct loop_timer timer;    /* of the attempt; then of asking the store again */
    int status;                 /* of the answer; 0 without */
    struct buffer answer;       /* its body, up to a limit */
    int64_t wait_ms;            /* the endpoint's wish before the next attempt; 0: nothing */
    char *reference;            /* the endpoint's name for it, or NULL */
    bool keeps_thread;          /* it has a reference already, or needs none */
    bool stays;                 /* the endpoint hears of the task from now on */
    enum outcome outcome;
    int64_t due_ms; /* OUTCOME_RETRIED */
    char reason[160];
};
#define DELIVERY_MAGIC 0x4e4f4403

static inline struct delivery *delivery_from(void *context)
{
    return MAGIC_CAST(struct delivery, DELIVERY_MAGIC, context);
}

/* ---- delivery.c ---- */
/* "chat", or "notify[2]" of an endpoint without an id; it is configured. The caller frees. */
char *delivery_target_name(const struct target *target);
/* Sends what the store gave; copies what it needs. */
void delivery_start(struct target *target, const struct store_delivery *due);
/* Notes how the target's last attempt went. */
void delivery_set_failing(struct target *target, bool is_failing);
/* Ends the attempt. One that waits for the store's answer stays until that has come. */
void delivery_cancel(struct delivery *delivery);
/* No callback comes any more. */
void delivery_destroy(struct delivery *delivery);
