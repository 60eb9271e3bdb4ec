/*
 * The store of entities as the evaluator reads it.
 */
#pragma once

#include "value.h"

struct entity {
    struct cedar_uid uid;
    const struct cedar_record *attributes, *tags; /* never NULL */
    const struct cedar_uid *parents;
    size_t parent_count;
    /* All of them, by hash; known when the store is sealed. */
    const struct cedar_uid *const *ancestors;
    size_t ancestor_count;
    enum { ENTITY_NEW, ENTITY_OPEN, ENTITY_DONE } state; /* while ancestors are worked out */
};

struct cedar_entities {
    struct cedar_heap heap;
    struct entity **items;
    size_t count, capacity;
    uint32_t *slots; /* index + 1, 0 for free; NULL while there are none */
    size_t slot_mask;
    bool sealed;
    const struct cedar_uid *culprit; /* why it could not be sealed: its own ancestor */
};

/* NULL when it is not there. `entities` may be NULL. */
const struct entity *entities_find(const struct cedar_entities *entities,
                                   const struct cedar_uid *uid);
bool entity_has_ancestor(const struct entity *entity, const struct cedar_uid *uid);
