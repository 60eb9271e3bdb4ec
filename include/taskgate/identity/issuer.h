/*
 * Issuers: their keys and metadata, fetched off the loops and kept.
 *
 * Keys are kept as long as the issuer allows (Cache-Control), but 5 minutes at least and 24 hours
 * at most, then fetched anew without anybody waiting. An issuer that cannot be reached, or whose
 * answers are no good, leaves the keys that are known in force; with none known nothing can be
 * verified (TOKEN_UNAVAILABLE). Behaviour 13.3.
 *
 * All functions: any thread, none blocks, unless they say otherwise.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "taskgate/core/error.h"
#include "taskgate/identity/fetch.h"
#include "taskgate/identity/metadata.h"
#include "taskgate/identity/token.h"
#include "taskgate/loop/loop.h"

/* All issuers of a process, and the thread that asks them. */
struct issuers;
/* NULL when the thread does not start. */
struct issuers *issuers_create(struct error *error);
/* When all issuers have been released, and before the loops are destroyed whose callbacks wait.
 * NULL is allowed. Waits for the thread. */
void issuers_destroy(struct issuers *issuers);
struct fetcher *issuers_fetcher(struct issuers *issuers);

/*
 * The issuer of that name; asked for twice it is one, so that a reload fetches nothing anew. Keys
 * are fetched at once. With `jwks_url` they come from there and no metadata is asked for; NULL:
 * where the metadata says. Both pass secure_url_check(). The caller releases it.
 */
struct issuer;
struct issuer *issuers_get(struct issuers *issuers, const char *name, const char *jwks_url);
void issuer_release(struct issuer *issuer); /* NULL is allowed */

/* New references, or NULL while nothing is known. */
struct key_set *issuer_keys(struct issuer *issuer);
struct issuer_metadata *issuer_metadata(struct issuer *issuer);
/* Why the last fetch failed, for logs and operators; "" when it did not. */
void issuer_problem(struct issuer *issuer, struct error *problem);

/* token_verify() with the keys that are known; TOKEN_UNAVAILABLE without any. `used` (may be NULL)
 * is what to give issuer_wait(). */
enum token_error issuer_verify(struct issuer *issuer, struct str token,
                               const struct token_rules *rules, int64_t now_ms,
                               struct identity **identity, uint64_t *used);

/*
 * After TOKEN_KEY_UNKNOWN or TOKEN_UNAVAILABLE: `ready` comes on `loop` once there may be newer
 * keys than those that `used` names, 10 s later at most for each document that must be fetched.
 * Then issuer_verify() judges finally, whatever it says. NULL when there is nothing to wait for:
 * an unknown key is asked for at once the first time, then every 30 s at most, and an issuer
 * without any known key every second.
 */
struct issuer_wait;
struct issuer_wait *issuer_wait(struct issuer *issuer, uint64_t used, struct loop *loop,
                                loop_callback ready, void *context);
/* On the loop's thread, before `ready`, which then does not come. NULL is allowed. */
void issuer_wait_cancel(struct issuer_wait *wait);
