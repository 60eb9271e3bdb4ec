/* Blocks in the transactions of other operations. */
#pragma once

#include "operation.h"

/* A new task, stored: a call that was judged before its caller was blocked. It is rejected, or
 * cancelled where it was accelerated, by the block; *is_blocked says so. false: the database has
 * failed. */
bool blocks_apply(struct batch *batch, struct task *task, bool *is_blocked);
/* Ends those whose time is over; *next_ms: when the next one ends, INT64_MAX without one. */
bool blocks_sweep(struct batch *batch, int64_t *next_ms);
