/*
 * The lists that owners have fetched, for when upstream fails: then each is given its own again
 * (seed 002 NF-002.2). Shared by all workers behind one short lock. Any thread.
 */
#pragma once

#include <stdbool.h>

#include "taskgate/core/buffer.h"
#include "taskgate/core/str.h"

struct kept_lists;

struct kept_lists *kept_lists_create(void);
void kept_lists_destroy(struct kept_lists *lists); /* NULL is allowed */

/* `key` tells method, owner and cursor apart, and may be of any length. Copies both. Bounded:
 * the oldest go, and a very long list is not kept at all. */
void kept_lists_put(struct kept_lists *lists, struct str key, struct str result);
/* Appends what is kept under `key` to `result`; false when nothing is. */
bool kept_lists_get(struct kept_lists *lists, struct str key, struct buffer *result);
