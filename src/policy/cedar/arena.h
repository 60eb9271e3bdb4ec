/*
 * Memory that is taken piece by piece and given back all at once. One thread at a time.
 */
#pragma once

#include <stddef.h>

#include "taskgate/core/str.h"

struct arena_block;

struct arena {
    struct arena_block *first, *last;
    char *next;
    size_t left; /* bytes from `next` to the end of the last block */
};

void arena_init(struct arena *arena);
void arena_finish(struct arena *arena);
/* Gives everything back but the first block. */
void arena_reset(struct arena *arena);
/* Not zeroed, aligned for 64-bit integers and pointers; never NULL. */
void *arena_alloc(struct arena *arena, size_t size);
void *arena_alloc_array(struct arena *arena, size_t count, size_t size);
struct str arena_copy(struct arena *arena, struct str s);
