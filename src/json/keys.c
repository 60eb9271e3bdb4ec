/* Duplicate keys: pairs for small objects, a hash table at a secret point for large ones. */
#include "keys.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/random.h"
#include "taskgate/json/fold.h"
#include "unescape.h"

/* Up to here comparing all pairs is faster than hashing. */
#define PAIRWISE_LIMIT 16

void keys_init(struct keys *keys)
{
    /* first_items stays as it is: clearing it would cost more than reading a short message. */
    keys->items = keys->first_items;
    keys->count = 0;
    keys->capacity = KEYS_INLINE;
    buffer_init(&keys->decoded);
    keys->decoded_growth = 1;
    keys->slots = NULL;
    keys->slot_capacity = 0;
}

void keys_finish(struct keys *keys)
{
    if (keys->items != keys->first_items)
        free(keys->items);
    buffer_finish(&keys->decoded);
    free(keys->slots);
}

static void grow(struct keys *keys)
{
    struct key *old = keys->items == keys->first_items ? NULL : keys->items;
    keys->capacity *= 2;
    keys->items = memory_grow_array(old, keys->capacity, sizeof *keys->items);
    if (!old)
        memcpy(keys->items, keys->first_items, sizeof keys->first_items);
}

/* More than fold_append() reserves beyond what it writes. */
#define SLACK 64

/* Decoding only shrinks, so room for the rest of the text is room for all keys to come, and the
 * bytes never move under the keys that point to them. */
static void reserve(struct keys *keys, const struct key *key, const char *end)
{
    if (keys->decoded.capacity == 0)
        buffer_reserve(&keys->decoded, (size_t)(end - key->at) * keys->decoded_growth + SLACK);
}

/* The key's bytes move to the stack's own memory, decoded. */
static void decode(struct keys *keys, struct key *key, const char *end)
{
    struct str raw = {key->bytes, key->length};
    reserve(keys, key, end);
    size_t start = keys->decoded.length;
    unescape_append(&keys->decoded, raw);
    key->bytes = keys->decoded.bytes + start;
    key->length = keys->decoded.length - start;
}

static void set_head(struct key *key)
{
    char padded[8] = {0};
    if (key->length)
        memcpy(padded, key->bytes, key->length < 8 ? key->length : 8);
    key->head = load_word(padded);
}

const struct key *keys_push_rare(struct keys *keys, struct str raw, bool escaped, const char *end)
{
    if (keys->count == keys->capacity)
        grow(keys);
    struct key *key = &keys->items[keys->count++];
    *key = (struct key){.bytes = raw.bytes, .length = raw.length, .at = raw.bytes - 1};
    if (escaped)
        decode(keys, key, end);
    set_head(key);
    return key;
}

void keys_expect_folds(struct keys *keys)
{
    keys->decoded_growth = 1 + FOLD_GROWTH; /* a key may be decoded and then folded */
}

bool keys_fold_last(struct keys *keys, const char *end)
{
    struct key *key = &keys->items[keys->count - 1];
    struct str text = {key->bytes, key->length};
    if (fold_is_folded(text))
        return false;
    reserve(keys, key, end);
    size_t start = keys->decoded.length;
    fold_append(&keys->decoded, text);
    key->bytes = keys->decoded.bytes + start;
    key->length = keys->decoded.length - start;
    set_head(key);
    return true;
}

static bool same(const struct key *a, const struct key *b)
{
    return a->head == b->head && a->length == b->length &&
           (a->length <= 8 || memcmp(a->bytes + 8, b->bytes + 8, a->length - 8) == 0);
}

static const char *find_by_pairs(const struct key *items, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        for (size_t j = 0; j < i; j++) {
            if (same(&items[i], &items[j]))
                return items[i].at;
        }
    }
    return NULL;
}

/* So many slots are on their way from memory at once. */
#define HASH_BATCH 16
#define HASH_PRIME ((UINT64_C(1) << 61) - 1)

static struct {
    uint64_t point, factor;
} secret;

static void choose_secret(void)
{
    random_bytes(&secret, sizeof secret);
    secret.point = secret.point % (HASH_PRIME - 2) + 2;
    secret.factor |= 1;
}

static uint64_t hash_step(uint64_t hash, uint64_t word)
{
    unsigned __int128 product = (unsigned __int128)hash * secret.point + word;
    uint64_t sum = (uint64_t)(product & HASH_PRIME) + (uint64_t)(product >> 61);
    return sum >= HASH_PRIME ? sum - HASH_PRIME : sum;
}

/* The key as a polynomial over a prime field, at a point that nobody outside knows: keys
 * chosen to collide would have to share a root there. FNV-like hashes, even seeded, do not
 * withstand chosen keys, and a body may hold a hundred thousand. */
static uint64_t hash_key(const struct key *key)
{
    uint64_t hash = key->length + 1;
    const char *p = key->bytes;
    size_t left = key->length;
    for (; left >= 7; left -= 7, p += 7) {
        uint64_t word = 0;
        memcpy(&word, p, 7);
        hash = hash_step(hash, word);
    }
    uint64_t word = 0;
    memcpy(&word, p, left);
    return hash_step(hash, word) * secret.factor;
}

/* A slot holds the lower half of a key's hash and the key's number: equal keys alone are looked
 * at, so that a large object costs one miss of the cache for each key. */
static uint64_t make_slot(uint64_t hash, size_t number)
{
    return hash << 32 | number;
}

static void clear_slots(struct keys *keys, size_t capacity)
{
    if (capacity > keys->slot_capacity) {
        keys->slots = memory_grow_array(keys->slots, capacity, sizeof *keys->slots);
        keys->slot_capacity = capacity;
    }
    memset(keys->slots, 0, capacity * sizeof *keys->slots);
}

/* The key that equals one before it; NULL: it is the first of its kind, and takes a slot. */
static const struct key *put(uint64_t *slots, size_t mask, size_t slot, uint64_t hash,
                             const struct key *items, size_t number)
{
    for (; slots[slot]; slot = (slot + 1) & mask) {
        bool may_be_same = (slots[slot] ^ make_slot(hash, 0)) >> 32 == 0;
        if (may_be_same && same(&items[number], &items[(uint32_t)slots[slot] - 1]))
            return &items[number];
    }
    slots[slot] = make_slot(hash, number + 1);
    return NULL;
}

static const char *find_by_hash(struct keys *keys, const struct key *items, size_t count)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, choose_secret);
    unsigned bits = 6;
    while ((size_t)1 << bits < count * 2)
        bits++;
    size_t mask = ((size_t)1 << bits) - 1;
    clear_slots(keys, mask + 1);
    for (size_t first = 0; first < count; first += HASH_BATCH) {
        uint64_t hashes[HASH_BATCH];
        size_t batch = count - first < HASH_BATCH ? count - first : HASH_BATCH;
        for (size_t i = 0; i < batch; i++) {
            hashes[i] = hash_key(&items[first + i]);
            __builtin_prefetch(&keys->slots[hashes[i] >> (64 - bits)], 1);
        }
        for (size_t i = 0; i < batch; i++) {
            const struct key *twice = put(keys->slots, mask, (size_t)(hashes[i] >> (64 - bits)),
                                          hashes[i], items, first + i);
            if (twice)
                return twice->at;
        }
    }
    return NULL;
}

const char *keys_pop_object(struct keys *keys, size_t first)
{
    const struct key *items = keys->items + first;
    size_t count = keys->count - first;
    keys->count = first;
    return count <= PAIRWISE_LIMIT ? find_by_pairs(items, count) : find_by_hash(keys, items, count);
}
