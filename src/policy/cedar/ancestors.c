/* The ancestors of each entity, through any number of steps: computed once, parents before
 * children. */
#include <stdlib.h>

#include "entities.h"
#include "taskgate/core/memory.h"

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
static bool collect(struct cedar_entities *entities, struct entity *entity, size_t *total,
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
            if (!collect(entities, entity, total, error))
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
static bool close_all(struct cedar_entities *entities, struct error *error)
{
    struct step *steps = memory_alloc_array(entities->count, sizeof *steps);
    size_t total = 0;
    bool good = true;
    for (size_t i = 0; good && i < entities->count; i++)
        if (entities->items[i]->state == ENTITY_NEW)
            good = climb(entities, entities->items[i], steps, &total, error);
    free(steps);
    return good;
}

bool cedar_entities_seal(struct cedar_entities *entities, struct error *error)
{
    entities->sealed = entities->sealed || close_all(entities, error);
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
