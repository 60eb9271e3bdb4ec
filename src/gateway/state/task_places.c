/* The address of each task, and the counts of the addresses. */
#include "task_places.h"

#include <pthread.h>
#include <stdlib.h>

#include "quota.h"
#include "taskgate/core/map.h"
#include "taskgate/core/memory.h"

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
