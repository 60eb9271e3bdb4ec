/*
 * This process among the replicas that share its database: what it needs to relay requests to the
 * others and to take theirs. Contract "Replicas". Any thread.
 */
#pragma once

#include "nonce_cache.h"
#include "request/worker.h"
#include "session_homes.h"
#include "taskgate/store/replicas.h"

struct replicas {
    struct store *store;
    char *key; /* of the signatures; never logged */
    struct nonce_cache *nonces;
    struct session_homes *homes;
};

/* NULL where nothing can be relayed: the database is this process's alone, or there is no key. */
struct replicas *replicas_create(struct store *store, const char *key);
void replicas_destroy(struct replicas *replicas); /* NULL is allowed */

/* What is known of another replica now. */
struct peer {
    bool is_there; /* in the epoch that was asked for */
    char *address; /* owned by the caller; NULL: it takes no calls of others */
};
struct peer replicas_find_peer(struct replicas *replicas, const char *id, int64_t epoch);
/* The same, without its address. */
bool replicas_lives(struct replicas *replicas, const char *id, int64_t epoch);
