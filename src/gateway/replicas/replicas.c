/* The settings of relaying, and the table of the others. */
#include "replicas.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "relay_signature.h"
#include "state/seen_table.h"
#include "taskgate/core/digest.h"
#include "taskgate/core/map.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/core/random.h"
#include "taskgate/core/str.h"

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
    static const struct seen_table_kind homes = {
        .entry_bytes = SEEN_VALUE_BYTES(struct session_home), .limit = "sessions"};
    if (!store_is_shared(store) || !key)
        return NULL;
    struct replicas *replicas = memory_alloc(sizeof *replicas);
    replicas->store = store;
    replicas->key = memory_copy_text(key);
    /* A time may be as far ahead as it may be past. */
    replicas->nonces = nonce_cache_create((int64_t)2 * RELAY_SIGNATURE_WINDOW_MS, NONCES_MAX);
    replicas->homes = seen_table_create(&homes);
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
    seen_table_destroy(replicas->homes);
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

static bool replicas_look(void *context, const struct store_peer *peer)
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
    store_visit_peers(replicas->store, replicas_look, &looking);
    if (!looking.found.is_over && !looking.found.address)
        looking.found.address = address_met(replicas, id, epoch);
    return looking.found;
}

/* ---- who asks ---- */

/* "tg:", a ULID, a dot, a tag: in quotes. */
#define TAG_LENGTH 16
#define TAG_AT (4 + (RANDOM_ULID_BYTES - 1))

/* Nobody without the key tells from it which replica it is. */
static void write_tag(const struct replicas *replicas, const char *id, int64_t epoch,
                      char tag[DIGEST_HEX_BYTES])
{
    OWNED_BUFFER(text);
    buffer_append_format(&text, "taskgate asker %s %" PRId64, id, epoch);
    digest_hmac_sha256_hex(str_from(replicas->key), buffer_str(&text), tag);
    tag[TAG_LENGTH] = '\0';
}

void replicas_write_question_id(const struct replicas *replicas, const char *id, struct buffer *out)
{
    char tag[DIGEST_HEX_BYTES] = "";
    if (replicas)
        write_tag(replicas, store_replica_id(replicas->store), store_replica_epoch(replicas->store),
                  tag);
    buffer_append_format(out, "\"tg:%s%s%s\"", id, *tag ? "." : "", tag);
}

struct asker {
    const struct replicas *replicas;
    struct str tag;
    struct session_home *home;
    bool is_found;
};

static bool replicas_compare(struct asker *asker, const char *id, int64_t epoch)
{
    char tag[DIGEST_HEX_BYTES];
    write_tag(asker->replicas, id, epoch, tag);
    if (!str_equal(asker->tag, str_from(tag)))
        return false;
    *asker->home = (struct session_home){.epoch = epoch};
    snprintf(asker->home->replica, sizeof asker->home->replica, "%s", id);
    asker->is_found = true;
    return true;
}

static bool compare_peer(void *context, const struct store_peer *peer)
{
    return !replicas_compare(context, peer->id, peer->epoch);
}

static void compare_met(struct asker *asker, struct replicas *replicas)
{
    struct str id;
    void *value;
    pthread_mutex_lock(&replicas->lock);
    for (size_t position = 0;
         !asker->is_found && map_next(replicas->met, &position, &id, &value);) {
        char *copy = memory_copy_str(id);
        replicas_compare(asker, copy, ((const struct met *)value)->epoch);
        free(copy);
    }
    pthread_mutex_unlock(&replicas->lock);
}

bool replicas_find_asker(struct replicas *replicas, struct str response_id,
                         struct session_home *home)
{
    struct store *store = replicas->store;
    struct asker asker = {.replicas = replicas, .home = home};
    if (response_id.length != TAG_AT + 1 + TAG_LENGTH + 1 ||
        !str_starts_with(response_id, STR("\"tg:")) || response_id.bytes[TAG_AT] != '.')
        return false;
    asker.tag = str_slice(response_id.bytes + TAG_AT + 1, TAG_LENGTH);
    if (replicas_compare(&asker, store_replica_id(store), store_replica_epoch(store)))
        home->is_here = true;
    else
        store_visit_peers(store, compare_peer, &asker);
    if (!asker.is_found)
        compare_met(&asker, replicas);
    return asker.is_found;
}

/* ---- the others ---- */

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
