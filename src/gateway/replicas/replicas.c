/* The settings of relaying, and the table of the others. */
#include "replicas.h"

#include <stdlib.h>
#include <string.h>

#include "relay_signature.h"
#include "taskgate/core/memory.h"

/* Of a window: more than this process could relay. */
#define NONCES_MAX ((size_t)1 << 20)

struct replicas *replicas_create(struct store *store, const char *key)
{
    if (!store_is_shared(store) || !key)
        return NULL;
    struct replicas *replicas = memory_alloc(sizeof *replicas);
    replicas->store = store;
    replicas->key = memory_copy_text(key);
    /* A time may be as far ahead as it may be past. */
    replicas->nonces = nonce_cache_create((int64_t)2 * RELAY_SIGNATURE_WINDOW_MS, NONCES_MAX);
    replicas->homes = session_homes_create();
    return replicas;
}

void replicas_destroy(struct replicas *replicas)
{
    if (!replicas)
        return;
    session_homes_destroy(replicas->homes);
    nonce_cache_destroy(replicas->nonces);
    explicit_bzero(replicas->key, strlen(replicas->key));
    free(replicas->key);
    free(replicas);
}

struct looking {
    const char *id;
    int64_t epoch;
    struct peer found;
};

static bool look(void *context, const struct store_peer *peer)
{
    struct looking *looking = context;
    if (strcmp(peer->id, looking->id) != 0)
        return true;
    looking->found.is_there = peer->state != STORE_PEER_GONE && peer->epoch == looking->epoch;
    if (looking->found.is_there && peer->address && *peer->address)
        looking->found.address = memory_copy_text(peer->address);
    return false;
}

struct peer replicas_find_peer(struct replicas *replicas, const char *id, int64_t epoch)
{
    struct looking looking = {.id = id, .epoch = epoch};
    store_visit_peers(replicas->store, look, &looking);
    return looking.found;
}

bool replicas_lives(struct replicas *replicas, const char *id, int64_t epoch)
{
    struct peer peer = replicas_find_peer(replicas, id, epoch);
    free(peer.address);
    return peer.is_there;
}
