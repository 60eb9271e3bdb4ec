/* The store's door: calls about the outbox. */
#include <string.h>

#include "store_internal.h"
#include "taskgate/core/memory.h"

void store_outbox_observe(struct store *store, struct loop *loop, loop_callback observer,
                          void *context)
{
    pthread_mutex_lock(&store->lock);
    store->outbox_observer = (struct outbox_observer){loop, observer, context};
    pthread_mutex_unlock(&store->lock);
}

void store_outbox_configure(struct store *store, const struct store_outbox_target *targets,
                            size_t count, struct store_call call)
{
    struct operation *operation = operation_create(&operation_outbox_configure, call);
    operation->targets = memory_alloc_array(count, sizeof *operation->targets);
    operation->target_count = count;
    if (count > 0)
        memcpy(operation->targets, targets, count * sizeof *targets);
    store_queue(store, operation);
}

void store_outbox_due(struct store *store, struct str target, size_t limit, struct store_call call)
{
    struct operation *operation = operation_create(&operation_outbox_due, call);
    operation->id = memory_copy_str(target);
    operation->limit = limit;
    store_queue(store, operation);
}

static struct operation *create_of_delivery(const struct operation_kind *kind, int64_t sequence,
                                            struct store_call call)
{
    struct operation *operation = operation_create(kind, call);
    operation->sequence = sequence;
    return operation;
}

void store_outbox_delivered(struct store *store, int64_t sequence, struct store_call call)
{
    store_queue(store, create_of_delivery(&operation_outbox_delivered, sequence, call));
}

void store_outbox_posted(struct store *store, int64_t sequence, const char *reference,
                         struct store_call call)
{
    struct operation *operation = create_of_delivery(&operation_outbox_delivered, sequence, call);
    operation->reason = memory_copy_text(reference);
    store_queue(store, operation);
}

void store_outbox_messages(struct store *store, struct str target, size_t limit,
                           struct store_call call)
{
    struct operation *operation = operation_create(&operation_outbox_messages, call);
    operation->id = memory_copy_str(target);
    operation->limit = limit;
    store_queue(store, operation);
}

void store_outbox_messages_of(struct store *store, struct str task_id, struct store_call call)
{
    struct operation *operation = operation_create(&operation_outbox_messages_of, call);
    operation->id = memory_copy_str(task_id);
    store_queue(store, operation);
}

void store_outbox_see(struct store *store, struct str target, struct str task_id, struct str seen,
                      struct store_call call)
{
    struct operation *operation = operation_create(&operation_outbox_see, call);
    operation->id = memory_copy_str(task_id);
    operation->source = memory_copy_str(target);
    operation->reason = memory_copy_str(seen);
    store_queue(store, operation);
}

void store_outbox_postpone(struct store *store, int64_t sequence, int64_t due_ms,
                           struct store_call call)
{
    struct operation *operation = create_of_delivery(&operation_outbox_postpone, sequence, call);
    operation->time_ms = due_ms;
    store_queue(store, operation);
}

void store_outbox_give_up(struct store *store, int64_t sequence, const char *reason,
                          struct store_call call)
{
    struct operation *operation = create_of_delivery(&operation_outbox_give_up, sequence, call);
    operation->reason = memory_copy_text(reason);
    store_queue(store, operation);
}
