/* The store of entities: entering and finding. */
#include "entities.h"

#include <stdlib.h>
#include <string.h>

#include "ast.h"
#include "taskgate/core/memory.h"

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
static size_t find_slot(const struct cedar_entities *entities, const struct cedar_uid *uid)
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
    uint32_t found = entities->slots[find_slot(entities, uid)];
    return found ? entities->items[found - 1] : NULL;
}

static void grow(struct cedar_entities *entities)
{
    entities->capacity = entities->capacity ? entities->capacity * 2 : 16;
    entities->items =
        memory_grow_array(entities->items, entities->capacity, sizeof(struct entity *));
    free(entities->slots);
    entities->slot_mask = entities->capacity * 2 - 1;
    entities->slots = memory_alloc_array(entities->slot_mask + 1, sizeof *entities->slots);
    for (size_t i = 0; i < entities->count; i++)
        entities->slots[find_slot(entities, &entities->items[i]->uid)] = (uint32_t)i + 1;
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
        grow(entities);
    entities->slots[find_slot(entities, uid)] = (uint32_t)entities->count + 1;
    entities->items[entities->count++] = entity;
    return true;
}
