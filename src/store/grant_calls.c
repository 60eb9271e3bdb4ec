/* The store's door: calls about grants. */
#include "store_internal.h"
#include "taskgate/core/memory.h"

void store_observe_grants(struct store *store, struct loop *loop, store_grant_observer observer,
                          void *context)
{
    pthread_mutex_lock(&store->lock);
    store->grant_observer = (struct grant_observer){loop, observer, context};
    pthread_mutex_unlock(&store->lock);
}

void store_grants_configure(struct store *store, const struct store_electorate *electorate)
{
    struct operation *operation =
        operation_create(&operation_grants_configure, (struct store_call){NULL, NULL, NULL});
    operation->electorate = *electorate;
    store_queue(store, operation);
}

void store_grant_list(struct store *store, bool in_force_only, int64_t before_sequence,
                      size_t limit, struct store_call call)
{
    struct operation *operation = operation_create(&operation_grant_list, call);
    operation->in_force_only = in_force_only;
    operation->sequence = before_sequence;
    operation->limit = limit;
    store_queue(store, operation);
}

void store_grant_get(struct store *store, struct str id, struct store_call call)
{
    struct operation *operation = operation_create(&operation_grant_get, call);
    operation->id = memory_copy_str(id);
    store_queue(store, operation);
}

void store_grant_revoke(struct store *store, struct str id, const char *person, const char *reason,
                        struct store_call call)
{
    struct operation *operation = operation_create(&operation_grant_revoke, call);
    operation->id = memory_copy_str(id);
    operation->actor_name = memory_copy_text(person);
    operation->reason = memory_copy_text(reason);
    store_queue(store, operation);
}
