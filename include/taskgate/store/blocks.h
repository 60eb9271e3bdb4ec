/*
 * Blocks: an approver stops a caller for a while. Until then each of its calls is refused; its
 * undecided tasks are rejected in the approver's name, approved ones that have not begun are
 * cancelled, and its grants end, in the transaction of the block. A call that runs goes on.
 *
 * The calls here only queue, as those of store.h. Behaviour 10.12.
 */
#pragma once

#include "taskgate/store/store.h"

#define STORE_BLOCK_ID_BYTES 40 /* "bl_" + UUID + NUL */
#define STORE_BLOCK_ID_PREFIX "bl_"
#define STORE_BLOCKS_MOST 1000 /* in force */

/* The callers that a block is about. */
enum store_block_scope {
    STORE_BLOCK_OWNER,  /* the owner of the task */
    STORE_BLOCK_CLIENT, /* clients of the same name at its source */
    STORE_BLOCK_SOURCE, /* everybody at its source */
    STORE_BLOCK_SCOPES
};
const char *store_block_scope_name(enum store_block_scope scope);
/* STORE_BLOCK_SCOPES: it is none. */
enum store_block_scope store_block_scope_of(struct str name);

struct store_block {
    int64_t sequence;
    char *id;
    char *task_id; /* of the call that it was made with */
    char *scope;   /* by its name */
    char *owner, *source, *client, *principal;
    char *reason, *person;
    char *ended_by; /* the person who has lifted it, or "" */
    int64_t created_ms, until_ms;
    int64_t ended_ms; /* 0 while it is in force */
};

struct store_block_caller {
    struct str owner, source, client;
};
/* Whether the block is about this caller, whatever the time. Any thread. */
bool store_block_fits(const struct store_block *block, const struct store_block_caller *caller);

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

/* A block was made, or it has ended. STORE_BLOCK_ID_PREFIX alone: changes were missed, so all are
 * to be read anew. */
typedef void (*store_block_observer)(void *context, struct str id);
/* As store_observe_grants(), also of commits of other replicas. There is one such observer. */
void store_observe_blocks(struct store *store, struct loop *loop, store_block_observer observer,
                          void *context);
