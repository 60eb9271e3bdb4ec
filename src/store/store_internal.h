/* The store as its two halves see it: store.c queues on any loop, thread.c works. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "operation.h"
#include "taskgate/core/magic.h"

struct outbox_observer {
    struct loop *loop;
    loop_callback callback;
    void *context;
};

struct observer {
    struct observer *next;
    struct loop *loop;
    store_observer callback;
    void *context;
};

struct store {
    uint32_t magic; /* STORE_MAGIC */
    atomic_bool healthy;
    atomic_int_fast64_t pending_count;

    pthread_mutex_t lock; /* guards the seven below */
    pthread_cond_t wake;  /* on the monotonic clock */
    struct operation *first, **end;
    struct observer *observers;
    struct outbox_observer outbox_observer; /* its callback is NULL before there is one */
    bool stopping;                          /* the thread ends once the queue is empty */
    bool stopped;                           /* it has */
    struct store_audit_settings audit;

    /* The store thread's alone, once it runs. */
    pthread_t thread;
    struct database database;
    struct pending pending;
    struct store_electorate electorate; /* without `renew`: no grant is used */
    struct store_redaction redaction;   /* without `write`: none */
    bool pending_is_stale;              /* a rollback was not followed by a successful count */
    int64_t sweep_at_ms;                /* monotonic, as below */
    int64_t checkpoint_at_ms;
    int64_t look_at_ms;
};
#define STORE_MAGIC 0x53544f01

static inline struct store *store_from(void *context)
{
    return MAGIC_CAST(struct store, STORE_MAGIC, context);
}

/* Runs what is queued and what is due until `stopping` is set and the queue is empty. */
void *store_thread(void *store);
/* Sends the reply to the loop of the caller. Takes the operation over. */
void store_answer(struct operation *operation);
/* Runs one operation by itself, without answer. For the start. */
bool store_run_alone(struct store *store, const struct operation_kind *kind, struct error *error);
