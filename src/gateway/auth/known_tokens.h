/*
 * Authorization headers that were verified and let in lately, and how their calls are identified: a
 * request with the same bytes costs a comparison instead of hashes. Beside token_cache.h, which
 * remembers more tokens, by their digests. Bounded in number and bytes, in memory alone, gone with
 * the snapshot. One for each worker, on its thread.
 */
#pragma once

#include "call/call.h"

struct known_tokens;
struct known_tokens *known_tokens_create(void);
void known_tokens_destroy(struct known_tokens *tokens); /* NULL is allowed */
void known_tokens_clear(struct known_tokens *tokens);

/* Identifies a call whose header was let in by these rules before, and has not ended by `now_ms`
 * (wall clock). false: it is not known. */
bool known_tokens_identify(struct known_tokens *tokens, uint64_t rules, struct call *call,
                           int64_t now_ms);
/* The call has been let in; identifies it. */
void known_tokens_add(struct known_tokens *tokens, uint64_t rules, struct call *call);
