/* Counts by holder. A holder with a count of zero is forgotten. */
#include "quota.h"

#include <pthread.h>
#include <stdlib.h>

#include "taskgate/core/assert.h"
#include "taskgate/core/map.h"
#include "taskgate/core/memory.h"

struct quota {
    pthread_mutex_t lock;
    struct map *counts;  /* holder -> int64_t */
    struct map *holders; /* thing -> its holder, as text */
    int64_t sum;
};

struct quota *quota_create(void)
{
    struct quota *quota = memory_alloc(sizeof *quota);
    pthread_mutex_init(&quota->lock, NULL);
    quota->counts = map_create();
    quota->holders = map_create();
    return quota;
}

void quota_destroy(struct quota *quota)
{
    if (!quota)
        return;
    map_destroy(quota->counts, free);
    map_destroy(quota->holders, free);
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
        ASSERT_NUMBERS(*count, >, 0);
        ASSERT_NUMBERS(quota->sum, >=, *count);
        quota->sum--;
        if (--*count == 0)
            free(map_remove(quota->counts, holder));
    }
    pthread_mutex_unlock(&quota->lock);
}

bool quota_take_for(struct quota *quota, struct str thing, struct str holder, int64_t most)
{
    if (!quota_take(quota, holder, most, INT64_MAX))
        return false;
    char *copy = memory_copy_str(holder);
    pthread_mutex_lock(&quota->lock);
    const void *earlier = map_put(quota->holders, thing, copy);
    pthread_mutex_unlock(&quota->lock);
    ASSERT(!earlier);
    return true;
}

void quota_give_back_for(struct quota *quota, struct str thing)
{
    pthread_mutex_lock(&quota->lock);
    char *holder = map_remove(quota->holders, thing);
    pthread_mutex_unlock(&quota->lock);
    if (holder)
        quota_give_back(quota, str_from(holder));
    free(holder);
}
