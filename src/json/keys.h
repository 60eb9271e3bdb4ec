/*
 * The keys of the objects that a scan stands in, and the search for two equal ones.
 *
 * One stack for all open objects: an object's keys lie above those of the object around it.
 * Keys point into the scanned text, or, when they had escapes, into memory of the stack.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bytes.h"
#include "taskgate/core/buffer.h"
#include "taskgate/core/str.h"

#define KEYS_INLINE 48

struct key {
    const char *bytes; /* decoded */
    size_t length;
    uint64_t head;  /* load_word() of the key, zero-padded: most unequal keys differ here */
    const char *at; /* the opening quote in the text */
};

struct words {
    uint64_t *items;
    size_t count;
};

struct keys {
    struct key *items; /* `first_items` until they run out */
    size_t count, capacity;
    struct buffer decoded;       /* the last block of them */
    size_t decoded_growth;       /* how many times the text's bytes `decoded` may come to need */
    struct words entries, slots; /* room for large objects; empty until one closes */
    struct key first_items[KEYS_INLINE];
};

void keys_init(struct keys *keys);
void keys_finish(struct keys *keys);
/* keys_push() for escaped keys, full stacks and the end of the text. */
const struct key *keys_push_rare(struct keys *keys, struct str raw, bool escaped, const char *end);

/* Eight bytes can be read, however short the key is. */
static inline uint64_t keys_head(struct str key)
{
    uint64_t word = load_word(key.bytes);
    return key.length < 8 ? word & ((UINT64_C(1) << key.length * 8) - 1) : word;
}

/* Pushes the key whose raw text is `raw`; `end` is where the scanned text ends. The result is
 * valid until the next push. */
static inline const struct key *keys_push(struct keys *keys, struct str raw, bool escaped,
                                          const char *end)
{
    if (escaped || keys->count == keys->capacity || end - raw.bytes < 8)
        return keys_push_rare(keys, raw, escaped, end);
    struct key *key = &keys->items[keys->count++];
    key->bytes = raw.bytes;
    key->length = raw.length;
    key->at = raw.bytes - 1;
    key->head = keys_head(raw);
    return key;
}

/* Folds the key that was pushed last, as fold.h says. Whether that changed it. */
bool keys_fold_last(struct keys *keys);

/* Searches the keys from `first` on and pops them. The place of a key that equals an earlier
 * one, or NULL. Time is proportional to the keys' bytes, even if an attacker chose them. */
const char *keys_pop_object(struct keys *keys, size_t first);
