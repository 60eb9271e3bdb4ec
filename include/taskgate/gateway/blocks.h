/*
 * The callers that are blocked (store/blocks.h): one table for the process, so that each call can
 * ask it. It follows the store, also what other replicas commit there. A process that never starts
 * has an empty one. Any thread, but for start and end.
 */
#pragma once

#include <stdatomic.h>

#include "taskgate/core/buffer.h"
#include "taskgate/loop/loop.h"
#include "taskgate/store/blocks.h"

/* Runs `loop` until the blocks were read, for 2 s at most: no call is let through until they
 * were. `store` and `loop` outlive the table. */
void blocks_start(struct store *store, struct loop *loop);
/* Asks the store for nothing more; before the loop ends. */
void blocks_close(void);
void blocks_end(void);
/* The block as the store has it now: calls are judged by it from here on. */
void blocks_put(const struct store_block *block);

extern atomic_bool blocks_flag;
/* Whether a call must be judged: a call costs no more while nobody is blocked. */
static inline bool blocks_any(void)
{
    return atomic_load_explicit(&blocks_flag, memory_order_relaxed);
}

enum blocks_verdict { BLOCKS_FREE, BLOCKS_BLOCKED, BLOCKS_UNKNOWN };
/* BLOCKS_BLOCKED with the reason appended; BLOCKS_UNKNOWN while the store has not said it. */
enum blocks_verdict blocks_judge(const struct store_block_caller *caller, struct buffer *reason);
