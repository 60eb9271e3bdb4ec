/*
 * This process among those that may share the database: its id, its epoch, its leases, and how far
 * it has read the feed of changes.
 *
 * An execution is claimed by id and epoch. A replica that was silent is fenced: its epoch ends, its
 * executions end with an unknown outcome, and what it still has to say of them is not stored. Where
 * the database is one process's alone, no heartbeat, lease or feed is written. Contract "Replicas".
 */
#pragma once

#include "operation.h"

/* Work that one of several replicas does. LEASE_ROW(symbol, name). */
#define LEASE_TABLE(LEASE_ROW)                                                                     \
    LEASE_ROW(SWEEP, "sweep")   /* deadlines, purging, anchors */                                  \
    LEASE_ROW(OUTBOX, "outbox") /* deliveries to endpoints */

enum lease {
#define LEASE_ROW(symbol, name) LEASE_##symbol,
    LEASE_TABLE(LEASE_ROW)
#undef LEASE_ROW
        LEASE_COUNT
};

struct replica {
    char *id;
    int64_t epoch; /* 0 before it has joined */
    int64_t
        watching_since_ms; /* the store's clock: since when it would have heard others; 0: not */
    int64_t lease_until_ms[LEASE_COUNT]; /* the store's clock */
    int64_t feed_seen;                   /* the last change that observers were told of */
};

/* `id` NULL: the system's host name. */
void replica_init(struct replica *replica, const char *id);
void replica_finish(struct replica *replica);

/* Whether this replica does the work now. */
bool replica_holds(const struct batch *batch, enum lease lease);
/* The task is executing: by this replica from now on. false also when its epoch is over. */
bool replica_claim(struct batch *batch, const struct task *task);
/* Whether the task was claimed by another replica, or in an earlier epoch of this one. */
bool replica_is_late(struct batch *batch, const struct task *task, bool *is_late);

/* Adds the changes that others have committed to the batch's events, in a transaction that has
 * just begun. */
bool replica_catch_up(struct batch *batch);
/* Adds the batch's own events, from `first` on, to the feed, right before the commit. */
bool replica_tell(struct batch *batch, size_t first);

#define REPLICA_HEARTBEAT_MS 5000
/* How late observers hear of others at most; and where the database gives hints, if one is missed.
 */
#define REPLICA_CATCH_UP_MS 250
#define REPLICA_CATCH_UP_SLOW_MS 1000
