/* Token buckets by peer address or principal. */
#include "rate_limit.h"

#include <pthread.h>
#include <stdlib.h>

#include "taskgate/core/map.h"
#include "taskgate/core/memory.h"

#define MOST_PEERS 10000

struct bucket {
    double tokens;
    int64_t filled_ms;
};

struct rate {
    pthread_mutex_t lock;
    struct map *buckets;
};

struct rate *rate_create(void)
{
    struct rate *rate = memory_alloc(sizeof *rate);
    pthread_mutex_init(&rate->lock, NULL);
    rate->buckets = map_create();
    return rate;
}

void rate_destroy(struct rate *rate)
{
    if (!rate)
        return;
    map_destroy(rate->buckets, free);
    pthread_mutex_destroy(&rate->lock);
    free(rate);
}

static struct bucket *bucket_of(struct rate *rate, struct str peer, double most, int64_t now_ms)
{
    struct bucket *bucket = map_get(rate->buckets, peer);
    if (bucket)
        return bucket;
    if (map_count(rate->buckets) >= MOST_PEERS) {
        /* So many peers at once are no longer told apart: all begin anew. */
        map_destroy(rate->buckets, free);
        rate->buckets = map_create();
    }
    bucket = memory_alloc(sizeof *bucket);
    *bucket = (struct bucket){most, now_ms};
    map_put(rate->buckets, peer, bucket);
    return bucket;
}

bool rate_allows(struct rate *rate, struct str peer, int64_t per_second, int64_t monotonic_ms)
{
    double most = 2 * (double)per_second;
    pthread_mutex_lock(&rate->lock);
    struct bucket *bucket = bucket_of(rate, peer, most, monotonic_ms);
    bucket->tokens += (double)(monotonic_ms - bucket->filled_ms) * (double)per_second / 1000;
    bucket->filled_ms = monotonic_ms;
    if (bucket->tokens > most)
        bucket->tokens = most;
    bool allowed = bucket->tokens >= 1;
    if (allowed)
        bucket->tokens -= 1;
    pthread_mutex_unlock(&rate->lock);
    return allowed;
}
