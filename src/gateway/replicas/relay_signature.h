/*
 * The signature of a request that one replica relays to another (behaviour 16.3): HMAC-SHA-256 with
 * the key that all replicas share, over everything that says what is asked and of whom.
 *
 * It travels in one header, whose seven words have a blank between them:
 *
 *     Taskgate-Relay: v1 FROM TO EPOCH TIME NONCE SIGNATURE
 *
 * Nothing here knows a request; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "taskgate/core/buffer.h"
#include "taskgate/core/digest.h"
#include "taskgate/core/str.h"
#include "taskgate/http/names.h"

#define RELAY_SIGNATURE_HEADER "taskgate-relay"
/* How far the clocks of two replicas, and the time on the way, may be apart. */
#define RELAY_SIGNATURE_WINDOW_MS 30000
#define RELAY_NONCE_BYTES 33 /* 128 random bits in hex, and the NUL */

/* The signed parts of a request. All texts are borrowed. */
struct relay_signed {
    struct str from, to; /* the ids of both replicas: visible ASCII without blanks */
    int64_t epoch;       /* of `to`: another life of the same replica is not meant */
    int64_t time_ms;     /* wall clock of `from` */
    struct str nonce;
    struct str method, target; /* as they stand in the request line */
    struct str body;
    /* The headers say who asks, so they are signed as well. */
    const struct http_header *headers;
    size_t header_count;
};

/* Appends the target of a request line, as both sides sign it. */
void relay_target_write(struct str path, struct str query, struct buffer *out);

/* Appends the header's value. */
void relay_signature_write(struct str key, const struct relay_signed *request, struct buffer *out);

/* Reads from, to, epoch, time and nonce of a header's value; the texts are views of it. false: the
 * value has another form. Nothing of it is proven before relay_signature_is_good(). */
bool relay_signature_read(struct str value, struct relay_signed *request, struct str *signature);
/* Whether `signature` is that of the request. Takes the same time for each wrong one. */
bool relay_signature_is_good(struct str key, const struct relay_signed *request,
                             struct str signature);
bool relay_signature_is_in_time(const struct relay_signed *request, int64_t now_ms);

/*
 * The nonces of signed requests that have come lately, so that none is taken twice. Only what was
 * signed well is remembered, so nobody else can fill it; it is bounded all the same, and refuses
 * what it could not remember. Shared by all workers behind a short lock; any thread.
 */

struct nonce_cache;

/* Each nonce is remembered for at least `window_ms`; at most `most` per window are. The caller of
 * nonce_cache_take() has checked that the nonce was signed less than half a window before or after
 * now. */
struct nonce_cache *nonce_cache_create(int64_t window_ms, size_t most);
void nonce_cache_destroy(struct nonce_cache *cache);
/* false: it has come before; or it may have, because it was signed no later than one that is
 * forgotten, as after the wall clock was set back; or there is no room to remember it. `signed_ms`
 * is the signer's wall clock, `now_ms` is monotonic. */
bool nonce_cache_take(struct nonce_cache *cache, struct str nonce, int64_t signed_ms,
                      int64_t now_ms);
