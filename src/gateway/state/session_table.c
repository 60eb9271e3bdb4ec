/* The facts of sessions, by source and session. */
#include "session_table.h"

#include <stdlib.h>

#include "seen_table.h"
#include "taskgate/core/buffer.h"
#include "taskgate/core/memory.h"

#define KEY_BYTES 192

struct entry {
    struct seen_entry seen; /* first */
    struct session_facts facts;
};

struct sessions {
    struct seen_table *table;
};

struct sessions *sessions_create(void)
{
    struct sessions *sessions = memory_alloc(sizeof *sessions);
    sessions->table = seen_table_create(sizeof(struct entry), NULL, NULL);
    return sessions;
}

void sessions_destroy(struct sessions *sessions)
{
    if (!sessions)
        return;
    seen_table_destroy(sessions->table);
    free(sessions);
}

static void write_key(struct buffer *key, struct str source, struct str session)
{
    buffer_init(key);
    buffer_reserve(key, KEY_BYTES);
    buffer_append(key, source); /* source ids hold no '/' */
    buffer_append_char(key, '/');
    buffer_append(key, session);
}

void sessions_put(struct sessions *sessions, struct str source, struct str session,
                  const struct session_facts *facts, int64_t limit)
{
    struct buffer key;
    write_key(&key, source, session);
    struct seen_shard *shard = seen_table_lock(sessions->table, buffer_str(&key));
    struct entry *entry = (struct entry *)seen_shard_obtain(shard, buffer_str(&key), limit);
    entry->facts = *facts;
    seen_shard_unlock(shard);
    buffer_finish(&key);
}

bool sessions_get(struct sessions *sessions, struct str source, struct str session,
                  struct session_facts *facts)
{
    struct buffer key;
    write_key(&key, source, session);
    struct seen_shard *shard = seen_table_lock(sessions->table, buffer_str(&key));
    const struct entry *entry = (const struct entry *)seen_shard_find(shard, buffer_str(&key));
    if (entry)
        *facts = entry->facts;
    seen_shard_unlock(shard);
    buffer_finish(&key);
    return entry != NULL;
}

void sessions_remove(struct sessions *sessions, struct str source, struct str session)
{
    struct buffer key;
    write_key(&key, source, session);
    struct seen_shard *shard = seen_table_lock(sessions->table, buffer_str(&key));
    seen_shard_forget(shard, buffer_str(&key));
    seen_shard_unlock(shard);
    buffer_finish(&key);
}
