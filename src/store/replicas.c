/* The state of this replica and the others that other threads may read. */
#include "taskgate/store/replicas.h"

#include <stdlib.h>
#include <sys/eventfd.h>

#include "store_internal.h"
#include "taskgate/core/memory.h"

const char *store_replica_id(const struct store *store)
{
    return store->replica.id;
}

int64_t store_replica_epoch(const struct store *store)
{
    return atomic_load(&store->epoch);
}

void store_visit_peers(struct store *store,
                       bool (*visit)(void *context, const struct store_peer *peer), void *context)
{
    pthread_mutex_lock(&store->lock);
    for (size_t i = 0; i < store->peers.count; i++) {
        if (!visit(context, &store->peers.items[i]))
            break;
    }
    pthread_mutex_unlock(&store->lock);
}

void store_announce(struct store *store, const char *address)
{
    pthread_mutex_lock(&store->lock);
    free(store->address);
    store->address = memory_copy_text(address);
    store->beats_now = true;
    pthread_mutex_unlock(&store->lock);
    eventfd_write(store->wake_fd, 1);
}

void store_observe_yield(struct store *store, struct loop *loop, loop_callback yield, void *context)
{
    pthread_mutex_lock(&store->lock);
    store->yield_observer = (struct yield_observer){loop, yield, context};
    pthread_mutex_unlock(&store->lock);
}

bool store_is_shared(const struct store *store)
{
    return store->backend->is_shared;
}

enum store_condition store_condition(const struct store *store)
{
    if (atomic_load(&store->is_held))
        return STORE_HELD;
    if (atomic_load(&store->healthy))
        return STORE_WORKS;
    return atomic_load(&store->was_reached) ? STORE_OUT : STORE_NOT_REACHED;
}

/* ---- the feed ---- */

void store_observe_feed(struct store *store, struct loop *loop, store_feed_observer callback,
                        void *context)
{
    struct observer *observer = memory_alloc(sizeof *observer);
    *observer = (struct observer){.loop = loop, .feed = callback, .context = context};
    pthread_mutex_lock(&store->lock);
    observer->next = store->observers;
    store->observers = observer;
    pthread_mutex_unlock(&store->lock);
}

void store_feed_after(struct store *store, int64_t after, size_t limit, struct store_call call)
{
    struct operation *operation = operation_create(&operation_feed_after, call);
    operation->sequence = after;
    operation->limit = limit;
    store_queue(store, operation);
}
