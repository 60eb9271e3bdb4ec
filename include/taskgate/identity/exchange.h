/*
 * Trading a client's token for one that a server accepts (RFC 8693), remembered by the token's
 * digest until either ends. Each loop has its own; all on that loop's thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "taskgate/core/str.h"
#include "taskgate/identity/fetch.h"
#include "taskgate/identity/token_cache.h"
#include "taskgate/loop/loop.h"

struct exchange_settings {
    const char *token_url, *client_id, *client_secret;
    const char *audience, *scope; /* or NULL */
    bool secret_in_body;          /* as in struct oauth_client */
};                                /* outlives the exchange */

enum exchange_result {
    EXCHANGE_DONE,
    EXCHANGE_REFUSED,     /* the endpoint does not take this token */
    EXCHANGE_FORBIDDEN,   /* it takes the token, but does not trade it for what is asked */
    EXCHANGE_UNAVAILABLE, /* it did not answer, not sensibly, or too many wait for it */
};

struct exchange;
struct exchange_wait;
/* Remembers so many tokens; beyond that the one that ends first goes. */
struct exchange *exchange_create(struct fetcher *fetcher, struct loop *loop,
                                 const struct exchange_settings *settings, size_t capacity);
/* Before its loop; those who wait are told nothing any more. NULL is allowed. */
void exchange_destroy(struct exchange *exchange);

/* `token` lives until the callback returns; empty unless EXCHANGE_DONE. */
typedef void (*exchange_callback)(void *context, enum exchange_result result, struct str token);

/* The token that is known for this one, borrowed until the next call; empty when there is none. */
struct str exchange_find(struct exchange *exchange, const struct token_digest *digest,
                         int64_t now_ms);
/* The token that is known for this one is no good any more. */
void exchange_forget(struct exchange *exchange, const struct token_digest *digest);
/* Asks for it; requests for one token share one answer. A refusal (EXCHANGE_REFUSED and
 * EXCHANGE_FORBIDDEN) is remembered for 5 seconds, and told without asking anew. `until_ms` is the
 * end of `token` (wall clock). The callback comes once, never from inside. NULL, with no callback,
 * when too many tokens are being traded. */
struct exchange_wait *exchange_request(struct exchange *exchange, const struct token_digest *digest,
                                       struct str token, int64_t until_ms,
                                       exchange_callback callback, void *context);
/* Before the callback. NULL is allowed. */
void exchange_wait_cancel(struct exchange_wait *wait);
