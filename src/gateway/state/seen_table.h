/*
 * A bounded table with short locks, which all workers share. Past its limits it forgets the entry
 * that has not been seen for longest; entries may have an owner, who has a limit of its own. Any
 * thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "taskgate/core/buffer.h"
#include "taskgate/core/list.h"
#include "taskgate/core/str.h"

struct seen_table;
struct seen_shard;
struct seen_owner;

/* The first member of each entry. */
struct seen_entry {
    struct list node;         /* in its shard, the longest unseen first */
    struct str key;           /* its own copy */
    size_t bytes;             /* by seen_shard_weigh() */
    struct seen_owner *owner; /* NULL: nobody's */
    struct list owned;        /* its owner's, the one not given to it for longest first */
};

struct seen_table_kind {
    size_t entry_bytes; /* the size of the struct around the seen_entry */
    /* One shard, whose limits are exact; else there are several, for tables that each request looks
     * into. */
    bool is_exact;
    size_t most_bytes; /* of all entries of an exact table; 0: they have no weight */
    const char *limit; /* its name in limits_reached_total; NULL: the limit is not counted */
    /* Called under the shard's lock for each entry that leaves, also at the table's end. NULL: the
     * entries have nothing to be freed. */
    void (*forgotten)(struct seen_entry *entry);
};

/* `kind` outlives it. */
struct seen_table *seen_table_create(const struct seen_table_kind *kind);
void seen_table_destroy(struct seen_table *table); /* NULL is allowed */

/* The shard of the key, locked. Its entries may be used until seen_shard_unlock(). */
struct seen_shard *seen_table_lock(struct seen_table *table, struct str key);
void seen_shard_unlock(struct seen_shard *shard);
/* The same by a session of a source. `key` is written, for the caller to finish. */
struct seen_shard *seen_table_lock_session(struct seen_table *table, struct str source,
                                           struct str session, struct buffer *key);
/* Unlocks it, and finishes the key. */
void seen_shard_unlock_session(struct seen_shard *shard, struct buffer *key);
void seen_table_forget_session(struct seen_table *table, struct str source, struct str session);
/* The entry; NULL without one. */
struct seen_entry *seen_shard_look(struct seen_shard *shard, struct str key);
/* The same; it has been seen now. */
struct seen_entry *seen_shard_find(struct seen_shard *shard, struct str key);
/* The same; without one a new entry, zeroed after its head. Past `limit` entries of all shards
 * another one is forgotten. */
struct seen_entry *seen_shard_obtain(struct seen_shard *shard, struct str key, int64_t limit);
/* The entry, which was seen last, takes so many bytes now. Others are forgotten past most_bytes. */
void seen_shard_weigh(struct seen_shard *shard, struct seen_entry *entry, size_t bytes);
void seen_shard_forget(struct seen_shard *shard, struct str key);

/* ---- owners; all entries of one are in the same shard ---- */
/* The entry is given to the owner, who may have it already, at `now_ms`. Returns the entry that was
 * not given to it for longest, for the caller to forget, if it has more than `most` then (0: no
 * limit); else NULL. */
struct seen_entry *seen_shard_give(struct seen_shard *shard, struct seen_entry *entry,
                                   struct str owner, int64_t most, int64_t now_ms);
/* When an entry was last given to the owner; false: it has none. */
bool seen_shard_find_owner(struct seen_shard *shard, struct str owner, int64_t *given_ms);

/* Of a table whose entries are a seen_entry and a value: copies it in, and out. */
#define SEEN_VALUE_BYTES(type) (sizeof(struct seen_entry) + sizeof(type))
void seen_table_put(struct seen_table *table, struct str source, struct str session,
                    const void *value, int64_t limit);
bool seen_table_get(struct seen_table *table, struct str source, struct str session, void *value);
