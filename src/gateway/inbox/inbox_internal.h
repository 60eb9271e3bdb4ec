/* The clients themselves, for the files that keep them. */
#pragma once

#include <pthread.h>

#include "inbox.h"
#include "taskgate/core/map.h"

/* A bounded ring of entries for a client, the oldest first. The owner of the ring holds the lock.
 */
struct inbox_entry {
    struct list node;
    int64_t at_ms; /* wall clock */
    char id[RANDOM_ULID_BYTES];
    unsigned kind;         /* the meaning is the maker's */
    struct str server;     /* in `bytes`, as all three */
    struct str name, json; /* json is what was given, or "" where it was too long to keep */
    size_t size;
    char bytes[];
};

struct inbox_ring {
    struct list entries;
    size_t count, bytes;
    size_t *total;              /* of several lines, `bytes` of this one among them */
    struct inbox_entry *latest; /* that the next inbox_ring_replace() drops, if it is still there */
};

struct inbox {
    struct list node; /* in clients.idle or clients.busy: the longest untouched first */
    char *key;
    int64_t touched_ms; /* monotonic */
    struct inbox_ring events, logs, notifications;
    struct list joins; /* struct join.node of repeated_calls.c, the oldest first */
    size_t join_count;
    bool has_news;       /* an event that wakes has come since the events were last taken */
    struct list waiters; /* struct inbox_waiter.node */
    size_t waiter_count;
};

struct inbox_table {
    pthread_mutex_t lock;
    struct map *by_key;
    struct list idle; /* without a waiter */
    struct list busy;
    size_t bytes;             /* of all lines */
    size_t most;              /* clients, by the configuration */
    atomic_size_t left_calls; /* of all joins, those of forwarded calls whose client left */
    struct map *warned;       /* sources whose clash of names has been logged */
};

/* Under the lock; NULL without one. */
static inline struct inbox *inbox_find(const struct inbox_table *clients, struct str key)
{
    return key.length > 0 ? map_get(clients->by_key, key) : NULL;
}

/* Under the lock (repeated_calls.c). */
void repeated_calls_finish(struct inbox *client);
