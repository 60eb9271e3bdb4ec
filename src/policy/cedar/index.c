/*
 * Each policy has one key for each pair of an action and a resource that its scope
 * names; "any" and a type are names, too. A request looks up all the pairs that it meets. The key
 * is only a hash: if it lets a wrong policy through, the scope itself excludes the policy.
 */
#include "index.h"

#include <stdlib.h>

#include "taskgate/core/assert.h"

struct entry {
    uint64_t key;
    uint32_t policy;
};

struct policy_index {
    struct entry *entries; /* by key, then policy */
    size_t count;
};

#define ANY UINT64_C(0x9e3779b97f4a7c15)

static uint64_t type_part(struct str type)
{
    return value_mix(value_hash_text(type) + 1);
}

static uint64_t entity_part(const struct cedar_uid *uid)
{
    return value_mix(uid->hash + 2);
}

static uint64_t make_key(uint64_t action, uint64_t resource)
{
    return value_mix(action * 3 + resource);
}

static uint64_t resource_part(const struct scope *resource)
{
    switch (resource->kind) {
    case SCOPE_ANY:
        return ANY;
    case SCOPE_IS:
        return type_part(resource->type);
    default:
        return entity_part(resource->entities[0]);
    }
}

static int index_compare_entries(const void *left, const void *right)
{
    const struct entry *a = left, *b = right;
    if (a->key != b->key)
        return a->key < b->key ? -1 : 1;
    return a->policy < b->policy ? -1 : a->policy > b->policy;
}

struct policy_index *policy_index_build(struct cedar_policies *policies)
{
    struct policy_index *index = arena_alloc(&policies->arena, sizeof *index);
    size_t count = 0;
    for (size_t i = 0; i < policies->count; i++) {
        const struct scope *action = &policies->items[i]->action;
        count += action->kind == SCOPE_ANY ? 1 : action->count;
    }
    *index = (struct policy_index){
        .entries = arena_alloc_array(&policies->arena, count, sizeof *index->entries)};
    for (size_t i = 0; i < policies->count; i++) {
        const struct scope *action = &policies->items[i]->action;
        uint64_t resource = resource_part(&policies->items[i]->resource);
        struct entry entry = {.key = make_key(ANY, resource), .policy = (uint32_t)i};
        if (action->kind == SCOPE_ANY)
            index->entries[index->count++] = entry;
        for (size_t k = 0; k < action->count; k++) {
            entry.key = make_key(entity_part(action->entities[k]), resource);
            index->entries[index->count++] = entry;
        }
    }
    ASSERT_NUMBERS(index->count, ==, count); /* the room that was counted */
    qsort(index->entries, index->count, sizeof *index->entries, index_compare_entries);
    return index;
}

static void index_choose_key(const struct policy_index *index, uint64_t key, uint64_t *chosen)
{
    size_t low = 0, high = index->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (index->entries[middle].key < key)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < index->count && index->entries[low].key == key; low++)
        chosen[index->entries[low].policy / 64] |= UINT64_C(1) << index->entries[low].policy % 64;
}

static void choose_resources(const struct policy_index *index, uint64_t action,
                             const struct cedar_request *request, const struct entity *resource,
                             uint64_t *chosen)
{
    index_choose_key(index, make_key(action, ANY), chosen);
    index_choose_key(index, make_key(action, type_part(request->resource.type)), chosen);
    index_choose_key(index, make_key(action, entity_part(&request->resource)), chosen);
    for (size_t i = 0; resource && i < resource->ancestor_count; i++)
        index_choose_key(index, make_key(action, entity_part(resource->ancestors[i])), chosen);
}

void policy_index_choose(const struct cedar_policies *policies,
                         const struct cedar_entities *entities, const struct cedar_request *request,
                         uint64_t *chosen)
{
    const struct policy_index *index = policies->index;
    const struct entity *action = entities_find(entities, &request->action);
    const struct entity *resource = entities_find(entities, &request->resource);
    size_t actions = 2 + (action ? action->ancestor_count : 0);
    size_t resources = 3 + (resource ? resource->ancestor_count : 0);
    /* Asking for more pairs than there are policies is no gain. */
    if (resources > policies->count + 16 || actions > (policies->count + 16) / resources) {
        for (size_t i = 0; i < policies->count; i++)
            chosen[i / 64] |= UINT64_C(1) << i % 64;
        return;
    }
    choose_resources(index, ANY, request, resource, chosen);
    choose_resources(index, entity_part(&request->action), request, resource, chosen);
    for (size_t i = 0; action && i < action->ancestor_count; i++)
        choose_resources(index, entity_part(action->ancestors[i]), request, resource, chosen);
}
