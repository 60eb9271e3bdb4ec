/* Shards of entries, each with a line from the longest unseen to the last seen. */
#include "seen_table.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "taskgate/core/assert.h"
#include "taskgate/core/map.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"
#include "taskgate/core/random.h"

#define SHARD_COUNT 16 /* four bits; see seen_table_lock() */

struct seen_owner {
    struct list entries; /* seen_entry.owned */
    int64_t count;
    int64_t given_ms; /* the last of them */
    char name[];
};

struct seen_shard {
    const struct seen_table *table;
    pthread_mutex_t lock;
    struct map *entries;
    struct map *owners; /* those with an entry */
    struct list recent;
    size_t bytes; /* of all entries */
};

struct seen_table {
    const struct seen_table_kind *kind;
    struct seen_shard shards[SHARD_COUNT]; /* the first alone is used of an exact one */
    uint64_t spread; /* an odd number that nobody knows, for seen_table_lock() */
};

struct seen_table *seen_table_create(const struct seen_table_kind *kind)
{
    struct seen_table *table = memory_alloc(sizeof *table);
    random_bytes(&table->spread, sizeof table->spread);
    table->spread |= 1;
    ASSERT_NUMBERS(kind->entry_bytes, >=, sizeof(struct seen_entry));
    ASSERT(kind->is_exact || kind->most_bytes == 0);
    table->kind = kind;
    for (size_t i = 0; i < SHARD_COUNT; i++) {
        table->shards[i].table = table;
        pthread_mutex_init(&table->shards[i].lock, NULL);
        table->shards[i].entries = map_create();
        table->shards[i].owners = map_create();
        list_init(&table->shards[i].recent);
    }
    return table;
}

static void seen_shard_take_back(struct seen_shard *shard, struct seen_entry *entry)
{
    struct seen_owner *owner = entry->owner;
    ASSERT_NUMBERS(owner->count, >, 0);
    list_remove(&entry->owned);
    if (--owner->count == 0)
        free(map_remove(shard->owners, str_from(owner->name)));
}

static void seen_shard_drop(struct seen_shard *shard, struct seen_entry *entry)
{
    list_remove(&entry->node);
    if (entry->owner)
        seen_shard_take_back(shard, entry);
    const void *removed = map_remove(shard->entries, entry->key);
    ASSERT(removed == entry);
    ASSERT_NUMBERS(shard->bytes, >=, entry->bytes);
    shard->bytes -= entry->bytes;
    if (shard->table->kind->forgotten)
        shard->table->kind->forgotten(entry);
    free((char *)entry->key.bytes);
    free(entry);
}

static void drop_longest_unseen(struct seen_shard *shard)
{
    /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): what was dropped is in no list */
    seen_shard_drop(shard, LIST_ENTRY(shard->recent.next, struct seen_entry, node));
}

void seen_table_destroy(struct seen_table *table)
{
    if (!table)
        return;
    for (size_t i = 0; i < SHARD_COUNT; i++) {
        struct seen_shard *shard = &table->shards[i];
        while (!list_is_empty(&shard->recent))
            drop_longest_unseen(shard);
        map_destroy(shard->entries, NULL);
        map_destroy(shard->owners, NULL);
        pthread_mutex_destroy(&shard->lock);
    }
    free(table);
}

/* The shard goes by the last bytes of the key, which are a digest's: the map hashes the whole. */
struct seen_shard *seen_table_lock(struct seen_table *table, struct str key)
{
    uint64_t end = 0;
    size_t length = key.length < sizeof end ? key.length : sizeof end;
    memcpy(&end, key.bytes + key.length - length, length);
    struct seen_shard *shard =
        &table->shards[table->kind->is_exact ? 0 : (end * table->spread) >> 60];
    pthread_mutex_lock(&shard->lock);
    return shard;
}

void seen_shard_unlock(struct seen_shard *shard)
{
    pthread_mutex_unlock(&shard->lock);
}

struct seen_entry *seen_shard_look(struct seen_shard *shard, struct str key)
{
    return map_get(shard->entries, key);
}

struct seen_entry *seen_shard_find(struct seen_shard *shard, struct str key)
{
    struct seen_entry *entry = map_get(shard->entries, key);
    if (entry) {
        list_remove(&entry->node);
        list_append(&shard->recent, &entry->node);
    }
    return entry;
}

struct seen_entry *seen_shard_obtain(struct seen_shard *shard, struct str key, int64_t limit)
{
    const struct seen_table_kind *kind = shard->table->kind;
    struct seen_entry *entry = seen_shard_find(shard, key);
    size_t most = (size_t)(limit > 0 ? limit : 1);
    if (entry)
        return entry;
    if (!kind->is_exact) /* twice its share, because keys do not spread evenly over the shards */
        most = most * 2 / SHARD_COUNT + 1;
    if (map_count(shard->entries) >= most) {
        drop_longest_unseen(shard);
        if (kind->limit)
            metrics_count(METRIC_LIMITS_REACHED, str_from(kind->limit));
    }
    entry = memory_alloc(kind->entry_bytes);
    entry->key = str_slice(memory_copy_str(key), key.length);
    map_put(shard->entries, key, entry);
    list_append(&shard->recent, &entry->node);
    return entry;
}

void seen_shard_weigh(struct seen_shard *shard, struct seen_entry *entry, size_t bytes)
{
    ASSERT(shard->recent.previous == &entry->node);
    shard->bytes += bytes - entry->bytes;
    entry->bytes = bytes;
    while (shard->bytes > shard->table->kind->most_bytes && shard->recent.next != &entry->node)
        drop_longest_unseen(shard);
}

void seen_shard_forget(struct seen_shard *shard, struct str key)
{
    struct seen_entry *entry = map_get(shard->entries, key);
    if (entry)
        seen_shard_drop(shard, entry);
}

/* ---- owners ---- */

static struct seen_owner *obtain_owner(struct seen_shard *shard, struct str name)
{
    struct seen_owner *owner = map_get(shard->owners, name);
    if (!owner) {
        owner = memory_alloc(sizeof *owner + name.length + 1);
        memcpy(owner->name, name.bytes, name.length);
        list_init(&owner->entries);
        map_put(shard->owners, name, owner);
    }
    return owner;
}

struct seen_entry *seen_shard_give(struct seen_shard *shard, struct seen_entry *entry,
                                   struct str owner, int64_t most, int64_t now_ms)
{
    if (!entry->owner) {
        entry->owner = obtain_owner(shard, owner);
        entry->owner->count++;
        list_init(&entry->owned);
    }
    ASSERT(str_equal(str_from(entry->owner->name), owner));
    list_remove(&entry->owned);
    entry->owner->given_ms = now_ms;
    list_append(&entry->owner->entries, &entry->owned);
    return most > 0 && entry->owner->count > most
               ? LIST_ENTRY(entry->owner->entries.next, struct seen_entry, owned)
               : NULL;
}

bool seen_shard_find_owner(struct seen_shard *shard, struct str owner, int64_t *given_ms)
{
    const struct seen_owner *found = map_get(shard->owners, owner);
    if (found)
        *given_ms = found->given_ms;
    return found != NULL;
}

/* ---- by a session of a source ---- */

#define SESSION_KEY_BYTES 192

struct seen_shard *seen_table_lock_session(struct seen_table *table, struct str source,
                                           struct str session, struct buffer *key)
{
    buffer_init(key);
    buffer_reserve(key, SESSION_KEY_BYTES);
    buffer_append(key, source); /* source ids hold no '/' */
    buffer_append_char(key, '/');
    buffer_append(key, session);
    return seen_table_lock(table, buffer_str(key));
}

void seen_shard_unlock_session(struct seen_shard *shard, struct buffer *key)
{
    seen_shard_unlock(shard);
    buffer_finish(key);
}

void seen_table_forget_session(struct seen_table *table, struct str source, struct str session)
{
    struct buffer key;
    struct seen_shard *shard = seen_table_lock_session(table, source, session, &key);
    seen_shard_forget(shard, buffer_str(&key));
    seen_shard_unlock_session(shard, &key);
}

/* ---- one value for each ---- */

static void *seen_value_of(struct seen_entry *entry)
{
    return entry + 1;
}

static size_t value_bytes(const struct seen_shard *shard)
{
    return shard->table->kind->entry_bytes - sizeof(struct seen_entry);
}

void seen_table_put(struct seen_table *table, struct str source, struct str session,
                    const void *value, int64_t limit)
{
    struct buffer key;
    struct seen_shard *shard = seen_table_lock_session(table, source, session, &key);
    memcpy(seen_value_of(seen_shard_obtain(shard, buffer_str(&key), limit)), value,
           value_bytes(shard));
    seen_shard_unlock_session(shard, &key);
}

bool seen_table_get(struct seen_table *table, struct str source, struct str session, void *value)
{
    struct buffer key;
    struct seen_shard *shard = seen_table_lock_session(table, source, session, &key);
    struct seen_entry *entry = seen_shard_find(shard, buffer_str(&key));
    if (entry)
        memcpy(value, seen_value_of(entry), value_bytes(shard));
    seen_shard_unlock_session(shard, &key);
    return entry != NULL;
}
