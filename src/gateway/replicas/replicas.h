/*
 * This process among the replicas that share its database: what it needs to relay requests to the
 * others and to take theirs. Behaviour 16.3. Any thread.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "call/call.h"
#include "relay_signature.h"
#include "taskgate/core/str.h"
#include "taskgate/store/homes.h"
#include "taskgate/store/replicas.h"

/*
 * The home replica of each session, as this process has learnt it, so that the store is asked once
 * for each. An entry holds as long as that replica's epoch goes on; the caller knows whether it
 * does. Shared by all workers; any thread.
 */

struct session_home {
    char replica[STORE_REPLICA_ID_BYTES];
    int64_t epoch;
    bool is_here; /* then `epoch` is this process's own */
    /* Monotonic. Not 0: no replica has opened the session so far. It is handled here until then,
     * and is asked for again after that. */
    int64_t unknown_until_ms;
};

struct replicas {
    struct store *store;
    char *key; /* of the signatures; never logged */
    struct nonce_cache *nonces;
    struct seen_table *homes;       /* struct session_home by source and session */
    _Atomic(int64_t) news_sequence; /* the last that was sent (news.c) */
    _Atomic(int64_t) relayed_ms;    /* monotonic, when the last request came; 0: none has */
    atomic_int waiting;             /* calls whose session may not have been stored yet (home.c) */

    pthread_mutex_t lock; /* guards: */
    struct map *met;      /* id -> struct met (replicas.c): what the store has said last */
};

/* NULL where nothing can be relayed: the database is this process's alone, or there is no key. */
struct replicas *replicas_create(struct store *store, const char *key);
void replicas_destroy(struct replicas *replicas); /* NULL is allowed */

/* Notes the latest answer of the store about another replica. */
void replicas_note(struct replicas *replicas, const struct store_home *home);

/* The present state of another replica in one of its epochs. */
struct peer {
    bool is_over;  /* that epoch */
    char *address; /* owned by the caller; NULL: it takes no calls of others */
};
struct peer replicas_find_peer(struct replicas *replicas, const char *id, int64_t epoch);

/* The process that handles a request (home.c): the home of its task, or of its open call, or of its
 * session (behaviour 16.3). The call passes, or goes on with `here`, if it is handled in this
 * process: nothing of it depends on one process, or what it needs is here, or its replica is not
 * reached. Otherwise it is carried to that replica. A session or task whose replica is gone is
 * adopted first. Nothing was begun for the call. On its loop. */
enum gate_verdict home_then(struct call *call, call_step here);

/* The id under which this replica asks a client something, so that the answer finds it from any
 * other: "tg:" and `id`, and where there are others, which replica it is, which says nothing of it
 * to anybody without the key. JSON text. `replicas` may be NULL. */
void replicas_write_question_id(const struct replicas *replicas, const char *id,
                                struct buffer *out);
/* The replica that has asked, by the id of the client's response (JSON text). false: it names none,
 * or none that is known now. */
bool replicas_find_asker(struct replicas *replicas, struct str response_id,
                         struct session_home *home);

/* Whether there are others now that may have opened a session. */
bool replicas_are_others(struct replicas *replicas);
/* The first of that alone. */
bool replicas_is_over(struct replicas *replicas, const char *id, int64_t epoch);
