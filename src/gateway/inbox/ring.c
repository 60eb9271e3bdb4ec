/* Bounded rings of entries. */
#include "ring.h"

#include <stdlib.h>
#include <string.h>

#include "taskgate/core/clock.h"
#include "taskgate/core/memory.h"

/* A longer text is not kept, because the client can ask for its subject. */
#define MOST_JSON_BYTES ((size_t)64 * 1024)

static struct str copy(char **at, struct str text)
{
    char *to = *at;
    if (text.length > 0)
        memcpy(to, text.bytes, text.length);
    *at += text.length;
    return str_slice(to, text.length);
}

struct inbox_entry *inbox_entry_create(unsigned kind, struct str server, struct str name,
                                       struct str json)
{
    struct str kept = json.length <= MOST_JSON_BYTES ? json : STR_EMPTY;
    size_t size = sizeof(struct inbox_entry) + server.length + name.length + kept.length;
    struct inbox_entry *entry = memory_alloc(size);
    char *at = entry->bytes;
    list_init(&entry->node);
    entry->kind = kind;
    entry->size = size;
    entry->at_ms = clock_now_ms();
    random_ulid(entry->id);
    entry->server = copy(&at, server);
    entry->name = copy(&at, name);
    entry->json = copy(&at, kept);
    return entry;
}

void inbox_ring_init(struct inbox_ring *ring, size_t *total)
{
    list_init(&ring->entries);
    ring->count = ring->bytes = 0;
    ring->total = total;
    ring->latest = NULL;
}

static void remove_entry(struct inbox_ring *ring, struct inbox_entry *entry)
{
    if (ring->latest == entry)
        ring->latest = NULL;
    list_remove(&entry->node);
    ring->count--;
    ring->bytes -= entry->size;
    *ring->total -= entry->size;
}

static void drop(struct inbox_ring *ring, struct inbox_entry *entry)
{
    remove_entry(ring, entry);
    free(entry);
}

void inbox_ring_finish(struct inbox_ring *ring)
{
    LIST_FOR_EACH_SAFE (node, next, &ring->entries) {
        drop(ring, LIST_ENTRY(node, struct inbox_entry, node));
    }
}

void inbox_ring_push(struct inbox_ring *ring, struct inbox_entry *entry, size_t most,
                     size_t most_bytes)
{
    list_append(&ring->entries, &entry->node);
    ring->count++;
    ring->bytes += entry->size;
    *ring->total += entry->size;
    LIST_FOR_EACH_SAFE (node, next, &ring->entries) {
        if (ring->count <= most && (ring->bytes <= most_bytes || ring->count == 1))
            return;
        drop(ring, LIST_ENTRY(node, struct inbox_entry, node));
    }
}

void inbox_ring_replace(struct inbox_ring *ring, struct inbox_entry *entry, size_t most,
                        size_t most_bytes)
{
    if (ring->latest)
        drop(ring, ring->latest);
    inbox_ring_push(ring, entry, most, most_bytes); /* never drops the only one */
    ring->latest = entry;
}

void inbox_ring_expire(struct inbox_ring *ring, int64_t before_ms)
{
    LIST_FOR_EACH_SAFE (node, next, &ring->entries) {
        struct inbox_entry *entry = LIST_ENTRY(node, struct inbox_entry, node);
        if (entry->at_ms >= before_ms)
            return;
        drop(ring, entry);
    }
}

void inbox_ring_take_one(struct inbox_ring *ring, struct inbox_entry *entry, struct list *entries)
{
    remove_entry(ring, entry);
    list_append(entries, &entry->node);
}

void inbox_ring_take(struct inbox_ring *ring, struct list *entries)
{
    LIST_FOR_EACH_SAFE (node, next, &ring->entries) {
        inbox_ring_take_one(ring, LIST_ENTRY(node, struct inbox_entry, node), entries);
    }
}
