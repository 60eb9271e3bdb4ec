/* Sets: distinct elements, found by their hashes. */
#include <string.h>

#include "value.h"

/* Up to here the hashes are compared one after the other. */
#define SEARCHED_ONE_BY_ONE 8

/* A set while it is built. */
struct building {
    struct cedar_value *items;
    uint64_t *hashes;
    uint32_t *slots;
    size_t slot_mask;
    size_t count;
};

/* Where `value` stands among the items, or `count`. With slots, `free_slot` is where it would
 * be entered. */
static size_t find(const struct building *set, const struct cedar_value *value, uint64_t hash,
                   size_t *free_slot)
{
    if (!set->slots) {
        for (size_t i = 0; i < set->count; i++)
            if (set->hashes[i] == hash && cedar_value_equal(&set->items[i], value))
                return i;
        return set->count;
    }
    size_t slot = hash & set->slot_mask;
    for (; set->slots[slot]; slot = (slot + 1) & set->slot_mask) {
        size_t i = set->slots[slot] - 1;
        if (set->hashes[i] == hash && cedar_value_equal(&set->items[i], value))
            return i;
    }
    *free_slot = slot;
    return set->count;
}

static void make_slots(struct building *set, struct arena *arena, size_t count)
{
    size_t size = 16;
    while (size < count * 2)
        size *= 2;
    set->slots = arena_alloc_array(arena, size, sizeof *set->slots);
    memset(set->slots, 0, size * sizeof *set->slots);
    set->slot_mask = size - 1;
}

bool set_build(struct arena *arena, struct cedar_value *elements, size_t count,
               struct cedar_value *set)
{
    struct building building = {
        .items = elements,
        .hashes = arena_alloc_array(arena, count, sizeof *building.hashes),
    };
    if (count > SEARCHED_ONE_BY_ONE)
        make_slots(&building, arena, count);
    uint64_t sum = 0, weight = 0;
    unsigned depth = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t hash = value_hash(&elements[i]);
        size_t free_slot = 0;
        if (find(&building, &elements[i], hash, &free_slot) < building.count)
            continue;
        building.items[building.count] = elements[i];
        building.hashes[building.count++] = hash;
        if (building.slots)
            building.slots[free_slot] = (uint32_t)building.count;
        sum += hash;
        weight += value_weight(&elements[i]);
        if (value_depth(&elements[i]) > depth)
            depth = value_depth(&elements[i]);
    }
    if (depth >= CEDAR_MAX_VALUE_DEPTH)
        return false;
    struct cedar_set *made = arena_alloc(arena, sizeof *made);
    *made = (struct cedar_set){.count = building.count,
                               .items = building.items,
                               .hashes = building.hashes,
                               .slots = building.slots,
                               .slot_mask = building.slot_mask,
                               .hash = value_mix(sum + building.count),
                               .weight = weight > UINT32_MAX ? UINT32_MAX : (uint32_t)weight,
                               .depth = depth + 1};
    *set = (struct cedar_value){.kind = CEDAR_SET, .set = made};
    return true;
}

bool cedar_set(struct cedar_heap *heap, const struct cedar_value *elements, size_t count,
               struct cedar_value *set)
{
    struct cedar_value *copy = arena_alloc_array(&heap->arena, count, sizeof *copy);
    if (count)
        memcpy(copy, elements, count * sizeof *copy);
    return set_build(&heap->arena, copy, count, set);
}

static bool contains_hashed(const struct cedar_set *set, const struct cedar_value *value,
                            uint64_t hash)
{
    if (!set->slots) {
        for (size_t i = 0; i < set->count; i++)
            if (set->hashes[i] == hash && cedar_value_equal(&set->items[i], value))
                return true;
        return false;
    }
    for (size_t slot = hash & set->slot_mask; set->slots[slot]; slot = (slot + 1) & set->slot_mask) {
        size_t i = set->slots[slot] - 1;
        if (set->hashes[i] == hash && cedar_value_equal(&set->items[i], value))
            return true;
    }
    return false;
}

bool set_contains(const struct cedar_set *set, const struct cedar_value *value)
{
    return set->count && contains_hashed(set, value, value_hash(value));
}

bool set_is_subset(const struct cedar_set *part, const struct cedar_set *whole)
{
    if (part->count > whole->count)
        return false;
    for (size_t i = 0; i < part->count; i++)
        if (!contains_hashed(whole, &part->items[i], part->hashes[i]))
            return false;
    return true;
}

bool set_overlaps(const struct cedar_set *a, const struct cedar_set *b)
{
    const struct cedar_set *smaller = a->count < b->count ? a : b;
    const struct cedar_set *larger = smaller == a ? b : a;
    for (size_t i = 0; i < smaller->count; i++)
        if (contains_hashed(larger, &smaller->items[i], smaller->hashes[i]))
            return true;
    return false;
}

bool set_equal(const struct cedar_set *a, const struct cedar_set *b)
{
    return a == b || (a->count == b->count && a->hash == b->hash && set_is_subset(a, b));
}
