/* Values: making, comparing and hashing them. */
#include "value.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "taskgate/core/memory.h"

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

uint64_t value_hash(const struct cedar_value *value)
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

unsigned value_depth(const struct cedar_value *value)
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
    return kind_names[kind];
}
