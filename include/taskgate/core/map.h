/*
 * A hash map from byte strings to pointers. Keys are copied, values borrowed. One thread
 * at a time; iteration order has no meaning.
 */
#pragma once

#include "taskgate/core/str.h"

struct map;

struct map *map_create(void);
/* `destroy_value` (may be NULL) is called for every value left. NULL map is allowed. */
void map_destroy(struct map *map, void (*destroy_value)(void *value));
size_t map_count(const struct map *map);
/* NULL when absent. */
void *map_get(const struct map *map, struct str key);
/* Returns the value that stood there before, or NULL. `value` must not be NULL. */
void *map_put(struct map *map, struct str key, void *value);
/* Returns the removed value, or NULL. */
void *map_remove(struct map *map, struct str key);
/* Start with *position 0; false at the end. The map must not change meanwhile. */
bool map_next(const struct map *map, size_t *position, struct str *key, void **value);
