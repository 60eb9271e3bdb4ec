/* Sets: distinct elements, found by their hashes. */
#include <string.h>

#include "value.h"

/* Up to here the hashes are compared one after the other. */
#define SEARCHED_ONE_BY_ONE 8

static size_t slots_for(size_t count)
{
    size_t size = 16;
    while (size < count * 2)
        size *= 2;
    return size;
}

bool set_build(struct arena *arena, struct cedar_value *elements, size_t count,
               struct cedar_value *set)
{
    uint64_t *hashes = arena_alloc_array(arena, count, sizeof *hashes);
    uint32_t *slots = NULL;
    struct cedar_set *made = arena_alloc(arena, sizeof *made);
    *made = (struct cedar_set){.items = elements, .hashes = hashes};
    if (count > SEARCHED_ONE_BY_ONE) {
        made->slot_mask = slots_for(count) - 1;
        slots = arena_alloc_array(arena, made->slot_mask + 1, sizeof *slots);
        memset(slots, 0, (made->slot_mask + 1) * sizeof *slots);
        made->slots = slots;
    }
    uint64_t sum = 0, weight = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t hash = value_hash(&elements[i]);
        size_t free_slot = 0;
        if (set_find(made, &elements[i], hash, &free_slot) < made->count)
            continue;
        elements[made->count] = elements[i];
        hashes[made->count++] = hash;
        if (slots)
            slots[free_slot] = (uint32_t)made->count;
        sum += hash;
        weight += value_weight(&elements[i]);
        if (value_depth(&elements[i]) > made->depth)
            made->depth = value_depth(&elements[i]);
        made->has_names = made->has_names || value_has_names(&elements[i]);
    }
    made->hash = value_mix(sum + made->count);
    made->weight = weight > UINT32_MAX ? UINT32_MAX : (uint32_t)weight;
    *set = (struct cedar_value){.kind = CEDAR_SET, .set = made};
    return ++made->depth <= CEDAR_MAX_VALUE_DEPTH;
}

bool cedar_set(struct cedar_heap *heap, const struct cedar_value *elements, size_t count,
               struct cedar_value *set)
{
    struct cedar_value *copy = arena_alloc_array(&heap->arena, count, sizeof *copy);
    if (count)
        memcpy(copy, elements, count * sizeof *copy);
    return set_build(&heap->arena, copy, count, set);
}

bool set_contains(const struct cedar_set *set, const struct cedar_value *value)
{
    return set->count && set_contains_hashed(set, value, value_hash(value));
}

bool set_overlaps(const struct cedar_set *a, const struct cedar_set *b)
{
    const struct cedar_set *smaller = a->count < b->count ? a : b;
    const struct cedar_set *larger = smaller == a ? b : a;
    for (size_t i = 0; i < smaller->count; i++)
        if (set_contains_hashed(larger, &smaller->items[i], smaller->hashes[i]))
            return true;
    return false;
}
