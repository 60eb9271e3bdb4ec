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
    keys->entries = keys->slots = (struct words){NULL, 0};
}

static void drop_decoded(struct keys *keys)
{
    char *block = keys->decoded.bytes;
    while (block) {
        char *before;
        memcpy(&before, block, sizeof before);
        free(block);
        block = before;
    }
}

void keys_finish(struct keys *keys)
{
    if (keys->items != keys->first_items)
        free(keys->items);
    drop_decoded(keys);
    free(keys->entries.items);
    free(keys->slots.items);
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
#define DECODED_MIN ((size_t)1024)
#define DECODED_MAX ((size_t)1024 * 1024)

/* Room for so many bytes in a row. Those that keys point to stay where they are: a full block is
 * left as it is, and the one behind it begins with its address. */
static void reserve(struct keys *keys, size_t bytes)
{
    struct buffer *decoded = &keys->decoded;
    char *full = decoded->bytes;
    size_t size = 2 * decoded->capacity, needed = bytes + SLACK + sizeof full;
    if (decoded->capacity - decoded->length >= bytes + SLACK)
        return;
    size = size < DECODED_MIN ? DECODED_MIN : size > DECODED_MAX ? DECODED_MAX : size;
    buffer_init(decoded);
    buffer_reserve(decoded, size > needed ? size : needed);
    buffer_append(decoded, str_slice((const char *)&full, sizeof full));
}

/* The key is what stands from `start` on in the stack's own memory, behind which is room. */
static void set_decoded(const struct keys *keys, struct key *key, size_t start)
{
    const struct buffer *decoded = &keys->decoded;
    struct str text = str_slice(decoded->bytes + start, decoded->length - start);
    key->bytes = text.bytes;
    key->length = text.length;
    key->head = keys_head(text);
}

static void decode(struct keys *keys, struct key *key)
{
    struct str raw = {key->bytes, key->length};
    reserve(keys, raw.length); /* decoding only shrinks */
    size_t start = keys->decoded.length;
    unescape_append(&keys->decoded, raw);
    set_decoded(keys, key, start);
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
        decode(keys, key);
    else
        set_head(key);
    return key;
}

bool keys_fold_last(struct keys *keys)
{
    struct key *key = &keys->items[keys->count - 1];
    struct str text = {key->bytes, key->length};
    if (fold_is_folded(text))
        return false;
    reserve(keys, text.length * FOLD_GROWTH);
    size_t start = keys->decoded.length;
    fold_append(&keys->decoded, text);
    set_decoded(keys, key, start);
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
    const uint64_t seven = (UINT64_C(1) << 56) - 1;
    uint64_t hash = hash_step(key->length + 1, key->head & seven);
    size_t at = 7;
    for (; at + 8 <= key->length; at += 7)
        hash = hash_step(hash, load_word(key->bytes + at) & seven);
    if (at < key->length) /* the last word ends with the key */
        hash = hash_step(hash,
                         load_word(key->bytes + key->length - 8) >> (8 - (key->length - at)) * 8);
    return hash * secret.factor;
}

/* The keys of a large object are parted by the upper bits of their hashes, so that the slots of a
 * part fit into a near cache: in one table of all keys each look would wait for memory. */
#define PART_KEYS 1024
#define PARTS_MAX 4096

struct parts {
    unsigned bits;
    uint32_t ends[PARTS_MAX]; /* the place of the next entry of a part, and at last its end */
    uint64_t *entries;
};

static size_t part_of(uint64_t hash, unsigned bits)
{
    return bits > 0 ? hash >> (64 - bits) : 0;
}

/* The bits of a key's hash behind those of its part, and the key's index. The lowest bits are
 * left out: short keys that begin alike differ little there. */
static uint64_t make_entry(uint64_t hash, unsigned bits, size_t index)
{
    return (hash << bits & ~(uint64_t)UINT32_MAX) | index;
}

/* Puts the entries part by part, in the order of the keys, whose heads become their hashes. The
 * most entries of a part. */
static size_t part_keys(struct parts *parts, struct key *items, size_t count)
{
    uint32_t most = 0, before = 0;
    size_t part_count = (size_t)1 << parts->bits;
    memset(parts->ends, 0, part_count * sizeof *parts->ends);
    for (size_t i = 0; i < count; i++) {
        items[i].head = hash_key(&items[i]);
        parts->ends[part_of(items[i].head, parts->bits)]++;
    }
    for (size_t i = 0; i < part_count; i++) {
        uint32_t size = parts->ends[i];
        most = size > most ? size : most;
        parts->ends[i] = before;
        before += size;
    }
    for (size_t i = 0; i < count; i++) {
        uint32_t *end = &parts->ends[part_of(items[i].head, parts->bits)];
        parts->entries[(*end)++] = make_entry(items[i].head, parts->bits, i);
    }
    return most;
}

static struct str text_of(const struct key *key)
{
    return str_slice(key->bytes, key->length);
}

/* The first key of a part that equals one before it; `none` when there is no such key. */
static size_t find_in_part(uint64_t *slots, unsigned slot_bits, const uint64_t *entries,
                           size_t count, const struct key *items, size_t none)
{
    size_t mask = ((size_t)1 << slot_bits) - 1;
    memset(slots, 0xFF, (mask + 1) * sizeof *slots);
    for (size_t i = 0; i < count; i++) {
        const struct key *key = &items[(uint32_t)entries[i]];
        size_t slot = entries[i] >> (64 - slot_bits);
        for (; slots[slot] != UINT64_MAX; slot = (slot + 1) & mask) {
            bool may_be_same = (slots[slot] ^ entries[i]) >> 32 == 0;
            if (may_be_same && str_equal(text_of(key), text_of(&items[(uint32_t)slots[slot]])))
                return (uint32_t)entries[i];
        }
        slots[slot] = entries[i];
    }
    return none;
}

/* Earlier contents are lost. */
static uint64_t *take_room(struct words *room, size_t count)
{
    if (count > room->count) {
        free(room->items);
        room->items = memory_grow_array(NULL, count, sizeof *room->items);
        room->count = count;
    }
    return room->items;
}

static const char *find_by_hash(struct keys *keys, struct key *items, size_t count)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, choose_secret);
    struct parts parts = {.entries = take_room(&keys->entries, count)};
    while (count >> parts.bits > PART_KEYS && 1U << parts.bits < PARTS_MAX)
        parts.bits++;
    size_t most = part_keys(&parts, items, count), twice = count, begin = 0;
    unsigned slot_bits = 6;
    while ((size_t)1 << slot_bits < most * 2)
        slot_bits++;
    uint64_t *slots = take_room(&keys->slots, (size_t)1 << slot_bits);
    for (size_t i = 0; i < (size_t)1 << parts.bits; i++) {
        size_t found = find_in_part(slots, slot_bits, parts.entries + begin, parts.ends[i] - begin,
                                    items, twice);
        twice = found < twice ? found : twice;
        begin = parts.ends[i];
    }
    return twice < count ? items[twice].at : NULL;
}

const char *keys_pop_object(struct keys *keys, size_t first)
{
    struct key *items = keys->items + first;
    size_t count = keys->count - first;
    keys->count = first;
    return count <= PAIRWISE_LIMIT ? find_by_pairs(items, count) : find_by_hash(keys, items, count);
}
