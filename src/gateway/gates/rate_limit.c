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

struct rate_limit {
    pthread_mutex_t lock;
    struct map *buckets;
};

struct rate_limit *rate_limit_create(void)
{
    struct rate_limit *rate_limit = memory_alloc(sizeof *rate_limit);
    pthread_mutex_init(&rate_limit->lock, NULL);
    rate_limit->buckets = map_create();
    return rate_limit;
}

void rate_limit_destroy(struct rate_limit *rate_limit)
{
    if (!rate_limit)
        return;
    map_destroy(rate_limit->buckets, free);
    pthread_mutex_destroy(&rate_limit->lock);
    free(rate_limit);
}

static struct bucket *bucket_of(struct rate_limit *rate_limit, struct str peer, double most,
                                int64_t now_ms)
{
    struct bucket *bucket = map_get(rate_limit->buckets, peer);
    if (bucket)
        return bucket;
    if (map_count(rate_limit->buckets) >= MOST_PEERS) {
        /* Beyond so many peers all buckets are dropped, and all begin anew. */
        map_destroy(rate_limit->buckets, free);
        rate_limit->buckets = map_create();
    }
    bucket = memory_alloc(sizeof *bucket);
    *bucket = (struct bucket){most, now_ms};
    map_put(rate_limit->buckets, peer, bucket);
    return bucket;
}

bool rate_limit_allows(struct rate_limit *rate_limit, struct str peer, int64_t per_second,
                       int64_t monotonic_ms)
{
    double most = 2 * (double)per_second;
    pthread_mutex_lock(&rate_limit->lock);
    struct bucket *bucket = bucket_of(rate_limit, peer, most, monotonic_ms);
    bucket->tokens += (double)(monotonic_ms - bucket->filled_ms) * (double)per_second / 1000;
    bucket->filled_ms = monotonic_ms;
    if (bucket->tokens > most)
        bucket->tokens = most;
    bool allowed = bucket->tokens >= 1;
    if (allowed)
        bucket->tokens -= 1;
    pthread_mutex_unlock(&rate_limit->lock);
    return allowed;
}
