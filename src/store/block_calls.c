/* The store's door: calls about blocks. */
#include "store_internal.h"

#include "taskgate/core/memory.h"
#include "taskgate/store/blocks.h"

void store_observe_blocks(struct store *store, struct loop *loop, store_block_observer observer,
                          void *context)
{
    pthread_mutex_lock(&store->lock);
    store->block_observer = (struct grant_observer){loop, observer, context};
    pthread_mutex_unlock(&store->lock);
}

void store_block_create(struct store *store, const struct store_block_wish *wish,
                        struct store_call call)
{
    struct operation *operation = operation_create(&operation_block_create, call);
    operation->id = memory_copy_str(wish->task_id);
    operation->workflow = memory_copy_text(store_block_scope_name(wish->scope));
    operation->time_ms = wish->for_ms;
    operation->reason = memory_copy_text(wish->reason);
    operation->actor_name = memory_copy_text(wish->person);
    store_queue(store, operation);
}

void store_block_list(struct store *store, bool in_force_only, int64_t before_sequence,
                      size_t limit, struct store_call call)
{
    struct operation *operation = operation_create(&operation_block_list, call);
    operation->in_force_only = in_force_only;
    operation->sequence = before_sequence;
    operation->limit = limit;
    store_queue(store, operation);
}

void store_block_get(struct store *store, struct str id, struct store_call call)
{
    struct operation *operation = operation_create(&operation_block_get, call);
    operation->id = memory_copy_str(id);
    store_queue(store, operation);
}

void store_block_lift(struct store *store, struct str id, const char *person, const char *reason,
                      struct store_call call)
{
    struct operation *operation = operation_create(&operation_block_lift, call);
    operation->id = memory_copy_str(id);
    operation->actor_name = memory_copy_text(person);
    operation->reason = memory_copy_text(reason);
    store_queue(store, operation);
}
