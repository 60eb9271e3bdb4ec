/* A chain of blocks, each twice as large as the one before up to a limit. */
#include "arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "taskgate/core/memory.h"

/* No type in an arena needs more. */
#define UNIT sizeof(uint64_t)
#define FIRST_BLOCK ((size_t)4096)
#define LARGEST_STEP ((size_t)256 * 1024)

struct arena_block {
    struct arena_block *next;
    size_t size;
    alignas(max_align_t) char bytes[];
};

void arena_init(struct arena *arena)
{
    *arena = (struct arena){.first = NULL};
}

static void free_blocks(struct arena_block *block)
{
    while (block) {
        struct arena_block *next = block->next;
        free(block);
        block = next;
    }
}

void arena_finish(struct arena *arena)
{
    free_blocks(arena->first);
    arena_init(arena);
}

void arena_reset(struct arena *arena)
{
    if (!arena->first)
        return;
    free_blocks(arena->first->next);
    arena->first->next = NULL;
    arena->last = arena->first;
    arena->next = arena->first->bytes;
    arena->left = arena->first->size;
}

static void add_block(struct arena *arena, size_t needed)
{
    size_t size = arena->last ? arena->last->size * 2 : FIRST_BLOCK;
    if (size > LARGEST_STEP)
        size = LARGEST_STEP;
    if (size < needed)
        size = needed;
    struct arena_block *block = memory_grow_array(NULL, sizeof *block + size, 1);
    *block = (struct arena_block){.size = size};
    if (arena->last)
        arena->last->next = block;
    else
        arena->first = block;
    arena->last = block;
    arena->next = block->bytes;
    arena->left = size;
}

void *arena_alloc(struct arena *arena, size_t size)
{
    /* A size that cannot be rounded up cannot be had either: let the allocator say so. */
    size_t rounded = size > SIZE_MAX / 4 ? SIZE_MAX / 4 : (size + UNIT - 1) / UNIT * UNIT;
    if (rounded > arena->left || !arena->first)
        add_block(arena, rounded);
    void *memory = arena->next;
    arena->next += rounded;
    arena->left -= rounded;
    return memory;
}

void *arena_alloc_array(struct arena *arena, size_t count, size_t size)
{
    return arena_alloc(arena, size && count > SIZE_MAX / size ? SIZE_MAX : count * size);
}

struct str arena_copy(struct arena *arena, struct str s)
{
    if (s.length == 0)
        return STR_EMPTY;
    char *copy = arena_alloc(arena, s.length);
    memcpy(copy, s.bytes, s.length);
    return str_slice(copy, s.length);
}
