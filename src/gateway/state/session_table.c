/* The facts of sessions, by source and session. */
#include "session_table.h"

#include <stdlib.h>

#include "seen_table.h"
#include "taskgate/core/buffer.h"
#include "taskgate/core/memory.h"

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

void sessions_put(struct sessions *sessions, struct str source, struct str session,
                  const struct session_facts *facts, int64_t limit)
{
    struct buffer key;
    struct seen_shard *shard = seen_table_lock_session(sessions->table, source, session, &key);
    struct entry *entry = (struct entry *)seen_shard_obtain(shard, buffer_str(&key), limit);
    entry->facts = *facts;
    seen_shard_unlock_session(shard, &key);
}

bool sessions_get(struct sessions *sessions, struct str source, struct str session,
                  struct session_facts *facts)
{
    struct buffer key;
    struct seen_shard *shard = seen_table_lock_session(sessions->table, source, session, &key);
    const struct entry *entry = (const struct entry *)seen_shard_find(shard, buffer_str(&key));
    if (entry)
        *facts = entry->facts;
    seen_shard_unlock_session(shard, &key);
    return entry != NULL;
}

void sessions_remove(struct sessions *sessions, struct str source, struct str session)
{
    seen_table_forget_session(sessions->table, source, session);
}
