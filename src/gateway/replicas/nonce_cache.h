/*
 * The nonces of signed requests that have come lately, so that none is taken twice. Only what was
 * signed well is remembered, so nobody else can fill it; it is bounded all the same, and refuses
 * what it could not remember. Shared by all workers behind a short lock; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "taskgate/core/str.h"

struct nonce_cache;

/* Each nonce is remembered for at least `window_ms`; at most `most` per window are. The caller of
 * nonce_cache_take() has checked that the nonce was signed less than half a window before or after
 * now. */
struct nonce_cache *nonce_cache_create(int64_t window_ms, size_t most);
void nonce_cache_destroy(struct nonce_cache *cache); /* NULL is allowed */
/* false: it has come before; or it may have, because it was signed no later than one that is
 * forgotten, as after the wall clock was set back; or there is no room to remember it. `signed_ms`
 * is the signer's wall clock, `now_ms` is monotonic. */
bool nonce_cache_take(struct nonce_cache *cache, struct str nonce, int64_t signed_ms,
                      int64_t now_ms);
