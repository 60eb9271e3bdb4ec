/* Blocks as values, and as rows of a database. */
#pragma once

#include <stddef.h>

#include "taskgate/store/blocks.h"

/* Blocks that the holder owns. */
struct block_list {
    struct store_block *items;
    size_t count;
};
/* A further one, empty. */
struct store_block *block_list_add(struct block_list *list);
void block_list_finish(struct block_list *list);

struct database;
struct id_list;
/* Finders add to `list`, which the caller finishes, also when they fail. */
struct block_rows {
    bool (*insert)(struct database *database, const struct store_block *block);
    bool (*get)(struct database *database, const char *id, struct block_list *list);
    /* All that are in force. */
    bool (*find_active)(struct database *database, struct block_list *list);
    /* The newest first; `before_sequence` 0: from the newest. */
    bool (*page)(struct database *database, bool in_force_only, int64_t before_sequence,
                 size_t limit, struct block_list *list);
    bool (*end)(struct database *database, const char *id, int64_t now_ms, const char *person);
    /* The undecided and approved tasks of the callers that it is about. */
    bool (*find_tasks)(struct database *database, const struct store_block *block,
                       struct id_list *list);
};
