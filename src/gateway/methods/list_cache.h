/*
 * The lists that owners have fetched, for when upstream fails: then each is given its own again
 * (seed 002 NF-002.2). Shared by all workers behind one short lock. Any thread.
 */
#pragma once

#include <stdbool.h>

#include "taskgate/core/buffer.h"
#include "taskgate/core/str.h"

/* A text that several hold: immutable and counted. */
struct list_text {
    size_t references; /* atomic */
    size_t length;
    char bytes[];
};
/* The two parts one behind the other; gets one reference. */
struct list_text *list_text_create(struct str first, struct str second);
void list_text_unref(struct list_text *text); /* NULL is allowed */

struct list_cache;

struct list_cache *list_cache_create(void);
void list_cache_destroy(struct list_cache *lists); /* NULL is allowed */

/* `key` tells method, owner and cursor apart, and may be of any length. Copies both. Bounded:
 * the oldest go, and a very long list is not kept at all. */
void list_cache_put(struct list_cache *lists, struct str key, struct str result);
/* The same of a `result` inside a text, which is held and not copied. */
void list_cache_put_shared(struct list_cache *lists, struct str key, struct list_text *text,
                           struct str result);
/* Appends what is kept under `key` to `result`; false when nothing is. */
bool list_cache_get(struct list_cache *lists, struct str key, struct buffer *result);
