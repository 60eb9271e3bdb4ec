/*
 * Trading a client's token for one that a server accepts (RFC 8693), remembered by the token's
 * digest until either ends. All loops share one, behind a short lock: any thread, unless said
 * otherwise.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "taskgate/core/str.h"
#include "taskgate/identity/fetch.h"
#include "taskgate/identity/token_cache.h"
#include "taskgate/loop/loop.h"

struct exchanger_settings {
    const char *token_url, *client_id, *client_secret; /* a public client has no secret: NULL */
    const char *audience, *scope;                      /* or NULL */
};

enum exchanger_result {
    EXCHANGER_DONE,
    EXCHANGER_REFUSED,     /* the endpoint does not take this token */
    EXCHANGER_FORBIDDEN,   /* it takes the token, but does not trade it for what is asked */
    EXCHANGER_UNAVAILABLE, /* it did not answer, not sensibly, or too many wait for it */
};

struct exchanger;
/* Copies `settings`. Remembers so many tokens; beyond that the one that ends first goes. The caller
 * has the only reference. */
struct exchanger *exchanger_create(struct fetcher *fetcher,
                                   const struct exchanger_settings *settings, size_t capacity);
bool exchanger_has_settings(const struct exchanger *exchanger,
                            const struct exchanger_settings *settings);
/* Requests that are under way have references of their own. They end when the fetcher is destroyed,
 * at the latest. NULL is allowed. */
void exchanger_unref(struct exchanger *exchanger);

/* The token that is known for this one, the caller's to free; NULL when there is none. */
char *exchanger_find(struct exchanger *exchanger, const struct token_digest *digest,
                     int64_t now_ms);
/* A server has refused `traded`, for which a token was traded: it is given to nobody any more. One
 * that is known in its place by now stays. Looks at all that are remembered. */
void exchanger_forget(struct exchanger *exchanger, struct str traded);

/* A token to be traded. */
struct exchanger_order {
    struct token_digest digest;
    struct str token;
    int64_t until_ms;    /* the end of `token`, wall clock */
    bool secret_in_body; /* as in struct oauth_client */
    struct loop *loop;   /* of the calling thread */
};
/* `token` lives until the callback returns; empty unless EXCHANGER_DONE. */
typedef void (*exchanger_callback)(void *context, enum exchanger_result result, struct str token);

struct exchanger_wait;
/* Asks for it; requests for one token share one answer, from whatever loop they come. A refusal
 * (EXCHANGER_REFUSED and EXCHANGER_FORBIDDEN) is remembered for 5 seconds, and reported without
 * asking anew. The callback comes once, on the order's loop, never from inside. NULL, with no
 * callback, when too many tokens are being traded. */
struct exchanger_wait *exchanger_request(struct exchanger *exchanger,
                                         const struct exchanger_order *order,
                                         exchanger_callback callback, void *context);
/* Before the callback, on the order's loop. NULL is allowed. */
void exchanger_wait_cancel(struct exchanger_wait *wait);
