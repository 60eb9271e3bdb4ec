/* The store's door: calls about definitions. */
#include "store_internal.h"

#include "taskgate/core/memory.h"
#include "taskgate/store/definitions.h"

void store_observe_definitions(struct store *store, struct loop *loop,
                               store_definition_observer observer, void *context)
{
    pthread_mutex_lock(&store->lock);
    store->definition_observer = (struct grant_observer){loop, observer, context};
    pthread_mutex_unlock(&store->lock);
}

void store_definitions_see(struct store *store, struct store_definition *items, size_t count,
                           struct store_call call)
{
    struct operation *operation = operation_create(&operation_definitions_see, call);
    operation->definitions = (struct definition_list){items, count, count};
    store_queue(store, operation);
}

void store_definition_list(struct store *store, const struct store_definition_query *query,
                           struct store_call call)
{
    struct operation *operation = operation_create(&operation_definition_list, call);
    operation->source = memory_copy_str(query->source);
    operation->workflow = memory_copy_str(query->kind);
    operation->tool = memory_copy_str(query->name);
    operation->changed_only = query->changed_only;
    operation->flagged_only = query->flagged_only;
    operation->sequence = query->after_sequence;
    operation->limit = query->limit;
    store_queue(store, operation);
}

void store_definition_get(struct store *store, struct str id, struct store_call call)
{
    struct operation *operation = operation_create(&operation_definition_get, call);
    operation->id = memory_copy_str(id);
    store_queue(store, operation);
}

void store_definition_accept(struct store *store, struct str id, struct str digest,
                             const char *person, struct store_call call)
{
    struct operation *operation = operation_create(&operation_definition_accept, call);
    operation->id = memory_copy_str(id);
    operation->token_digest = memory_copy_str(digest);
    operation->actor_name = memory_copy_text(person);
    store_queue(store, operation);
}
