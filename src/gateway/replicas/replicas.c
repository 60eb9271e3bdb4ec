/* The settings of relaying, and the table of the others. */
#include "replicas.h"

#include <stdlib.h>
#include <string.h>

#include "relay_signature.h"
#include "request/headers.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/map.h"
#include "taskgate/core/memory.h"

/* Of a window: more than this process could relay. */
#define NONCES_MAX ((size_t)1 << 20)

/* A replica that heartbeats may not have told of yet. There are few of them. */
struct met {
    int64_t epoch;
    char *address;
};

static void met_destroy(void *value)
{
    struct met *met = value;
    free(met->address);
    free(met);
}

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
    pthread_mutex_init(&replicas->lock, NULL);
    replicas->met = map_create();
    return replicas;
}

void replicas_destroy(struct replicas *replicas)
{
    if (!replicas)
        return;
    map_destroy(replicas->met, met_destroy);
    pthread_mutex_destroy(&replicas->lock);
    session_homes_destroy(replicas->homes);
    nonce_cache_destroy(replicas->nonces);
    explicit_bzero(replicas->key, strlen(replicas->key));
    free(replicas->key);
    free(replicas);
}

void replicas_note(struct replicas *replicas, const struct store_home *home)
{
    struct met *met = memory_alloc(sizeof *met);
    met->epoch = home->epoch;
    met->address = memory_copy_text(home->address);
    pthread_mutex_lock(&replicas->lock);
    struct met *before = map_put(replicas->met, str_from(home->replica), met);
    pthread_mutex_unlock(&replicas->lock);
    if (before)
        met_destroy(before);
}

static char *address_met(struct replicas *replicas, const char *id, int64_t epoch)
{
    pthread_mutex_lock(&replicas->lock);
    const struct met *met = map_get(replicas->met, str_from(id));
    bool is_met = met && met->epoch == epoch && *met->address;
    char *address = is_met ? memory_copy_text(met->address) : NULL;
    pthread_mutex_unlock(&replicas->lock);
    return address;
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
    looking->found.is_over = peer->epoch > looking->epoch ||
                             (peer->epoch == looking->epoch && peer->state == STORE_PEER_GONE);
    if (peer->epoch == looking->epoch && !looking->found.is_over && *peer->address)
        looking->found.address = memory_copy_text(peer->address);
    return false;
}

struct peer replicas_find_peer(struct replicas *replicas, const char *id, int64_t epoch)
{
    struct looking looking = {.id = id, .epoch = epoch};
    store_visit_peers(replicas->store, look, &looking);
    if (!looking.found.is_over && !looking.found.address)
        looking.found.address = address_met(replicas, id, epoch);
    return looking.found;
}

void replicas_sign(const struct replicas *replicas, const struct relay_signed *what,
                   struct headers *headers, struct buffer *value)
{
    char nonce[RELAY_NONCE_BYTES];
    relay_nonce_make(nonce);
    struct relay_signed request = *what;
    request.from = str_from(store_replica_id(replicas->store));
    request.time_ms = clock_now_ms();
    request.nonce = str_from(nonce);
    request.headers = headers->items;
    request.header_count = headers->count;
    relay_signature_write(str_from(replicas->key), &request, value);
    headers_add(headers, STR(RELAY_SIGNATURE_HEADER), buffer_str(value));
}

static bool look_for_any(void *context, const struct store_peer *peer)
{
    bool *are_others = context;
    *are_others |= peer->state != STORE_PEER_GONE;
    return !*are_others;
}

bool replicas_are_others(struct replicas *replicas)
{
    bool are_others = false;
    store_visit_peers(replicas->store, look_for_any, &are_others);
    return are_others;
}

bool replicas_is_over(struct replicas *replicas, const char *id, int64_t epoch)
{
    struct peer peer = replicas_find_peer(replicas, id, epoch);
    free(peer.address);
    return peer.is_over;
}
