/* Two generations of nonces: the younger one takes, the elder one is forgotten as a whole. */
#include "nonce_cache.h"

#include <pthread.h>
#include <stdlib.h>

#include "taskgate/core/map.h"
#include "taskgate/core/memory.h"

struct generation {
    struct map *nonces;
    int64_t newest_ms; /* when the last of them was signed */
};

struct nonce_cache {
    pthread_mutex_t lock;
    int64_t window_ms;
    size_t most;
    struct generation young, old;
    int64_t young_since_ms;
    int64_t forgotten_ms; /* the last that is forgotten was signed then */
};

static struct generation generation(void)
{
    return (struct generation){.nonces = map_create(), .newest_ms = INT64_MIN};
}

struct nonce_cache *nonce_cache_create(int64_t window_ms, size_t most)
{
    struct nonce_cache *cache = memory_alloc(sizeof *cache);
    pthread_mutex_init(&cache->lock, NULL);
    cache->window_ms = window_ms;
    cache->most = most;
    cache->young = generation();
    cache->old = generation();
    cache->forgotten_ms = INT64_MIN;
    return cache;
}

void nonce_cache_destroy(struct nonce_cache *cache)
{
    if (!cache)
        return;
    map_destroy(cache->young.nonces, NULL);
    map_destroy(cache->old.nonces, NULL);
    pthread_mutex_destroy(&cache->lock);
    free(cache);
}

/* Nonces in `old` were taken before `young` began, so they are older than the window at the next
 * turn. */
static void turn(struct nonce_cache *cache, int64_t now_ms)
{
    if (now_ms - cache->young_since_ms < cache->window_ms)
        return;
    if (cache->old.newest_ms > cache->forgotten_ms)
        cache->forgotten_ms = cache->old.newest_ms;
    map_destroy(cache->old.nonces, NULL);
    cache->old = cache->young;
    cache->young = generation();
    cache->young_since_ms = now_ms;
}

bool nonce_cache_take(struct nonce_cache *cache, struct str nonce, int64_t signed_ms,
                      int64_t now_ms)
{
    pthread_mutex_lock(&cache->lock);
    turn(cache, now_ms);
    struct generation *young = &cache->young;
    bool is_new = signed_ms > cache->forgotten_ms && !map_get(young->nonces, nonce) &&
                  !map_get(cache->old.nonces, nonce) && map_count(young->nonces) < cache->most;
    if (is_new) {
        map_put(young->nonces, nonce, cache);
        if (signed_ms > young->newest_ms)
            young->newest_ms = signed_ms;
    }
    pthread_mutex_unlock(&cache->lock);
    return is_new;
}
