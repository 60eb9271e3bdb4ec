/* The state of this replica and the others that other threads may read. */
#include "taskgate/store/replicas.h"

#include <stdlib.h>
#include <sys/eventfd.h>

#include "queue.h"
#include "replica_rows.h"
#include "taskgate/core/assert.h"
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
    store->yield_observer = (struct signal_observer){loop, yield, context};
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

struct asking {
    struct batch *batch;
    struct store_reply *reply;
    size_t limit;
    bool has_failed;
};

/* A task that was purged meanwhile has no change to tell. */
static bool replicas_add_task(void *context, const struct feed_change *change)
{
    struct asking *asking = context;
    struct store_reply *reply = asking->reply;
    struct task *task = NULL;
    reply->has_more = reply->task_count == asking->limit;
    if (reply->has_more)
        return false;
    enum row_result result = task_rows_get(asking->batch->database, change->task_id, &task);
    if (result == ROW_FOUND) {
        ASSERT_NUMBERS(reply->task_count, <, asking->limit);
        reply->sequences[reply->task_count] = change->sequence;
        reply->tasks[reply->task_count++] = task;
    }
    asking->has_failed = result == ROW_FAILED;
    return !asking->has_failed;
}

static bool run_after(struct batch *batch, struct operation *operation)
{
    struct store_reply *reply = &operation->reply;
    struct asking asking = {.batch = batch, .reply = reply, .limit = operation->page.limit};
    reply->tasks = memory_alloc_array(operation->page.limit, sizeof(struct task *));
    reply->sequences = memory_alloc_array(operation->page.limit, sizeof *reply->sequences);
    return replica_rows_feed_end(batch->database, &reply->last_sequence) &&
           replica_rows_feed_read(batch->database, operation->page.from, operation->page.limit + 1,
                                  replicas_add_task, &asking) &&
           !asking.has_failed;
}

static const struct operation_kind operation_feed_after = {"read the feed", false, run_after, NULL};

void store_feed_after(struct store *store, int64_t after, size_t limit, struct store_call call)
{
    struct operation *operation = operation_create(&operation_feed_after, call);
    operation->page.from = after;
    operation->page.limit = limit;
    store_queue(store, operation);
}
