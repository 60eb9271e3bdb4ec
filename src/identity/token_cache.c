/* A table of small groups: a token can stand in one group alone, so that looking it up is one step
 * and what has to go is among eight. */
#include "taskgate/identity/token_cache.h"

#include <openssl/sha.h>
#include <stdlib.h>
#include <string.h>

#include "taskgate/core/assert.h"
#include "taskgate/core/memory.h"

#define GROUP_SLOTS 8

struct slot {
    struct token_digest digest;
    uint64_t rules;
    struct identity *identity; /* NULL: free */
    uint64_t used;             /* the cache's clock at the last use */
};

struct token_cache {
    uint64_t clock;
    size_t groups; /* a power of two */
    size_t count;
    struct slot *slots;
};

struct token_digest token_digest(struct str token)
{
    struct token_digest digest;
    if (!SHA256((const unsigned char *)(token.length ? token.bytes : ""), token.length,
                digest.bytes))
        memory_exhausted(); /* nothing else can be missing */
    return digest;
}

struct token_cache *token_cache_create(size_t capacity)
{
    struct token_cache *cache = memory_alloc(sizeof(*cache));
    cache->groups = 1;
    while (cache->groups * GROUP_SLOTS < capacity)
        cache->groups *= 2;
    cache->slots = memory_alloc_array(cache->groups * GROUP_SLOTS, sizeof(*cache->slots));
    return cache;
}

void token_cache_destroy(struct token_cache *cache)
{
    if (!cache)
        return;
    for (size_t i = 0; i < cache->groups * GROUP_SLOTS; i++)
        identity_unref(cache->slots[i].identity);
    free(cache->slots);
    free(cache);
}

static struct slot *group_of(struct token_cache *cache, const struct token_digest *digest)
{
    size_t head;
    memcpy(&head, digest->bytes, sizeof head);
    return &cache->slots[(head & (cache->groups - 1)) * GROUP_SLOTS];
}

static bool token_cache_holds(const struct slot *slot, uint64_t rules,
                              const struct token_digest *digest)
{
    return slot->identity && slot->rules == rules &&
           memcmp(&slot->digest, digest, sizeof *digest) == 0;
}

struct identity *token_cache_find(struct token_cache *cache, uint64_t rules,
                                  const struct token_digest *digest, int64_t now_ms)
{
    struct slot *group = group_of(cache, digest);
    for (unsigned i = 0; i < GROUP_SLOTS; i++) {
        if (!token_cache_holds(&group[i], rules, digest))
            continue;
        if (now_ms >= group[i].identity->until_ms)
            return NULL;
        group[i].used = ++cache->clock;
        return group[i].identity;
    }
    return NULL;
}

/* The slot to fill: a free one, then one whose token has ended, then the one used longest ago. */
static uint64_t worth(const struct slot *slot, int64_t now_ms)
{
    if (!slot->identity)
        return 0;
    return now_ms >= slot->identity->until_ms ? 1 : 1 + slot->used;
}

void token_cache_add(struct token_cache *cache, uint64_t rules, const struct token_digest *digest,
                     struct identity *identity, int64_t now_ms)
{
    struct slot *group = group_of(cache, digest), *chosen = &group[0];
    for (unsigned i = 0; i < GROUP_SLOTS; i++) {
        if (token_cache_holds(&group[i], rules, digest)) {
            chosen = &group[i];
            break;
        }
        if (worth(&group[i], now_ms) < worth(chosen, now_ms))
            chosen = &group[i];
    }
    ASSERT(identity);
    if (!chosen->identity)
        cache->count++;
    ASSERT_NUMBERS(cache->count, <=, cache->groups * GROUP_SLOTS);
    identity_ref(identity);
    identity_unref(chosen->identity);
    *chosen = (struct slot){*digest, rules, identity, ++cache->clock};
}

size_t token_cache_count(const struct token_cache *cache)
{
    return cache->count;
}
