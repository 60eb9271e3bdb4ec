/* Values: making, comparing and hashing them. */
#include <pthread.h>
#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "taskgate/core/assert.h"
#include "taskgate/core/memory.h"
#include "value.h"

/* A chain of blocks, each twice as large as the one before up to a limit. */

/* No type in an arena needs more. */
#define UNIT sizeof(uint64_t)
#define FIRST_BLOCK ((size_t)4096)
#define LARGEST_STEP ((size_t)256 * 1024)

struct arena_block {
    struct arena_block *next;
    size_t size;
    alignas(max_align_t) char bytes[];
};

void arena_init(struct arena *arena)
{
    *arena = (struct arena){.first = NULL};
}

static void free_blocks(struct arena_block *block)
{
    while (block) {
        struct arena_block *next = block->next;
        free(block);
        block = next;
    }
}

void arena_finish(struct arena *arena)
{
    free_blocks(arena->first);
    arena_init(arena);
}

void arena_reset(struct arena *arena)
{
    if (!arena->first)
        return;
    free_blocks(arena->first->next);
    arena->first->next = NULL;
    arena->last = arena->first;
    arena->next = arena->first->bytes;
    arena->left = arena->first->size;
}

static void add_block(struct arena *arena, size_t needed)
{
    size_t size = arena->last ? arena->last->size * 2 : FIRST_BLOCK;
    if (size > LARGEST_STEP)
        size = LARGEST_STEP;
    if (size < needed)
        size = needed;
    struct arena_block *block = memory_grow_array(NULL, sizeof *block + size, 1);
    *block = (struct arena_block){.size = size};
    if (arena->last)
        arena->last->next = block;
    else
        arena->first = block;
    arena->last = block;
    arena->next = block->bytes;
    arena->left = size;
}

void *arena_alloc(struct arena *arena, size_t size)
{
    /* A size that cannot be rounded up cannot be had either: let the allocator say so. */
    size_t rounded = size > SIZE_MAX / 4 ? SIZE_MAX / 4 : (size + UNIT - 1) / UNIT * UNIT;
    if (rounded > arena->left || !arena->first)
        add_block(arena, rounded);
    void *memory = arena->next;
    arena->next += rounded;
    arena->left -= rounded;
    return memory;
}

void *arena_alloc_array(struct arena *arena, size_t count, size_t size)
{
    return arena_alloc(arena, size && count > SIZE_MAX / size ? SIZE_MAX : count * size);
}

struct str arena_copy(struct arena *arena, struct str s)
{
    if (s.length == 0)
        return STR_EMPTY;
    char *copy = arena_alloc(arena, s.length);
    memcpy(copy, s.bytes, s.length);
    return str_slice(copy, s.length);
}

/* Equality of values, of which sets and records are made, and the search in a set by it. */

static bool ip_equal(const struct cedar_ip *a, const struct cedar_ip *b)
{
    return a->v6 == b->v6 && a->prefix == b->prefix &&
           memcmp(a->bytes, b->bytes, a->v6 ? 16 : 4) == 0;
}

bool cedar_value_equal(const struct cedar_value *a, const struct cedar_value *b)
{
    if (a->kind != b->kind)
        return false;
    switch (a->kind) {
    case CEDAR_BOOL:
        return a->boolean == b->boolean;
    case CEDAR_STRING:
        return str_equal(a->text, b->text);
    case CEDAR_ENTITY:
        return cedar_uid_equal(a->entity, b->entity);
    case CEDAR_SET:
        return set_equal(a->set, b->set);
    case CEDAR_RECORD:
        return record_equal(a->record, b->record);
    case CEDAR_IP:
        return ip_equal(a->ip, b->ip);
    default:
        return a->number == b->number;
    }
}

/* The order of members. Names of different lengths differ; their bytes are not read. */
static int record_compare_names(struct str a, struct str b)
{
    if (a.length != b.length)
        return a.length < b.length ? -1 : 1;
    return a.length ? memcmp(a.bytes, b.bytes, a.length) : 0;
}

bool record_equal(const struct cedar_record *a, const struct cedar_record *b)
{
    if (a == b)
        return true;
    if (a->count != b->count || (a->count && a->hash != b->hash))
        return false;
    for (size_t i = 0; i < a->count; i++)
        if (record_compare_names(a->members[i].name, b->members[i].name) != 0 ||
            !cedar_value_equal(&a->members[i].value, &b->members[i].value))
            return false;
    return true;
}

/* The place of `value` with this hash among the items, or their count. In a set with slots that
 * lacks it, `free_slot` becomes the slot where it would be entered. */
static size_t set_find(const struct cedar_set *set, const struct cedar_value *value, uint64_t hash,
                       size_t *free_slot)
{
    if (!set->slots) {
        for (size_t i = 0; i < set->count; i++)
            if (set->hashes[i] == hash && cedar_value_equal(&set->items[i], value))
                return i;
        return set->count;
    }
    size_t slot = hash & set->slot_mask;
    for (; set->slots[slot]; slot = (slot + 1) & set->slot_mask) {
        size_t i = set->slots[slot] - 1;
        if (set->hashes[i] == hash && cedar_value_equal(&set->items[i], value))
            return i;
    }
    *free_slot = slot;
    return set->count;
}

static bool set_contains_hashed(const struct cedar_set *set, const struct cedar_value *value,
                                uint64_t hash)
{
    size_t unused;
    return set_find(set, value, hash, &unused) < set->count;
}

bool set_is_subset(const struct cedar_set *part, const struct cedar_set *whole)
{
    if (part->count > whole->count)
        return false;
    for (size_t i = 0; i < part->count; i++)
        if (!set_contains_hashed(whole, &part->items[i], part->hashes[i]))
            return false;
    return true;
}

bool set_equal(const struct cedar_set *a, const struct cedar_set *b)
{
    return a == b || (a->count == b->count && a->hash == b->hash && set_is_subset(a, b));
}

/* Records: members in one order, so that two equal records look alike. */

const struct cedar_record record_empty = {.depth = 1};

static int value_compare_members(const void *left, const void *right)
{
    const struct cedar_member *a = left, *b = right;
    return record_compare_names(a->name, b->name);
}

static uint64_t value_hash(const struct cedar_value *value);

static unsigned value_depth(const struct cedar_value *value);

bool record_build(struct arena *arena, struct cedar_member *members, size_t count,
                  struct cedar_value *record, struct str *twice)
{
    if (count > 1)
        qsort(members, count, sizeof *members, value_compare_members);
    uint64_t hash = count, weight = 0;
    unsigned depth = 0;
    bool has_names = false;
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && record_compare_names(members[i - 1].name, members[i].name) == 0) {
            if (twice)
                *twice = members[i].name;
            return false;
        }
        hash = value_mix(hash + value_hash_text(members[i].name)) + value_hash(&members[i].value);
        weight += value_weight(&members[i].value);
        if (value_depth(&members[i].value) > depth)
            depth = value_depth(&members[i].value);
        has_names = has_names || value_has_names(&members[i].value);
    }
    if (depth >= CEDAR_MAX_VALUE_DEPTH)
        return false;
    struct cedar_record *made = arena_alloc(arena, sizeof *made);
    *made = (struct cedar_record){.count = count,
                                  .members = members,
                                  .hash = value_mix(hash),
                                  .weight = weight > UINT32_MAX ? UINT32_MAX : (uint32_t)weight,
                                  .depth = depth + 1,
                                  .has_names = has_names};
    *record = (struct cedar_value){.kind = CEDAR_RECORD, .record = made};
    return true;
}

bool cedar_record(struct cedar_heap *heap, const struct cedar_member *members, size_t count,
                  struct cedar_value *record)
{
    struct cedar_member *copy = arena_alloc_array(&heap->arena, count, sizeof *copy);
    if (count)
        memcpy(copy, members, count * sizeof *copy);
    return record_build(&heap->arena, copy, count, record, NULL);
}

const struct cedar_value *cedar_record_get(const struct cedar_record *record, struct str name)
{
    size_t low = 0, high = record->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = record_compare_names(name, record->members[middle].name);
        if (order == 0)
            return &record->members[middle].value;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

/* Sets: distinct elements, found by their hashes. */

/* Up to here the hashes are compared one after the other. */
#define SEARCHED_ONE_BY_ONE 8

static size_t slots_for(size_t count)
{
    size_t size = 16;
    while (size < count * 2)
        size *= 2;
    return size;
}

bool set_build(struct arena *arena, struct cedar_value *elements, size_t count,
               struct cedar_value *set)
{
    uint64_t *hashes = arena_alloc_array(arena, count, sizeof *hashes);
    uint32_t *slots = NULL;
    struct cedar_set *made = arena_alloc(arena, sizeof *made);
    *made = (struct cedar_set){.items = elements, .hashes = hashes};
    if (count > SEARCHED_ONE_BY_ONE) {
        made->slot_mask = slots_for(count) - 1;
        slots = arena_alloc_array(arena, made->slot_mask + 1, sizeof *slots);
        memset(slots, 0, (made->slot_mask + 1) * sizeof *slots);
        made->slots = slots;
    }
    uint64_t sum = 0, weight = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t hash = value_hash(&elements[i]);
        size_t free_slot = 0;
        if (set_find(made, &elements[i], hash, &free_slot) < made->count)
            continue;
        elements[made->count] = elements[i];
        hashes[made->count++] = hash;
        if (slots)
            slots[free_slot] = (uint32_t)made->count;
        sum += hash;
        weight += value_weight(&elements[i]);
        if (value_depth(&elements[i]) > made->depth)
            made->depth = value_depth(&elements[i]);
        made->has_names = made->has_names || value_has_names(&elements[i]);
    }
    made->hash = value_mix(sum + made->count);
    made->weight = weight > UINT32_MAX ? UINT32_MAX : (uint32_t)weight;
    *set = (struct cedar_value){.kind = CEDAR_SET, .set = made};
    return ++made->depth <= CEDAR_MAX_VALUE_DEPTH;
}

bool cedar_set(struct cedar_heap *heap, const struct cedar_value *elements, size_t count,
               struct cedar_value *set)
{
    struct cedar_value *copy = arena_alloc_array(&heap->arena, count, sizeof *copy);
    if (count)
        memcpy(copy, elements, count * sizeof *copy);
    return set_build(&heap->arena, copy, count, set);
}

bool set_contains(const struct cedar_set *set, const struct cedar_value *value)
{
    return set->count && set_contains_hashed(set, value, value_hash(value));
}

bool set_overlaps(const struct cedar_set *a, const struct cedar_set *b)
{
    const struct cedar_set *smaller = a->count < b->count ? a : b;
    const struct cedar_set *larger = smaller == a ? b : a;
    for (size_t i = 0; i < smaller->count; i++)
        if (set_contains_hashed(larger, &smaller->items[i], smaller->hashes[i]))
            return true;
    return false;
}

/* Of a text: comparing and searching them takes about as long as another value does. */

struct cedar_heap *cedar_heap_create(void)
{
    struct cedar_heap *heap = memory_alloc(sizeof *heap);
    arena_init(&heap->arena);
    return heap;
}

void cedar_heap_destroy(struct cedar_heap *heap)
{
    if (!heap)
        return;
    arena_finish(&heap->arena);
    free(heap);
}

void cedar_heap_reset(struct cedar_heap *heap)
{
    arena_reset(&heap->arena);
}

struct str cedar_heap_copy(struct cedar_heap *heap, struct str s)
{
    return arena_copy(&heap->arena, s);
}

uint64_t value_mix(uint64_t hash)
{
    hash ^= hash >> 32;
    hash *= UINT64_C(0xd6e8feb86659fd93);
    hash ^= hash >> 29;
    return hash;
}

static uint64_t seed;

/* Seeded like all hash tables of the process, so that a request cannot cause collisions. */
static void choose_seed(void)
{
    seed = value_mix(str_hash(STR("cedar")));
}

uint64_t value_hash_text(struct str text)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, choose_seed);
    uint64_t hash = seed ^ text.length;
    size_t i = 0;
    for (; i + 8 <= text.length; i += 8) {
        uint64_t word;
        memcpy(&word, text.bytes + i, 8);
        hash = value_mix(hash ^ word) + seed;
    }
    uint64_t tail = 0;
    if (i < text.length)
        memcpy(&tail, text.bytes + i, text.length - i);
    return value_mix(hash ^ tail);
}

struct cedar_uid cedar_uid(struct str type, struct str id)
{
    uint64_t hash = value_mix(value_hash_text(type)) ^ value_hash_text(id);
    return (struct cedar_uid){.type = type, .id = id, .hash = hash};
}

bool cedar_uid_equal(const struct cedar_uid *a, const struct cedar_uid *b)
{
    return a == b || (a->hash == b->hash && str_equal(a->id, b->id) && str_equal(a->type, b->type));
}

const struct cedar_uid *uid_copy(struct arena *arena, const struct cedar_uid *uid)
{
    struct cedar_uid *copy = arena_alloc(arena, sizeof *copy);
    *copy = (struct cedar_uid){
        .type = arena_copy(arena, uid->type), .id = arena_copy(arena, uid->id), .hash = uid->hash};
    return copy;
}

struct cedar_value cedar_bool(bool value)
{
    return (struct cedar_value){.kind = CEDAR_BOOL, .boolean = value};
}

struct cedar_value cedar_long(int64_t value)
{
    return (struct cedar_value){.kind = CEDAR_LONG, .number = value};
}

struct cedar_value cedar_string(struct str borrowed)
{
    return (struct cedar_value){.kind = CEDAR_STRING, .text = borrowed};
}

struct cedar_value cedar_datetime(int64_t ms)
{
    return (struct cedar_value){.kind = CEDAR_DATETIME, .number = ms};
}

struct cedar_value cedar_unknown(void)
{
    return (struct cedar_value){.kind = CEDAR_UNKNOWN};
}

struct cedar_value cedar_entity(struct cedar_heap *heap, const struct cedar_uid *uid)
{
    return (struct cedar_value){.kind = CEDAR_ENTITY, .entity = uid_copy(&heap->arena, uid)};
}

static uint64_t value_hash(const struct cedar_value *value)
{
    uint64_t hash;
    switch (value->kind) {
    case CEDAR_BOOL:
        hash = value->boolean;
        break;
    case CEDAR_STRING:
        hash = value_hash_text(value->text);
        break;
    case CEDAR_ENTITY:
        hash = value->entity->hash;
        break;
    case CEDAR_SET:
        hash = value->set->hash;
        break;
    case CEDAR_RECORD:
        hash = value->record->hash;
        break;
    case CEDAR_IP:
        hash = value_hash_text(str_slice((const char *)value->ip->bytes, 16)) ^ value->ip->prefix;
        break;
    default: /* mixed twice with the seed: once would leave numbers that collide under any seed */
        hash = value_hash_text(str_slice((const char *)&value->number, sizeof value->number));
    }
    return value_mix(hash + ((uint64_t)value->kind << 56));
}

uint32_t value_weight(const struct cedar_value *value)
{
    uint64_t inside = value->kind == CEDAR_SET      ? value->set->weight
                      : value->kind == CEDAR_RECORD ? value->record->weight
                      : value->kind == CEDAR_STRING ? value->text.length / BYTES_PER_STEP
                                                    : 0;
    return inside < UINT32_MAX ? (uint32_t)inside + 1 : UINT32_MAX;
}

bool value_has_names(const struct cedar_value *value)
{
    return value->kind == CEDAR_SET      ? value->set->has_names
           : value->kind == CEDAR_RECORD ? value->record->has_names
                                         : false;
}

/* 0 for a scalar. */
static unsigned value_depth(const struct cedar_value *value)
{
    return value->kind == CEDAR_SET      ? value->set->depth
           : value->kind == CEDAR_RECORD ? value->record->depth
                                         : 0;
}

static const char *const kind_names[CEDAR_KIND_COUNT] = {
    [CEDAR_BOOL] = "bool",       [CEDAR_LONG] = "long",         [CEDAR_STRING] = "string",
    [CEDAR_ENTITY] = "entity",   [CEDAR_SET] = "set",           [CEDAR_RECORD] = "record",
    [CEDAR_DECIMAL] = "decimal", [CEDAR_DATETIME] = "datetime", [CEDAR_DURATION] = "duration",
    [CEDAR_IP] = "ipaddr",       [CEDAR_UNKNOWN] = "unknown",
};

const char *cedar_kind_name(enum cedar_kind kind)
{
    ASSERT_NUMBERS(kind, <, CEDAR_KIND_COUNT);
    return kind_names[kind];
}
