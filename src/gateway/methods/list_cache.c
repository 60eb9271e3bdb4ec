/* Lists by what they were asked with, the oldest of them first. */
#include "list_cache.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "taskgate/core/digest.h"
#include "taskgate/core/list.h"
#include "taskgate/core/map.h"
#include "taskgate/core/memory.h"

#define MOST_LISTS 1000
#define LIST_BYTES ((size_t)1024 * 1024) /* a longer one is not kept */
#define ALL_BYTES ((size_t)64 * 1024 * 1024)

struct entry {
    struct list node;           /* in list_cache.recent */
    char key[DIGEST_HEX_BYTES]; /* clients make up cursors of any length */
    struct list_text *text;
    struct str result; /* in `text` */
};

struct list_cache {
    pthread_mutex_t lock;
    struct map *entries;
    struct list recent; /* the oldest first */
    size_t bytes;
};

/* ---- texts ---- */

struct list_text *list_text_create(struct str first, struct str second)
{
    /* Not memory_alloc(): to clear a long text takes as long as to copy it. */
    struct list_text *text =
        memory_grow_array(NULL, sizeof *text + first.length + second.length, 1);
    text->references = 1;
    text->length = first.length + second.length;
    if (first.length > 0)
        memcpy(text->bytes, first.bytes, first.length);
    if (second.length > 0)
        memcpy(text->bytes + first.length, second.bytes, second.length);
    return text;
}

struct list_text *list_text_ref(struct list_text *text)
{
    __atomic_add_fetch(&text->references, 1, __ATOMIC_RELAXED);
    return text;
}

void list_text_unref(struct list_text *text)
{
    if (text && __atomic_sub_fetch(&text->references, 1, __ATOMIC_ACQ_REL) == 0)
        free(text);
}

struct str list_text_str(const struct list_text *text)
{
    return str_slice(text->bytes, text->length);
}

/* ---- what is kept ---- */

struct list_cache *list_cache_create(void)
{
    struct list_cache *lists = memory_alloc(sizeof *lists);
    pthread_mutex_init(&lists->lock, NULL);
    lists->entries = map_create();
    list_init(&lists->recent);
    return lists;
}

static void entry_destroy(void *value)
{
    struct entry *entry = value;
    list_text_unref(entry->text);
    free(entry);
}

void list_cache_destroy(struct list_cache *lists)
{
    if (!lists)
        return;
    map_destroy(lists->entries, entry_destroy);
    pthread_mutex_destroy(&lists->lock);
    free(lists);
}

/* Under the lock. Takes it off its list alone: the map has lost it already. */
static void drop(struct list_cache *lists, struct entry *entry)
{
    lists->bytes -= entry->result.length;
    list_remove(&entry->node);
    entry_destroy(entry);
}

void list_cache_put(struct list_cache *lists, struct str key, struct str result)
{
    if (result.length > LIST_BYTES)
        return;
    struct list_text *text = list_text_create(result, STR_EMPTY);
    list_cache_put_shared(lists, key, text, list_text_str(text));
    list_text_unref(text);
}

/* A text that several owners share counts for each of them. */
void list_cache_put_shared(struct list_cache *lists, struct str key, struct list_text *text,
                           struct str result)
{
    if (result.length > LIST_BYTES)
        return;
    struct entry *entry = memory_alloc(sizeof *entry);
    digest_sha256_hex(key, entry->key);
    entry->text = list_text_ref(text);
    entry->result = result;
    pthread_mutex_lock(&lists->lock);
    struct entry *old = map_put(lists->entries, str_from(entry->key), entry);
    list_append(&lists->recent, &entry->node);
    lists->bytes += entry->result.length;
    if (old)
        drop(lists, old);
    while (map_count(lists->entries) > MOST_LISTS || lists->bytes > ALL_BYTES) {
        old = LIST_ENTRY(lists->recent.next, struct entry, node);
        map_remove(lists->entries, str_from(old->key));
        /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): what was dropped is in no list */
        drop(lists, old);
    }
    pthread_mutex_unlock(&lists->lock);
}

bool list_cache_get(struct list_cache *lists, struct str key, struct buffer *result)
{
    char digest[DIGEST_HEX_BYTES];
    digest_sha256_hex(key, digest);
    pthread_mutex_lock(&lists->lock);
    const struct entry *entry = map_get(lists->entries, str_from(digest));
    if (entry)
        buffer_append(result, entry->result);
    pthread_mutex_unlock(&lists->lock);
    return entry != NULL;
}
