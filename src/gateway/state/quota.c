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

/* The address of each task, and the counts of the addresses. */

struct task_places {
    pthread_mutex_t lock;
    struct map *by_task; /* task id -> its address, as text */
    struct quota *counts;
};

struct task_places *task_places_create(void)
{
    struct task_places *places = memory_alloc(sizeof *places);
    pthread_mutex_init(&places->lock, NULL);
    places->by_task = map_create();
    places->counts = quota_create();
    return places;
}

void task_places_destroy(struct task_places *places)
{
    if (!places)
        return;
    map_destroy(places->by_task, free);
    quota_destroy(places->counts);
    pthread_mutex_destroy(&places->lock);
    free(places);
}

bool task_places_take(struct task_places *places, struct str task, struct str address, int64_t most)
{
    if (!quota_take(places->counts, address, most, INT64_MAX))
        return false;
    char *copy = memory_copy_str(address);
    pthread_mutex_lock(&places->lock);
    map_put(places->by_task, task, copy);
    pthread_mutex_unlock(&places->lock);
    return true;
}

void task_places_give_back(struct task_places *places, struct str task)
{
    pthread_mutex_lock(&places->lock);
    char *address = map_remove(places->by_task, task);
    pthread_mutex_unlock(&places->lock);
    if (address)
        quota_give_back(places->counts, str_from(address));
    free(address);
}
