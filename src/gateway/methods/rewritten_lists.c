/* Rewritten replies by hashes of what they were made of, the longest unused first. */
#include "rewritten_lists.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "taskgate/core/assert.h"
#include "taskgate/core/map.h"
#include "taskgate/core/memory.h"

#define MOST_LISTS 256
#define LIST_BYTES ((size_t)8 * 1024 * 1024) /* a longer one is not kept */
#define ALL_BYTES ((size_t)32 * 1024 * 1024) /* texts and definitions */
#define EDGE_BYTES 64                        /* the id is sought in so many at both ends */

struct rewritten_lists {
    pthread_mutex_t lock;
    struct map *entries; /* hashes -> struct rewritten_list, each with a reference */
    struct list recent;  /* the longest unused first */
    size_t bytes;
};

/* ---- a reply and its id ---- */

static bool ends_value(char byte)
{
    return byte == ',' || byte == '}' || byte == ' ' || byte == '\n' || byte == '\r' ||
           byte == '\t';
}

/* Whether `id` is the value at the key that stands at `at`. */
static bool is_id_at(const char *at, const char *end, struct str id, const char **value)
{
    at += 5;
    while (at < end && *at == ' ')
        at++;
    *value = at;
    return (size_t)(end - at) > id.length && memcmp(at, id.bytes, id.length) == 0 &&
           ends_value(at[id.length]);
}

static bool find_between(const char *from, const char *to, const char *end, struct str id,
                         const char **value)
{
    for (const char *at = from; at < to; at++) {
        at = memmem(at, (size_t)(to - at), "\"id\":", 5);
        if (!at)
            return false;
        if (is_id_at(at, end, id, value))
            return true;
    }
    return false;
}

bool reply_parts_find(struct reply_parts *parts, struct str message, struct str id)
{
    const char *end = message.bytes + message.length, *value;
    size_t edge = EDGE_BYTES + id.length;
    if (id.length == 0 || message.length <= edge)
        return false;
    if (!find_between(message.bytes, message.bytes + edge, end, id, &value) &&
        !find_between(end - edge, end, end, id, &value))
        return false;
    const char *behind = value + id.length;
    parts->before = str_slice(message.bytes, (size_t)(value - message.bytes));
    parts->behind = str_slice(behind, (size_t)(end - behind));
    return true;
}

/* ---- one of them ---- */

static void hash(const struct rewritten_key *key, uint64_t hashes[REWRITTEN_HASHES])
{
    hashes[0] = str_hash(key->reply.before);
    hashes[1] = str_hash(key->reply.behind);
    hashes[2] = str_hash(key->source) + key->client;
    hashes[3] = key->snapshot;
    hashes[4] = key->principals;
    hashes[5] = key->pins;
}

static struct str hashes_str(const uint64_t hashes[REWRITTEN_HASHES])
{
    return str_slice((const char *)hashes, REWRITTEN_HASHES * sizeof *hashes);
}

struct rewritten_list *rewritten_list_create(const struct rewritten_key *key,
                                             struct catalog_page *page)
{
    struct rewritten_list *list = memory_alloc(sizeof *list);
    list->references = 1;
    hash(key, list->hashes);
    list->source = memory_copy_str(key->source);
    list->reply = list_text_create(key->reply.before, key->reply.behind);
    list->id_at = key->reply.before.length;
    list->page = page;
    return list;
}

void rewritten_list_set_written(struct rewritten_list *list, struct buffer *text, size_t id_at)
{
    ASSERT_NUMBERS(id_at, <=, text->length);
    list->written = *text;
    list->written_id_at = id_at;
    buffer_init(text);
}

void rewritten_list_write(const struct rewritten_list *list, struct str id, struct buffer *out)
{
    struct str text = buffer_str(&list->written);
    size_t at = list->written_id_at;
    buffer_reserve(out, text.length + id.length);
    buffer_append(out, str_slice(text.bytes, at));
    buffer_append(out, id);
    buffer_append(out, str_slice(text.bytes + at, text.length - at));
}

void rewritten_list_unref(struct rewritten_list *list)
{
    if (!list || __atomic_sub_fetch(&list->references, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    catalog_page_destroy(list->page);
    list_text_unref(list->reply);
    buffer_finish(&list->written);
    free(list->source);
    free(list);
}

static size_t rewritten_lists_bytes_of(const struct rewritten_list *list)
{
    return sizeof *list + list->reply->length + list->written.capacity +
           catalog_page_bytes(list->page);
}

/* The hashes only found it: what another server says must never be taken for it. */
static bool rewritten_lists_is_of(const struct rewritten_list *list,
                                  const struct rewritten_key *key)
{
    struct str before = str_slice(list->reply->bytes, list->id_at),
               behind =
                   str_slice(list->reply->bytes + list->id_at, list->reply->length - list->id_at);
    return str_equal(behind, key->reply.behind) && str_equal(before, key->reply.before) &&
           str_equal(str_from(list->source), key->source);
}

/* ---- all of them ---- */

struct rewritten_lists *rewritten_lists_create(void)
{
    struct rewritten_lists *lists = memory_alloc(sizeof *lists);
    pthread_mutex_init(&lists->lock, NULL);
    lists->entries = map_create();
    list_init(&lists->recent);
    return lists;
}

static void destroy_entry(void *context)
{
    rewritten_list_unref(context);
}

void rewritten_lists_destroy(struct rewritten_lists *lists)
{
    if (!lists)
        return;
    map_destroy(lists->entries, destroy_entry);
    pthread_mutex_destroy(&lists->lock);
    free(lists);
}

struct rewritten_list *rewritten_lists_find(struct rewritten_lists *lists,
                                            const struct rewritten_key *key)
{
    uint64_t hashes[REWRITTEN_HASHES];
    hash(key, hashes);
    pthread_mutex_lock(&lists->lock);
    struct rewritten_list *list = map_get(lists->entries, hashes_str(hashes));
    if (list) {
        list_remove(&list->node);
        list_append(&lists->recent, &list->node);
        __atomic_add_fetch(&list->references, 1, __ATOMIC_RELAXED);
    }
    pthread_mutex_unlock(&lists->lock);
    if (list && rewritten_lists_is_of(list, key))
        return list;
    rewritten_list_unref(list);
    return NULL;
}

/* Under the lock. It goes to `gone`, for the catalogue's lock is not taken under this one. */
static void rewritten_lists_take_out(struct rewritten_lists *lists, struct rewritten_list *list,
                                     struct list *gone)
{
    ASSERT_NUMBERS(lists->bytes, >=, list->bytes);
    lists->bytes -= list->bytes;
    list_remove(&list->node);
    list_append(gone, &list->node);
}

void rewritten_lists_put(struct rewritten_lists *lists, struct rewritten_list *list)
{
    struct list gone;
    list->bytes = rewritten_lists_bytes_of(list);
    if (list->bytes > LIST_BYTES) {
        rewritten_list_unref(list);
        return;
    }
    list_init(&gone);
    pthread_mutex_lock(&lists->lock);
    struct rewritten_list *old = map_put(lists->entries, hashes_str(list->hashes), list);
    if (old)
        rewritten_lists_take_out(lists, old, &gone);
    list_append(&lists->recent, &list->node);
    lists->bytes += list->bytes;
    while (map_count(lists->entries) > MOST_LISTS || lists->bytes > ALL_BYTES) {
        old = LIST_ENTRY(lists->recent.next, struct rewritten_list, node);
        map_remove(lists->entries, hashes_str(old->hashes));
        rewritten_lists_take_out(lists, old, &gone);
    }
    pthread_mutex_unlock(&lists->lock);
    LIST_FOR_EACH_SAFE (node, next, &gone)
        rewritten_list_unref(LIST_ENTRY(node, struct rewritten_list, node));
}

size_t rewritten_lists_bytes(struct rewritten_lists *lists)
{
    pthread_mutex_lock(&lists->lock);
    size_t bytes = lists->bytes;
    pthread_mutex_unlock(&lists->lock);
    return bytes;
}
