/*
 * Verified tokens, remembered by their digest until they end, so that a signature is checked once.
 *
 * Bounded: where a new token finds no room, one that has ended goes, else the one of its
 * neighbours that was used longest ago. Nothing allocates after creation but the identities
 * themselves. One thread at a time: each loop has its own. Tokens verified by one set of rules
 * (issuer, audience and so on) are found by that set's number alone.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "taskgate/core/str.h"
#include "taskgate/identity/identity.h"

struct token_cache;

struct token_digest {
    unsigned char bytes[32]; /* SHA-256 */
};
struct token_digest token_digest(struct str token);

/* For so many tokens, rounded up. */
struct token_cache *token_cache_create(size_t capacity);
void token_cache_destroy(struct token_cache *cache); /* NULL is allowed */
/* The identity of a token, borrowed until the next token_cache_add(); NULL when it is not known, or
 * when it has ended by `now_ms` (wall clock). */
struct identity *token_cache_find(struct token_cache *cache, uint64_t rules,
                                  const struct token_digest *digest, int64_t now_ms);
/* Takes a reference of its own. */
void token_cache_add(struct token_cache *cache, uint64_t rules, const struct token_digest *digest,
                     struct identity *identity, int64_t now_ms);
size_t token_cache_count(const struct token_cache *cache); /* ended ones that nobody needed the room
                                                              of among them */
