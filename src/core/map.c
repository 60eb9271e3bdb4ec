/* Open-addressing hash map with tombstone-free deletion (backward shift). */
#include "taskgate/core/map.h"

#include <stdlib.h>
#include <string.h>

#include "taskgate/core/assert.h"
#include "taskgate/core/memory.h"

struct slot {
    char *key; /* owned; NULL when the slot is free */
    size_t key_length;
    uint64_t hash;
    void *value;
};

struct map {
    struct slot *slots;
    size_t capacity; /* a power of two */
    size_t count;
};

#define FIRST_CAPACITY 16

struct map *map_create(void)
{
    struct map *map = memory_alloc(sizeof *map);
    map->capacity = FIRST_CAPACITY;
    map->slots = memory_alloc_array(map->capacity, sizeof *map->slots);
    return map;
}

void map_destroy(struct map *map, void (*destroy_value)(void *value))
{
    if (!map)
        return;
    for (size_t i = 0; i < map->capacity; i++) {
        if (!map->slots[i].key)
            continue;
        if (destroy_value)
            destroy_value(map->slots[i].value);
        free(map->slots[i].key);
    }
    free(map->slots);
    free(map);
}

size_t map_count(const struct map *map)
{
    return map->count;
}

/* The slot of `key`, or the free slot where it would go. */
static size_t map_find_slot(const struct map *map, struct str key, uint64_t hash)
{
    size_t mask = map->capacity - 1;
    size_t i = (size_t)hash & mask;
    while (map->slots[i].key) {
        const struct slot *slot = &map->slots[i];
        if (slot->hash == hash && str_equal(str_slice(slot->key, slot->key_length), key))
            break;
        i = (i + 1) & mask;
    }
    return i;
}

void *map_get(const struct map *map, struct str key)
{
    if (map->count == 0)
        return NULL; /* for nothing the key need not be hashed */
    return map->slots[map_find_slot(map, key, str_hash(key))].value;
}

static void map_grow(struct map *map)
{
    struct slot *old = map->slots;
    size_t old_capacity = map->capacity;
    map->capacity *= 2;
    map->slots = memory_alloc_array(map->capacity, sizeof *map->slots);
    for (size_t i = 0; i < old_capacity; i++) {
        if (old[i].key) {
            struct str key = str_slice(old[i].key, old[i].key_length);
            map->slots[map_find_slot(map, key, old[i].hash)] = old[i];
        }
    }
    ASSERT((map->capacity & (map->capacity - 1)) == 0);
    free(old);
}

void *map_put(struct map *map, struct str key, void *value)
{
    if ((map->count + 1) * 4 > map->capacity * 3)
        map_grow(map);
    ASSERT_NUMBERS(map->count, <, map->capacity); /* or no search for a missing key ends */
    uint64_t hash = str_hash(key);
    struct slot *slot = &map->slots[map_find_slot(map, key, hash)];
    void *previous = slot->value;
    if (!slot->key) {
        *slot = (struct slot){memory_copy_str(key), key.length, hash, NULL};
        map->count++;
    }
    slot->value = value;
    return previous;
}

void *map_remove(struct map *map, struct str key)
{
    size_t mask = map->capacity - 1;
    size_t hole = map_find_slot(map, key, str_hash(key));
    if (!map->slots[hole].key)
        return NULL;
    ASSERT_NUMBERS(map->count, >, 0);
    void *value = map->slots[hole].value;
    free(map->slots[hole].key);
    map->count--;
    /* Close the hole: move back every later entry whose home lies at or before it. */
    for (size_t i = (hole + 1) & mask; map->slots[i].key; i = (i + 1) & mask) {
        size_t home = (size_t)map->slots[i].hash & mask;
        if (((i - home) & mask) >= ((i - hole) & mask)) {
            map->slots[hole] = map->slots[i];
            hole = i;
        }
    }
    memset(&map->slots[hole], 0, sizeof map->slots[hole]);
    return value;
}

bool map_next(const struct map *map, size_t *position, struct str *key, void **value)
{
    for (; *position < map->capacity; (*position)++) {
        const struct slot *slot = &map->slots[*position];
        if (!slot->key)
            continue;
        if (key)
            *key = str_slice(slot->key, slot->key_length);
        if (value)
            *value = slot->value;
        (*position)++;
        return true;
    }
    return false;
}
