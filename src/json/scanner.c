/* The strict JSON reader: grammar, UTF-8, escapes, depth, duplicate keys, in one pass. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "scanner.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/random.h"
#include "taskgate/json/fold.h"
#include "unescape.h"

/* Duplicate keys: pairs for small objects, a hash table at a secret point for large ones. */

/* Up to here comparing all pairs is faster than hashing. */
#define PAIRWISE_LIMIT 16

static void keys_init(struct keys *keys)
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

static void keys_finish(struct keys *keys)
{
    if (keys->items != keys->first_items)
        free(keys->items);
    drop_decoded(keys);
    free(keys->entries.items);
    free(keys->slots.items);
}

static void scanner_grow(struct keys *keys)
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

static void scanner_decode(struct keys *keys, struct key *key)
{
    struct str raw = {key->bytes, key->length};
    reserve(keys, raw.length); /* decoding only shrinks */
    size_t start = keys->decoded.length;
    unescape_append(&keys->decoded, raw);
    set_decoded(keys, key, start);
}

static void scanner_set_head(struct key *key)
{
    char padded[8] = {0};
    if (key->length)
        memcpy(padded, key->bytes, key->length < 8 ? key->length : 8);
    key->head = load_word(padded);
}

const struct key *keys_push_rare(struct keys *keys, struct str raw, bool escaped, const char *end)
{
    if (keys->count == keys->capacity)
        scanner_grow(keys);
    struct key *key = &keys->items[keys->count++];
    *key = (struct key){.bytes = raw.bytes, .length = raw.length, .at = raw.bytes - 1};
    if (escaped)
        scanner_decode(keys, key);
    else
        scanner_set_head(key);
    return key;
}

/* Folds the key that was pushed last, as fold.h says. Whether that changed it. */
static bool keys_fold_last(struct keys *keys)
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

static struct str scanner_text_of(const struct key *key)
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
            if (may_be_same &&
                str_equal(scanner_text_of(key), scanner_text_of(&items[(uint32_t)slots[slot]])))
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

/* Searches the keys from `first` on and pops them. The place of a key that equals an earlier
 * one, or NULL. Time is proportional to the keys' bytes, even if an attacker chose them. */
static const char *keys_pop_object(struct keys *keys, size_t first)
{
    struct key *items = keys->items + first;
    size_t count = keys->count - first;
    keys->count = first;
    return count <= PAIRWISE_LIMIT ? find_by_pairs(items, count) : find_by_hash(keys, items, count);
}

void scanner_init(struct scanner *scanner, struct str text, struct error *error)
{
    static const char nothing[1] = "";
    scanner->begin = text.bytes ? text.bytes : nothing;
    scanner->end = scanner->begin + text.length;
    scanner->depth = 0;
    scanner->verdict = SCAN_ACCEPTED;
    scanner->error = error;
    scanner->place = NULL;
    scanner->refuses_nul = scanner->folds_keys = false;
    keys_init(&scanner->keys);
}

void scanner_finish(struct scanner *scanner)
{
    keys_finish(&scanner->keys);
}

void scanner_fold_keys(struct scanner *scanner)
{
    scanner->folds_keys = true;
}

static void scanner_complain(struct scanner *scanner, const char *at, const char *kind,
                             const char *what)
{
    size_t place = (size_t)(at - scanner->begin);
    if (!scanner->place) {
        error_set(scanner->error, "%s%s at byte %zu", kind, what, place);
        return;
    }
    *scanner->place = place;
    error_set(scanner->error, "%s%s", kind, what);
}

void scan_refuse(struct scanner *scanner, const char *at, const char *what)
{
    if (scanner->verdict != SCAN_ACCEPTED)
        return;
    scanner->verdict = SCAN_REFUSED;
    scanner_complain(scanner, at, "", what);
}

static __attribute__((noinline, cold)) const char *unreadable(struct scanner *scanner,
                                                              const char *at, const char *what)
{
    scanner->verdict = SCAN_UNREADABLE;
    scanner_complain(scanner, at,
                     "not readable as JSON: ", at == scanner->end ? "unexpected end" : what);
    return NULL;
}

/* NUL at the end, where no NUL is ever accepted. */
static unsigned char byte_at(const struct scanner *scanner, const char *at)
{
    return at < scanner->end ? (unsigned char)*at : 0;
}

/* The byte behind the white space at `*at`, which moves there. */
static inline unsigned char next_byte(const struct scanner *scanner, const char **at)
{
    *at = skip_space(*at, scanner->end);
    return byte_at(scanner, *at);
}

/* `at` is a byte of 0x80 or more. Sequences hold only such bytes, so a run of them is well
 * formed or not whatever stands around it. */
static const char *scan_non_ascii(struct scanner *scanner, const char *at)
{
    const char *p = at;
    while (byte_at(scanner, p) >= 0x80)
        p++;
    if (str_is_utf8(str_slice(at, (size_t)(p - at))))
        return p;
    /* Step to the ill-formed sequence itself. */
    for (size_t length = 2; length <= 4 && (size_t)(p - at) >= length; length++) {
        if (str_is_utf8(str_slice(at, length))) {
            at += length;
            length = 1;
        }
    }
    return unreadable(scanner, at, "invalid UTF-8");
}

/* The code unit of a \uXXXX at `at`, or -1. */
static int code_unit(const struct scanner *scanner, const char *at)
{
    if (scanner->end - at < 6 || at[0] != '\\' || at[1] != 'u')
        return -1;
    return hex_quad(at + 2);
}

/* `at` is a backslash. */
static const char *scan_escape(struct scanner *scanner, const char *at)
{
    switch (byte_at(scanner, at + 1)) {
    case '"':
    case '\\':
    case '/':
    case 'b':
    case 'f':
    case 'n':
    case 'r':
    case 't':
        return at + 2;
    case 'u':
        break;
    default:
        return unreadable(scanner, at, "unknown escape");
    }
    int unit = code_unit(scanner, at);
    if (unit < 0)
        return unreadable(scanner, at, "\\u without four hex digits");
    if (unit < 0xD800 || unit > 0xDFFF)
        return at + 6;
    int low = code_unit(scanner, at + 6);
    if (unit > 0xDBFF || low < 0xDC00 || low > 0xDFFF)
        return unreadable(scanner, at, "lone surrogate");
    return at + 12;
}

/* The rest of a string from a byte that is not plain, in the common case out of the way. */
static __attribute__((noinline)) const char *scan_string_rest(struct scanner *scanner,
                                                              const char *at)
{
    const char *p = at;
    while (p) {
        unsigned char c = byte_at(scanner, p);
        if (c == '"')
            return p + 1;
        if (c == '\\') {
            scanner->has_escape = true;
            p = scan_escape(scanner, p);
        } else if (c >= 0x80) {
            p = scan_non_ascii(scanner, p);
        } else {
            p = unreadable(scanner, p, "control character in a string");
        }
        if (p)
            p = plain_end(p, scanner->end);
    }
    return NULL;
}

const char *scan_string(struct scanner *scanner, const char *at)
{
    const char *p = plain_end(at + 1, scanner->end);
    if (p < scanner->end && *p == '"')
        return p + 1;
    return scan_string_rest(scanner, p);
}

static const char *scan_digits(struct scanner *scanner, const char *at)
{
    const char *p = at;
    while (p < scanner->end && *p >= '0' && *p <= '9')
        p++;
    return p > at ? p : unreadable(scanner, p, "expected a digit");
}

static const char *scan_number(struct scanner *scanner, const char *at)
{
    const char *p = at + (*at == '-');
    p = byte_at(scanner, p) == '0' ? p + 1 : scan_digits(scanner, p);
    if (p && byte_at(scanner, p) == '.')
        p = scan_digits(scanner, p + 1);
    if (p && (byte_at(scanner, p) | 0x20) == 'e') {
        unsigned char sign = byte_at(scanner, ++p);
        p = scan_digits(scanner, p + (sign == '+' || sign == '-'));
    }
    return p;
}

static const char *scan_word(struct scanner *scanner, const char *at, struct str word)
{
    if ((size_t)(scanner->end - at) < word.length || memcmp(at, word.bytes, word.length) != 0)
        return unreadable(scanner, at, "unknown word");
    return at + word.length;
}

static bool enter(struct scanner *scanner, const char *at)
{
    if (scanner->depth == SCANNER_MAX_DEPTH) {
        unreadable(scanner, at, "nested too deep");
        return false;
    }
    scanner->depth++;
    return true;
}

/* Scans a key, its colon and the space behind each; returns where the value starts. */
static const char *scan_key(struct scanner *scanner, const char *at, const struct key **key)
{
    if (byte_at(scanner, at) != '"')
        return unreadable(scanner, at, "expected a key");
    scanner->has_escape = false;
    const char *p = scan_string(scanner, at);
    if (!p)
        return NULL;
    struct str raw = {at + 1, (size_t)(p - at) - 2};
    *key = keys_push(&scanner->keys, raw, scanner->has_escape, scanner->end);
    if (scanner->has_escape && scanner->refuses_nul && memchr((*key)->bytes, '\0', (*key)->length))
        scan_refuse(scanner, at, "a NUL in a key");
    if (next_byte(scanner, &p) != ':')
        return unreadable(scanner, p, "expected ':'");
    return skip_space(p + 1, scanner->end);
}

const char *scan_members(struct scanner *scanner, const char *at, scan_visitor *visit,
                         void *context)
{
    size_t first_key = scanner->keys.count;
    bool is_changed = !scanner->folds_keys;
    if (!enter(scanner, at))
        return NULL;
    const char *p = at + 1;
    bool has_more = next_byte(scanner, &p) != '}';
    while (has_more) {
        const struct key *key = NULL;
        p = scan_key(scanner, p, &key);
        if (p && scanner->folds_keys && keys_fold_last(&scanner->keys))
            is_changed = true;
        if (p)
            p = visit ? visit(scanner, p, key, context) : scan_value(scanner, p);
        if (!p)
            return NULL;
        unsigned char next = next_byte(scanner, &p);
        has_more = next == ',';
        if (has_more)
            p = skip_space(p + 1, scanner->end);
        else if (next != '}')
            return unreadable(scanner, p, "expected ',' or '}'");
    }
    const char *duplicate = NULL;
    if (is_changed)
        duplicate = keys_pop_object(&scanner->keys, first_key);
    else
        scanner->keys.count = first_key; /* they were told apart before, and folding changed none */
    if (duplicate)
        scan_refuse(scanner, duplicate,
                    scanner->folds_keys ? "a key that only case or look tells from another"
                                        : "duplicate key");
    scanner->depth--;
    return p + 1;
}

/* `at` is an opening bracket. */
static const char *scan_elements(struct scanner *scanner, const char *at)
{
    if (!enter(scanner, at))
        return NULL;
    const char *p = at + 1;
    bool has_more = next_byte(scanner, &p) != ']';
    while (has_more) {
        p = scan_value(scanner, p);
        if (!p)
            return NULL;
        unsigned char next = next_byte(scanner, &p);
        has_more = next == ',';
        if (has_more)
            p = skip_space(p + 1, scanner->end);
        else if (next != ']')
            return unreadable(scanner, p, "expected ',' or ']'");
    }
    scanner->depth--;
    return p + 1;
}

const char *scan_other_value(struct scanner *scanner, const char *at)
{
    unsigned char c = byte_at(scanner, at);
    switch (c) {
    case '{':
        return scan_members(scanner, at, NULL, NULL);
    case '[':
        return scan_elements(scanner, at);
    case 't':
        return scan_word(scanner, at, STR("true"));
    case 'f':
        return scan_word(scanner, at, STR("false"));
    case 'n':
        return scan_word(scanner, at, STR("null"));
    default:
        if (c == '-' || (c >= '0' && c <= '9'))
            return scan_number(scanner, at);
        return unreadable(scanner, at, "expected a value");
    }
}

enum scan_verdict scan_document(struct scanner *scanner, scan_visitor *visit, void *context,
                                struct str *value)
{
    const char *start = scanner->begin;
    const char *p = next_byte(scanner, &start) == '{' ? scan_members(scanner, start, visit, context)
                                                      : scan_value(scanner, start);
    if (!p)
        return scanner->verdict;
    if (value)
        *value = (struct str){start, (size_t)(p - start)};
    p = skip_space(p, scanner->end);
    if (p != scanner->end)
        unreadable(scanner, p, "text behind the value");
    return scanner->verdict;
}
