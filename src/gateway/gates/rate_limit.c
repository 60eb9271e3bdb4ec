/* Token buckets by peer address or principal. */
#include "rate_limit.h"

#define MOST_PEERS 10000

struct bucket {
    struct seen_entry seen; /* first */
    bool is_known;
    double tokens;
    int64_t filled_ms;
};

struct seen_table *rate_limit_create(void)
{
    static const struct seen_table_kind kind = {.entry_bytes = sizeof(struct bucket),
                                                .is_exact = true};
    return seen_table_create(&kind);
}

bool rate_limit_allows(struct seen_table *rate_limit, struct str peer, int64_t per_second,
                       int64_t monotonic_ms)
{
    double most = 2 * (double)per_second;
    struct seen_shard *shard = seen_table_lock(rate_limit, peer);
    struct bucket *bucket = (struct bucket *)seen_shard_obtain(shard, peer, MOST_PEERS);
    if (bucket->is_known)
        bucket->tokens += (double)(monotonic_ms - bucket->filled_ms) * (double)per_second / 1000;
    else
        bucket->tokens = most;
    bucket->is_known = true;
    bucket->filled_ms = monotonic_ms;
    if (bucket->tokens > most)
        bucket->tokens = most;
    bool allowed = bucket->tokens >= 1;
    if (allowed)
        bucket->tokens -= 1;
    seen_shard_unlock(shard);
    return allowed;
}
