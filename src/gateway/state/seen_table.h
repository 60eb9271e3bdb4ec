/*
 * A bounded table in shards with short locks. Past its limit a shard forgets the entry that has not
 * been seen for longest; entries may have an owner, who has a limit of its own. For the tables of
 * sessions and of accepted credentials, which many workers look into at once. Any thread.
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
    char *key;                /* NUL-terminated */
    struct seen_owner *owner; /* NULL: nobody's */
    struct list owned;        /* its owner's, the one not given to it for longest first */
};

/* `entry_bytes` is the size of the struct around the seen_entry. `forgotten` (may be NULL) is
 * called under the shard's lock for each entry that leaves, also at the table's end. */
struct seen_table *
seen_table_create(size_t entry_bytes,
                  void (*forgotten)(void *context, const struct seen_entry *entry), void *context);
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
/* The entry, which has been seen now; NULL without one. */
struct seen_entry *seen_shard_find(struct seen_shard *shard, struct str key);
/* The same; without one a new entry, zeroed behind its head. Past `limit` entries of all shards
 * another one is forgotten, and counted in limits_reached_total. */
struct seen_entry *seen_shard_obtain(struct seen_shard *shard, struct str key, int64_t limit);
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
void seen_table_put(struct seen_table *table, struct str source, struct str session,
                    const void *value, int64_t limit);
bool seen_table_get(struct seen_table *table, struct str source, struct str session, void *value);
