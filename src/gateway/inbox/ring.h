/*
 * A bounded ring of entries for a client, the oldest first. The owner of the ring holds the lock.
 */
#pragma once

#include <stdint.h>

#include "taskgate/core/list.h"
#include "taskgate/core/random.h"
#include "taskgate/core/str.h"

struct inbox_entry {
    struct list node;
    int64_t at_ms; /* wall clock */
    char id[RANDOM_ULID_BYTES];
    unsigned kind;         /* the meaning is the maker's */
    struct str server;     /* in `bytes`, as all three */
    struct str name, json; /* json is what was given, or "" where it was too long to keep */
    size_t size;
    char bytes[];
};

struct inbox_ring {
    struct list entries;
    size_t count, bytes;
    size_t *total;              /* of several lines, `bytes` of this one among them */
    struct inbox_entry *latest; /* that the next inbox_ring_replace() drops, if it is still there */
};

struct inbox_entry *inbox_entry_create(unsigned kind, struct str server, struct str name,
                                       struct str json);

void inbox_ring_init(struct inbox_ring *ring, size_t *total);
void inbox_ring_finish(struct inbox_ring *ring);
/* Takes the entry over; the oldest make room until there are at most `most` in `most_bytes`. */
void inbox_ring_push(struct inbox_ring *ring, struct inbox_entry *entry, size_t most,
                     size_t most_bytes);
/* The same with an entry that stands for the last one given so: what it said is out of date. */
void inbox_ring_replace(struct inbox_ring *ring, struct inbox_entry *entry, size_t most,
                        size_t most_bytes);
/* Drops what is older than `before_ms`. */
void inbox_ring_expire(struct inbox_ring *ring, int64_t before_ms);
/* Moves everything to `entries`, which becomes the caller's to free. */
void inbox_ring_take(struct inbox_ring *ring, struct list *entries);
/* Moves one entry. */
void inbox_ring_take_one(struct inbox_ring *ring, struct inbox_entry *entry, struct list *entries);
