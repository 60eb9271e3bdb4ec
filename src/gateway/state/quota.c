/* Counts by holder. A holder with a count of zero is forgotten. */
#include "quota.h"

#include <pthread.h>
#include <stdlib.h>

#include "taskgate/core/map.h"
#include "taskgate/core/memory.h"

struct quota {
    pthread_mutex_t lock;
    struct map *counts; /* holder -> int64_t */
    int64_t sum;
};

struct quota *quota_create(void)
{
    struct quota *quota = memory_alloc(sizeof *quota);
    pthread_mutex_init(&quota->lock, NULL);
    quota->counts = map_create();
    return quota;
}

void quota_destroy(struct quota *quota)
{
    if (!quota)
        return;
    map_destroy(quota->counts, free);
    pthread_mutex_destroy(&quota->lock);
    free(quota);
}

static int64_t *count_of(struct quota *quota, struct str holder)
{
    int64_t *count = map_get(quota->counts, holder);
    if (!count) {
        count = memory_alloc(sizeof *count);
        map_put(quota->counts, holder, count);
    }
    return count;
}

bool quota_take(struct quota *quota, struct str holder, int64_t most, int64_t most_in_all)
{
    pthread_mutex_lock(&quota->lock);
    int64_t *count = count_of(quota, holder);
    bool is_free = *count < most && quota->sum < most_in_all;
    *count += is_free;
    quota->sum += is_free;
    if (*count == 0)
        free(map_remove(quota->counts, holder));
    pthread_mutex_unlock(&quota->lock);
    return is_free;
}

int64_t quota_count(struct quota *quota, struct str holder)
{
    pthread_mutex_lock(&quota->lock);
    const int64_t *found = map_get(quota->counts, holder);
    int64_t count = found ? *found : 0;
    pthread_mutex_unlock(&quota->lock);
    return count;
}

bool quota_has(struct quota *quota, struct str holder)
{
    return quota_count(quota, holder) > 0;
}

void quota_give_back(struct quota *quota, struct str holder)
{
    pthread_mutex_lock(&quota->lock);
    int64_t *count = map_get(quota->counts, holder);
    if (count) {
        quota->sum--;
        if (--*count == 0)
            free(map_remove(quota->counts, holder));
    }
    pthread_mutex_unlock(&quota->lock);
}
