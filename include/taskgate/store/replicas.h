/*
 * This process among the replicas that share a database, and the others. Behaviour 16.2.
 *
 * A replica has an id, and from each start on, or after it was taken for dead, a new epoch. It
 * tells every 5 s that it lives, and knows the others by the same heartbeat: so what is said here
 * of them is at most 5 s old, or as old as the last one that reached the database. Callable from
 * any thread; never blocks. If the database is one process's alone, there are no others.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "taskgate/loop/loop.h"
#include "taskgate/store/store.h"

#define STORE_REPLICA_ID_BYTES 129 /* an id has at most 128 characters */

/* This replica's own id. */
const char *store_replica_id(const struct store *store);
/* Its epoch; 0: it has none now, so it may neither execute nor decide. Calls that replicas send
 * each other name both epochs: one that names another epoch than this is for somebody who is dead.
 */
int64_t store_replica_epoch(const struct store *store);
/* Calls `visit` for each of the others, by id, while a short lock is held: copy what is needed.
 * false ends the list. */
void store_visit_peers(struct store *store,
                       bool (*visit)(void *context, const struct store_peer *peer), void *context);
/* Tells the others where they reach this replica (copied; NULL: nowhere), from the next heartbeat
 * on, which comes at once. */
void store_announce(struct store *store, const char *address);
/* `yield` runs on `loop`, once, when another living replica has this one's id and was there first:
 * this process must end. Nothing is stored any more; the log says why. */
void store_observe_yield(struct store *store, struct loop *loop, loop_callback yield,
                         void *context);

/* As store_observe(), but for a shared database alone: `observer` hears of own changes, too, only
 * once they are read in the feed, a moment later. */
void store_observe_feed(struct store *store, struct loop *loop, store_feed_observer observer,
                        void *context);
/* The changes of the feed behind `after`, at most `limit` changes: the tasks as they are now, in
 * `tasks` with their `sequences`, and has_more. `last_sequence`: the last change that there is. */
void store_feed_after(struct store *store, int64_t after, size_t limit, struct store_call call);

/* How the store is. */
enum store_condition {
    STORE_WORKS,
    /* The database does not answer, or its disk fails. Calls are answered STORE_FAILED. */
    STORE_OUT,
    /* The same, and it has not been reached since the start. */
    STORE_NOT_REACHED,
    /* The database is back with commits missing, as after a failover. Nothing is decided or
     * executed until somebody has run `taskgate store accept-timeline`. */
    STORE_HELD,
};
enum store_condition store_condition(const struct store *store);
/* Whether other processes may use the database, so that its failure is theirs as well. */
bool store_is_shared(const struct store *store);
