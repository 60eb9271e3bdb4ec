/* Lists by what they were asked with, and rewritten replies by hashes of what they were made of. */
#include "list_cache.h"

#include <stdlib.h>
#include <string.h>

#include "taskgate/core/assert.h"
#include "taskgate/core/digest.h"
#include "taskgate/core/memory.h"

#define MOST_KEPT 1000
#define KEPT_BYTES ((size_t)1024 * 1024) /* a longer one is not kept */
#define ALL_KEPT_BYTES ((size_t)64 * 1024 * 1024)

struct kept_list {
    struct seen_entry seen; /* first; clients make up cursors of any length: a digest is the key */
    struct list_text *text;
    struct str result; /* in `text` */
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

static struct list_text *list_text_ref(struct list_text *text)
{
    __atomic_add_fetch(&text->references, 1, __ATOMIC_RELAXED);
    return text;
}

void list_text_unref(struct list_text *text)
{
    if (text && __atomic_sub_fetch(&text->references, 1, __ATOMIC_ACQ_REL) == 0)
        free(text);
}

/* ---- the last lists of each owner ---- */

static struct kept_list *list_cache_entry_of(struct seen_entry *seen)
{
    return (struct kept_list *)seen; /* the table's entries are ours */
}

static void list_cache_forgotten(struct seen_entry *seen)
{
    list_text_unref(list_cache_entry_of(seen)->text);
}

struct seen_table *list_cache_create(void)
{
    static const struct seen_table_kind kept = {.entry_bytes = sizeof(struct kept_list),
                                                .is_exact = true,
                                                .most_bytes = ALL_KEPT_BYTES,
                                                .forgotten = list_cache_forgotten};
    return seen_table_create(&kept);
}

/* A text that several owners share counts for each of them. */
void list_cache_put(struct seen_table *lists, struct str key, struct list_text *text,
                    struct str result)
{
    char digest[DIGEST_HEX_BYTES];
    if (result.length > KEPT_BYTES)
        return;
    struct list_text *held = text ? list_text_ref(text) : list_text_create(result, STR_EMPTY);
    digest_sha256_hex(key, digest);
    struct seen_shard *shard = seen_table_lock(lists, str_from(digest));
    struct kept_list *entry =
        list_cache_entry_of(seen_shard_obtain(shard, str_from(digest), MOST_KEPT));
    list_text_unref(entry->text);
    entry->text = held;
    entry->result = text ? result : str_slice(held->bytes, held->length);
    seen_shard_weigh(shard, &entry->seen, result.length);
    seen_shard_unlock(shard);
}

bool list_cache_get(struct seen_table *lists, struct str key, struct buffer *result)
{
    char digest[DIGEST_HEX_BYTES];
    digest_sha256_hex(key, digest);
    struct seen_shard *shard = seen_table_lock(lists, str_from(digest));
    const struct kept_list *entry = list_cache_entry_of(seen_shard_look(shard, str_from(digest)));
    if (entry)
        buffer_append(result, entry->result);
    seen_shard_unlock(shard);
    return entry != NULL;
}

/* ---- rewritten replies ---- */

#define MOST_REWRITTEN 256
#define REWRITTEN_BYTES ((size_t)8 * 1024 * 1024)      /* a longer one is not kept */
#define ALL_REWRITTEN_BYTES ((size_t)32 * 1024 * 1024) /* texts and definitions */
#define EDGE_BYTES 64 /* the id is sought in so many at both ends */

struct kept_reply {
    struct seen_entry seen; /* first; hashes are the key */
    struct rewritten_list *list;
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

static struct kept_reply *rewritten_lists_entry_of(struct seen_entry *seen)
{
    return (struct kept_reply *)seen; /* the table's entries are ours */
}

/* The catalogue's lock is taken under that of the table here, and nowhere the other way round. */
static void rewritten_lists_forgotten(struct seen_entry *seen)
{
    rewritten_list_unref(rewritten_lists_entry_of(seen)->list);
}

struct seen_table *rewritten_lists_create(void)
{
    static const struct seen_table_kind rewritten = {.entry_bytes = sizeof(struct kept_reply),
                                                     .is_exact = true,
                                                     .most_bytes = ALL_REWRITTEN_BYTES,
                                                     .forgotten = rewritten_lists_forgotten};
    return seen_table_create(&rewritten);
}

struct rewritten_list *rewritten_lists_find(struct seen_table *lists,
                                            const struct rewritten_key *key)
{
    uint64_t hashes[REWRITTEN_HASHES];
    struct rewritten_list *list = NULL;
    hash(key, hashes);
    struct seen_shard *shard = seen_table_lock(lists, hashes_str(hashes));
    const struct kept_reply *entry =
        rewritten_lists_entry_of(seen_shard_find(shard, hashes_str(hashes)));
    if (entry) {
        list = entry->list;
        __atomic_add_fetch(&list->references, 1, __ATOMIC_RELAXED);
    }
    seen_shard_unlock(shard);
    if (list && rewritten_lists_is_of(list, key))
        return list;
    rewritten_list_unref(list);
    return NULL;
}

void rewritten_lists_put(struct seen_table *lists, struct rewritten_list *list)
{
    size_t bytes = rewritten_lists_bytes_of(list);
    struct rewritten_list *old = list;
    if (bytes <= REWRITTEN_BYTES) {
        struct seen_shard *shard = seen_table_lock(lists, hashes_str(list->hashes));
        struct kept_reply *entry = rewritten_lists_entry_of(
            seen_shard_obtain(shard, hashes_str(list->hashes), MOST_REWRITTEN));
        old = entry->list;
        entry->list = list;
        seen_shard_weigh(shard, &entry->seen, bytes);
        seen_shard_unlock(shard);
    }
    rewritten_list_unref(old);
}
