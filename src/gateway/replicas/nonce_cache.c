/* Two generations of nonces: the younger one takes, the elder one is forgotten as a whole. */
#include "nonce_cache.h"

#include <pthread.h>
#include <stdlib.h>

#include "taskgate/core/map.h"
#include "taskgate/core/memory.h"

struct nonce_cache {
    pthread_mutex_t lock;
    int64_t window_ms;
    size_t most;
    struct map *young, *old;
    int64_t young_since_ms;
};

struct nonce_cache *nonce_cache_create(int64_t window_ms, size_t most)
{
    struct nonce_cache *cache = memory_alloc(sizeof *cache);
    pthread_mutex_init(&cache->lock, NULL);
    cache->window_ms = window_ms;
    cache->most = most;
    cache->young = map_create();
    cache->old = map_create();
    return cache;
}

void nonce_cache_destroy(struct nonce_cache *cache)
{
    if (!cache)
        return;
    map_destroy(cache->young, NULL);
    map_destroy(cache->old, NULL);
    pthread_mutex_destroy(&cache->lock);
    free(cache);
}

/* What is in `old` was taken before `young` began, so it is older than the window at the next turn.
 */
static void turn(struct nonce_cache *cache, int64_t now_ms)
{
    if (now_ms - cache->young_since_ms < cache->window_ms)
        return;
    map_destroy(cache->old, NULL);
    cache->old = cache->young;
    cache->young = map_create();
    cache->young_since_ms = now_ms;
}

bool nonce_cache_take(struct nonce_cache *cache, struct str nonce, int64_t now_ms)
{
    pthread_mutex_lock(&cache->lock);
    turn(cache, now_ms);
    bool is_new = !map_get(cache->young, nonce) && !map_get(cache->old, nonce) &&
                  map_count(cache->young) < cache->most;
    if (is_new)
        map_put(cache->young, nonce, cache);
    pthread_mutex_unlock(&cache->lock);
    return is_new;
}
