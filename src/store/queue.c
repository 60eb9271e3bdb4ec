/* The queue of operations between the loops and the store's thread. */
#include <sys/eventfd.h>

#include "queue.h"
#include "taskgate/core/assert.h"

static void queue_refuse(struct operation *operation)
{
    ASSERT_NUMBERS(operation->events_end, ==, 0); /* it has never run */
    operation->reply.status = STORE_FAILED;
    operation_answer(operation);
}

void store_queue(struct store *store, struct operation *operation)
{
    struct operation **end = &operation->next;
    while (*end)
        end = &(*end)->next;
    pthread_mutex_lock(&store->lock);
    bool stopped = store->stopped, was_empty = !store->first;
    if (!stopped) {
        ASSERT(!*store->end); /* the last one has none behind it */
        *store->end = operation;
        store->end = end;
    }
    pthread_mutex_unlock(&store->lock);
    if (was_empty)
        eventfd_write(store->wake_fd, 1);
    while (stopped && operation) {
        struct operation *next = operation->next;
        queue_refuse(operation);
        operation = next;
    }
}

struct operation *store_dequeue(struct store *store, unsigned limit, bool *stopping)
{
    pthread_mutex_lock(&store->lock);
    struct operation *chain = store->first, **end = &chain;
    for (unsigned count = 0; *end && count < limit; count++)
        end = &(*end)->next;
    store->first = *end;
    if (!store->first)
        store->end = &store->first;
    *end = NULL;
    ASSERT(!*store->end);
    *stopping = store->stopping;
    pthread_mutex_unlock(&store->lock);
    return chain;
}

void store_refuse_queued(struct store *store)
{
    pthread_mutex_lock(&store->lock);
    ASSERT(store->stopping && !store->stopped);
    store->stopped = true;
    struct operation *late = store->first;
    store->first = NULL;
    pthread_mutex_unlock(&store->lock);
    while (late) {
        struct operation *operation = late;
        late = operation->next;
        queue_refuse(operation);
    }
}

/* ---- what a person gives, and what ends by age or by a person ---- */

void store_queue_page(struct store *store, const struct operation_kind *kind, bool in_force_only,
                      int64_t before_sequence, size_t limit, struct store_call call)
{
    ASSERT_NUMBERS(limit, >, 0);
    struct operation *operation = operation_create(kind, call);
    operation->page.in_force_only = in_force_only;
    operation->page.from = before_sequence;
    operation->page.limit = limit;
    store_queue(store, operation);
}

void store_queue_get(struct store *store, const struct operation_kind *kind, struct str id,
                     struct store_call call)
{
    struct operation *operation = operation_create(kind, call);
    operation->id = operation_keep(operation, id);
    store_queue(store, operation);
}

void store_queue_end(struct store *store, const struct operation_kind *kind, struct str id,
                     const char *person, const char *reason, struct store_call call)
{
    struct operation *operation = operation_create(kind, call);
    operation->id = operation_keep(operation, id);
    operation->end.person = operation_keep_text(operation, person);
    operation->end.reason = operation_keep_text(operation, reason);
    store_queue(store, operation);
}
