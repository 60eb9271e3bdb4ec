/*
 * The lists that owners have fetched, for when upstream fails: then each is given its own again
 * (seed 002 NF-002.2). Shared by all workers behind one short lock. Any thread.
 */
#pragma once

#include <stdbool.h>

#include "taskgate/core/buffer.h"
#include "taskgate/core/str.h"

struct list_cache;

struct list_cache *list_cache_create(void);
void list_cache_destroy(struct list_cache *lists); /* NULL is allowed */

/* `key` tells method, owner and cursor apart, and may be of any length. Copies both. Bounded:
 * the oldest go, and a very long list is not kept at all. */
void list_cache_put(struct list_cache *lists, struct str key, struct str result);
/* Appends what is kept under `key` to `result`; false when nothing is. */
bool list_cache_get(struct list_cache *lists, struct str key, struct buffer *result);
