/* The homes of sessions, by source and session. */
#include "session_homes.h"

#include <stdlib.h>

#include "state/seen_table.h"
#include "taskgate/core/memory.h"

struct entry {
    struct seen_entry seen; /* first */
    struct session_home home;
};

struct session_homes {
    struct seen_table *table;
};

struct session_homes *session_homes_create(void)
{
    struct session_homes *homes = memory_alloc(sizeof *homes);
    homes->table = seen_table_create(sizeof(struct entry), NULL, NULL);
    return homes;
}

void session_homes_destroy(struct session_homes *homes)
{
    if (!homes)
        return;
    seen_table_destroy(homes->table);
    free(homes);
}

void session_homes_put(struct session_homes *homes, struct str source, struct str session,
                       const struct session_home *home, int64_t limit)
{
    struct buffer key;
    struct seen_shard *shard = seen_table_lock_session(homes->table, source, session, &key);
    struct entry *entry = (struct entry *)seen_shard_obtain(shard, buffer_str(&key), limit);
    entry->home = *home;
    seen_shard_unlock_session(shard, &key);
}

bool session_homes_get(struct session_homes *homes, struct str source, struct str session,
                       struct session_home *home)
{
    struct buffer key;
    struct seen_shard *shard = seen_table_lock_session(homes->table, source, session, &key);
    const struct entry *entry = (const struct entry *)seen_shard_find(shard, buffer_str(&key));
    if (entry)
        *home = entry->home;
    seen_shard_unlock_session(shard, &key);
    return entry != NULL;
}
