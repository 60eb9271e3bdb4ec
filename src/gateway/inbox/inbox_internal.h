/* The clients themselves, for the files that keep them. */
#pragma once

#include <pthread.h>

#include "inbox.h"
#include "ring.h"

struct pseudo_client {
    struct list node; /* in clients.idle or clients.busy: the longest untouched first */
    char *key;
    int64_t touched_ms; /* monotonic */
    struct pseudo_ring events, logs, notifications;
    struct list joins; /* struct join.node of repeated_calls.c, the oldest first */
    size_t join_count;
    bool has_news;       /* an event that wakes has come since the events were last taken */
    struct list waiters; /* struct pseudo_waiter.node */
    size_t waiter_count;
};

struct pseudo_clients {
    pthread_mutex_t lock;
    struct map *by_key;
    struct list idle; /* without a waiter */
    struct list busy;
    size_t bytes;             /* of all lines */
    size_t most;              /* clients, by the configuration */
    atomic_size_t left_calls; /* of all joins, those of forwarded calls whose client left */
    struct map *warned;       /* sources whose clash of names has been logged */
};

/* Under the lock, all of these. */
struct pseudo_client *pseudo_client_find(struct pseudo_clients *clients, struct str key);
/* It has been used, or its waiters have come or gone. */
void pseudo_client_used(struct pseudo_clients *clients, struct pseudo_client *client);
/* An event has come, or the client has ended. */
void pseudo_waiters_wake(struct pseudo_client *client, enum pseudo_event type);
void pseudo_waiters_end(struct pseudo_client *client);
void pseudo_joins_finish(struct pseudo_client *client);
bool pseudo_event_wakes(enum pseudo_event type);
