/* The store of entities: entering and finding. */
#include <stdlib.h>

#include "ast.h"
#include "entities.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"

struct cedar_entities *cedar_entities_create(void)
{
    struct cedar_entities *entities = memory_alloc(sizeof *entities);
    arena_init(&entities->heap.arena);
    return entities;
}

void cedar_entities_destroy(struct cedar_entities *entities)
{
    if (!entities)
        return;
    arena_finish(&entities->heap.arena);
    free(entities->items);
    free(entities->slots);
    free(entities);
}

struct cedar_heap *cedar_entities_heap(struct cedar_entities *entities)
{
    return &entities->heap;
}

/* The slot that holds `uid`, or the free one where it belongs. */
static size_t entities_find_slot(const struct cedar_entities *entities, const struct cedar_uid *uid)
{
    size_t slot = uid->hash & entities->slot_mask;
    while (entities->slots[slot] &&
           !cedar_uid_equal(&entities->items[entities->slots[slot] - 1]->uid, uid))
        slot = (slot + 1) & entities->slot_mask;
    return slot;
}

const struct entity *entities_find(const struct cedar_entities *entities,
                                   const struct cedar_uid *uid)
{
    if (!entities || !entities->slots)
        return NULL;
    uint32_t found = entities->slots[entities_find_slot(entities, uid)];
    return found ? entities->items[found - 1] : NULL;
}

static void entities_grow(struct cedar_entities *entities)
{
    entities->capacity = entities->capacity ? entities->capacity * 2 : 16;
    entities->items =
        memory_grow_array(entities->items, entities->capacity, sizeof(struct entity *));
    free(entities->slots);
    entities->slot_mask = entities->capacity * 2 - 1;
    entities->slots = memory_alloc_array(entities->slot_mask + 1, sizeof *entities->slots);
    for (size_t i = 0; i < entities->count; i++)
        entities->slots[entities_find_slot(entities, &entities->items[i]->uid)] = (uint32_t)i + 1;
}

static const struct cedar_set *parents_set(struct arena *arena, const struct entity *entity)
{
    struct cedar_value *values = arena_alloc_array(arena, entity->parent_count, sizeof *values);
    for (size_t i = 0; i < entity->parent_count; i++)
        values[i] = (struct cedar_value){.kind = CEDAR_ENTITY, .entity = &entity->parents[i]};
    struct cedar_value set;
    (void)set_build(arena, values, entity->parent_count, &set); /* nothing nests in it */
    return set.set;
}

/* A duplicate with equal content counts once. */
static bool accept_again(struct cedar_entities *entities, const struct entity *before,
                         const struct entity *now, struct error *error)
{
    struct arena *arena = &entities->heap.arena;
    if (record_equal(before->attributes, now->attributes) &&
        record_equal(before->tags, now->tags) &&
        set_equal(parents_set(arena, before), parents_set(arena, now)))
        return true;
    return error_set(error, "entity %.*s::\"%.*s\" stands twice with different content",
                     STR_ARGS(now->uid.type), STR_ARGS(now->uid.id));
}

static bool check_uid(const struct cedar_uid *uid, struct error *error)
{
    return cedar_type_is_valid(uid->type) ||
           error_set(error, "\"%.*s\" is not the name of an entity type", STR_ARGS(uid->type));
}

bool cedar_entities_add(struct cedar_entities *entities, const struct cedar_uid *uid,
                        const struct cedar_record *attributes, const struct cedar_record *tags,
                        const struct cedar_uid *parents, size_t parent_count, struct error *error)
{
    struct arena *arena = &entities->heap.arena;
    if (entities->sealed)
        return error_set(error, "the entities are sealed");
    if (!check_uid(uid, error))
        return false;
    struct cedar_uid *copies = arena_alloc_array(arena, parent_count, sizeof *copies);
    for (size_t i = 0; i < parent_count; i++) {
        if (!check_uid(&parents[i], error))
            return false;
        if (type_is_action(uid->type) && !type_is_action(parents[i].type))
            return error_set(error, "action \"%.*s\" has a parent that is no action",
                             STR_ARGS(uid->id));
        copies[i] = *uid_copy(arena, &parents[i]);
    }
    struct entity *entity = arena_alloc(arena, sizeof *entity);
    *entity = (struct entity){.uid = *uid_copy(arena, uid),
                              .attributes = attributes ? attributes : &record_empty,
                              .tags = tags ? tags : &record_empty,
                              .parents = copies,
                              .parent_count = parent_count};
    const struct entity *before = entities_find(entities, uid);
    if (before)
        return accept_again(entities, before, entity, error);
    if (entities->count == entities->capacity)
        entities_grow(entities);
    ASSERT_NUMBERS(entities->count, <, entities->capacity);
    entities->slots[entities_find_slot(entities, uid)] = (uint32_t)entities->count + 1;
    entities->items[entities->count++] = entity;
    return true;
}

/* The ancestors of each entity, through any number of steps: computed once, parents before
 * children. */

/* Over all entities, so that a hostile hierarchy cannot take all memory. */
#define ANCESTORS_MAX ((size_t)4 * 1024 * 1024)

/* An entity, while its parents are visited. */
struct step {
    struct entity *entity;
    size_t next_parent;
};

static int compare_hashes(const void *left, const void *right)
{
    const struct cedar_uid *const *a = left, *const *b = right;
    return (*a)->hash < (*b)->hash ? -1 : (*a)->hash > (*b)->hash;
}

/* Drops duplicates; `uids` are sorted by hash. */
static size_t drop_repeats(const struct cedar_uid **uids, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        size_t k = kept;
        while (k > 0 && uids[k - 1]->hash == uids[i]->hash &&
               !cedar_uid_equal(uids[k - 1], uids[i]))
            k--;
        if (k == 0 || uids[k - 1]->hash != uids[i]->hash)
            uids[kept++] = uids[i];
    }
    return kept;
}

/* The ancestors of the entity's parents are known. */
static bool entities_collect(struct cedar_entities *entities, struct entity *entity, size_t *total,
                             struct error *error)
{
    size_t count = entity->parent_count;
    for (size_t i = 0; i < entity->parent_count; i++) {
        const struct entity *parent = entities_find(entities, &entity->parents[i]);
        count += parent ? parent->ancestor_count : 0;
    }
    *total += count;
    if (*total > ANCESTORS_MAX)
        return error_set(error, "the entities have more than %zu ancestors", ANCESTORS_MAX);
    const struct cedar_uid **uids =
        arena_alloc_array(&entities->heap.arena, count, sizeof(struct cedar_uid *));
    size_t used = 0;
    for (size_t i = 0; i < entity->parent_count; i++) {
        const struct entity *parent = entities_find(entities, &entity->parents[i]);
        uids[used++] = &entity->parents[i];
        for (size_t k = 0; parent && k < parent->ancestor_count; k++)
            uids[used++] = parent->ancestors[k];
    }
    if (count > 1)
        qsort(uids, count, sizeof(struct cedar_uid *), compare_hashes);
    entity->ancestors = uids;
    entity->ancestor_count = drop_repeats(uids, count);
    entity->state = ENTITY_DONE;
    return true;
}

/* Goes up from `first` until all above it are done. `steps` has room for every entity. */
static bool climb(struct cedar_entities *entities, struct entity *first, struct step *steps,
                  size_t *total, struct error *error)
{
    size_t depth = 0;
    steps[depth++] = (struct step){.entity = first};
    first->state = ENTITY_OPEN;
    while (depth > 0) {
        struct step *step = &steps[depth - 1];
        struct entity *entity = step->entity;
        if (step->next_parent == entity->parent_count) {
            if (!entities_collect(entities, entity, total, error))
                return false;
            depth--;
            continue;
        }
        /* The store is ours to change while it is not sealed. */
        struct entity *parent =
            (struct entity *)entities_find(entities, &entity->parents[step->next_parent++]);
        if (!parent || parent->state == ENTITY_DONE)
            continue;
        if (parent->state == ENTITY_OPEN) {
            entities->culprit = &parent->uid;
            return error_set(error, "entity %.*s::\"%.*s\" is its own ancestor",
                             STR_ARGS(parent->uid.type), STR_ARGS(parent->uid.id));
        }
        parent->state = ENTITY_OPEN;
        steps[depth++] = (struct step){.entity = parent};
    }
    return true;
}

/* Fills in the ancestors of all. False on a circle. */
static bool entities_close_all(struct cedar_entities *entities, struct error *error)
{
    OWNED struct step *steps = memory_alloc_array(entities->count, sizeof *steps);
    size_t total = 0;
    bool good = true;
    for (size_t i = 0; good && i < entities->count; i++)
        if (entities->items[i]->state == ENTITY_NEW)
            good = climb(entities, entities->items[i], steps, &total, error);
    return good;
}

bool cedar_entities_seal(struct cedar_entities *entities, struct error *error)
{
    entities->sealed = entities->sealed || entities_close_all(entities, error);
    return entities->sealed;
}

bool entity_has_ancestor(const struct entity *entity, const struct cedar_uid *uid)
{
    size_t low = 0, high = entity->ancestor_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (entity->ancestors[middle]->hash < uid->hash)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < entity->ancestor_count && entity->ancestors[low]->hash == uid->hash; low++)
        if (cedar_uid_equal(entity->ancestors[low], uid))
            return true;
    return false;
}
