/*
 * The home replica of each session, as this process has learnt it, so that the store is asked once
 * for each. An entry holds as long as that replica's epoch goes on; the caller knows whether it
 * does. Shared by all workers; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "taskgate/core/str.h"
#include "taskgate/store/replicas.h"

struct session_home {
    char replica[STORE_REPLICA_ID_BYTES];
    int64_t epoch;
    bool is_here; /* then `epoch` is this process's own */
    /* Monotonic. Not 0: no replica has opened the session so far. It is handled here until then,
     * and is asked for again after that. */
    int64_t unknown_until_ms;
};

struct session_homes;

struct session_homes *session_homes_create(void);
void session_homes_destroy(struct session_homes *homes); /* NULL is allowed */

/* `session` is a digest. Past `limit` sessions the one not seen for longest is forgotten. */
void session_homes_put(struct session_homes *homes, struct str source, struct str session,
                       const struct session_home *home, int64_t limit);
bool session_homes_get(struct session_homes *homes, struct str source, struct str session,
                       struct session_home *home);
