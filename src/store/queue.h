/* The store, and its queue of operations: other files queue on any loop, thread.c works. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "replica.h"
#include "taskgate/core/magic.h"

/* Their callbacks are NULL before there is one. */
struct signal_observer {
    struct loop *loop;
    loop_callback callback;
    void *context;
};
struct id_observer {
    struct loop *loop;
    store_id_observer callback;
    void *context;
};

struct observer {
    struct observer *next;
    struct loop *loop;
    store_observer callback;
    store_feed_observer feed; /* in its place; or NULL */
    void *context;
};

struct store {
    uint32_t magic; /* STORE_MAGIC */
    atomic_bool healthy;
    atomic_int_fast64_t pending_count;

    atomic_bool is_held, was_reached; /* as struct replica has them */
    atomic_int_fast64_t epoch;
    int wake_fd; /* an eventfd: something was queued */

    pthread_mutex_t lock; /* guards what is below, up to the thread's own */
    struct operation *first, **end;
    struct observer *observers;
    struct id_observer id_observers[STORE_ID_KINDS];
    struct signal_observer outbox_observer, yield_observer;
    bool stopping; /* the thread ends once the queue is empty */
    bool stopped;  /* it has */
    struct store_audit_settings audit;
    bool has_yielded;
    char *address;      /* the address of this replica for others, or NULL */
    struct peers peers; /* the other replicas */
    bool beats_now;     /* without waiting for the next heartbeat */

    /* The store thread's alone, once it runs. */
    pthread_t thread;
    const struct store_backend *backend;
    char *place; /* of the database, for messages */
    struct database *database;
    struct replica replica;
    struct store_electorate electorate; /* without `renew`: no grant is used */
    struct store_redaction redaction;   /* without `write`: none */
    int64_t sweep_at_ms;                /* monotonic, as below */
    int64_t upkeep_at_ms;
    int64_t look_at_ms;
    int64_t heartbeat_at_ms, catch_up_at_ms; /* INT64_MAX: the database is not shared */
    int64_t hint_paid_ms;                    /* by the looks that hints have asked for */
};
#define STORE_MAGIC 0x53544f01

static inline struct store *store_from(void *context)
{
    return MAGIC_CAST(struct store, STORE_MAGIC, context);
}

/* Any thread. Takes the operation over, with those behind it. */
void store_queue(struct store *store, struct operation *operation);
/* Operations about what a person gives: `page`, `id`, `end`. */
void store_queue_page(struct store *store, const struct operation_kind *kind, bool in_force_only,
                      int64_t before_sequence, size_t limit, struct store_call call);
void store_queue_get(struct store *store, const struct operation_kind *kind, struct str id,
                     struct store_call call);
void store_queue_end(struct store *store, const struct operation_kind *kind, struct str id,
                     const char *person, const char *reason, struct store_call call);
/* Up to `limit` operations, of which the caller becomes the owner; NULL: none is queued. */
struct operation *store_dequeue(struct store *store, unsigned limit, bool *stopping);
/* The thread has ended: what is queued, and what comes later, is answered STORE_FAILED. */
void store_refuse_queued(struct store *store);
