/*
 * Blocks: an approver stops a caller for a while. Until then each of its calls is refused; its
 * undecided tasks are rejected in the approver's name, approved ones that have not begun are
 * cancelled, and its grants end, in the transaction of the block. A call that runs goes on.
 *
 * The calls here only queue, as those of store.h. Behaviour 10.12.
 */
#pragma once

#include "taskgate/store/store.h"

#define STORE_BLOCKS_MOST 1000 /* in force */

struct store_block_wish {
    struct str task_id;
    enum store_block_scope scope;
    int64_t for_ms;
    const char *reason, *person;
};
/* The reply has the block; STORE_NOT_FOUND without the task, STORE_LIMIT_TOTAL beyond
 * STORE_BLOCKS_MOST. */
void store_block_create(struct store *store, const struct store_block_wish *wish,
                        struct store_call call);
/* Newest first, in reply->blocks; `before_sequence` 0: from the newest. Ended ones are kept for a
 * week. */
void store_block_list(struct store *store, bool in_force_only, int64_t before_sequence,
                      size_t limit, struct store_call call);
/* One block, as it is now. */
void store_block_get(struct store *store, struct str id, struct store_call call);
/* Ends it. STORE_CONFLICT when it has ended before; the reply has the block as it is. */
void store_block_lift(struct store *store, struct str id, const char *person, const char *reason,
                      struct store_call call);
