/* The open calls of all workers, by their handles. */
#include "handles.h"

#include <pthread.h>
#include <stdlib.h>

#include "taskgate/core/map.h"
#include "taskgate/core/memory.h"

struct bridge_handles {
    pthread_mutex_t lock;
    struct map *rounds; /* handle -> struct round */
};

struct round {
    int64_t number;
    bool is_answered;
};

struct bridge_handles *bridge_handles_create(void)
{
    struct bridge_handles *handles = memory_alloc(sizeof *handles);
    pthread_mutex_init(&handles->lock, NULL);
    handles->rounds = map_create();
    return handles;
}

void bridge_handles_destroy(struct bridge_handles *handles)
{
    if (!handles)
        return;
    map_destroy(handles->rounds, free);
    pthread_mutex_destroy(&handles->lock);
    free(handles);
}

void bridge_handles_open(struct bridge_handles *handles, struct str handle, int64_t round)
{
    pthread_mutex_lock(&handles->lock);
    struct round *entry = map_get(handles->rounds, handle);
    if (!entry) {
        entry = memory_alloc(sizeof *entry);
        map_put(handles->rounds, handle, entry);
    }
    *entry = (struct round){.number = round};
    pthread_mutex_unlock(&handles->lock);
}

void bridge_handles_forget(struct bridge_handles *handles, struct str handle)
{
    pthread_mutex_lock(&handles->lock);
    free(map_remove(handles->rounds, handle));
    pthread_mutex_unlock(&handles->lock);
}

enum bridge_claim bridge_handles_claim(struct bridge_handles *handles, struct str handle,
                                       int64_t round)
{
    enum bridge_claim claim = BRIDGE_LOST;
    pthread_mutex_lock(&handles->lock);
    struct round *entry = map_get(handles->rounds, handle);
    if (entry && (entry->is_answered || entry->number != round)) {
        claim = BRIDGE_ANSWERED;
    } else if (entry) {
        entry->is_answered = true;
        claim = BRIDGE_CLAIMED;
    }
    pthread_mutex_unlock(&handles->lock);
    return claim;
}
