/* Duplicate keys: pairs for small objects, a hash table at a secret point for large ones. */
#include "keys.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/random.h"
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

/* The key's bytes move to the stack's own memory, decoded. */
static void decode(struct keys *keys, struct key *key, const char *end)
{
    struct str raw = {key->bytes, key->length};
    /* Decoding only shrinks, so room for the rest of the text is room for all keys to come,
     * and the bytes never move under the keys that point to them. */
    if (keys->decoded.capacity == 0)
        buffer_reserve(&keys->decoded, (size_t)(end - raw.bytes));
    size_t start = keys->decoded.length;
    unescape_append(&keys->decoded, raw);
    key->bytes = keys->decoded.bytes + start;
    key->length = keys->decoded.length - start;
}

const struct key *keys_push_rare(struct keys *keys, struct str raw, bool escaped, const char *end)
{
    if (keys->count == keys->capacity)
        grow(keys);
    struct key *key = &keys->items[keys->count++];
    *key = (struct key){.bytes = raw.bytes, .length = raw.length, .at = raw.bytes - 1};
    if (escaped)
        decode(keys, key, end);
    char padded[8] = {0};
    memcpy(padded, key->bytes, key->length < 8 ? key->length : 8);
    key->head = load_word(padded);
    return key;
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

static const char *find_by_hash(struct keys *keys, const struct key *items, size_t count)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, choose_secret);
    unsigned bits = 6;
    while ((size_t)1 << bits < count * 2)
        bits++;
    size_t capacity = (size_t)1 << bits;
    if (capacity > keys->slot_capacity) {
        keys->slots = memory_grow_array(keys->slots, capacity, sizeof *keys->slots);
        keys->slot_capacity = capacity;
    }
    memset(keys->slots, 0, capacity * sizeof *keys->slots);
    for (size_t i = 0; i < count; i++) {
        size_t slot = (size_t)(hash_key(&items[i]) >> (64 - bits));
        for (; keys->slots[slot]; slot = (slot + 1) & (capacity - 1)) {
            if (same(&items[i], &items[keys->slots[slot] - 1]))
                return items[i].at;
        }
        keys->slots[slot] = (uint32_t)(i + 1);
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
