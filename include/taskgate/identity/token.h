/*
 * Tokens: is this JWT one that its issuer has signed, for us, now? And whose is it?
 *
 * Serves agents' access tokens (RFC 9068) and operators' ID tokens (OpenID Connect Core §3.1.3.7)
 * alike. Nothing here fetches: the keys are the caller's (key_set.h, issuer.h). No function blocks;
 * any thread. No token appears in a log or a message. Source: behaviour 13.2; RFC 7515, 7519, 8725.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "taskgate/core/str.h"
#include "taskgate/http/server.h"
#include "taskgate/identity/identity.h"
#include "taskgate/identity/key_set.h"

/* Larger tokens are refused unread. */
#define TOKEN_MAX_BYTES ((size_t)64 * 1024)

enum token_error {
#define TOKEN_ERROR_ROW(symbol, ...) TOKEN_##symbol,
#include "taskgate/identity/token_error_table.h"
#undef TOKEN_ERROR_ROW
    TOKEN_ERROR_COUNT
};

/* "signature" …: for log and metric. */
const char *token_error_name(enum token_error error);
/* RFC 6750 §3.1's code, "" for a challenge without one. */
const char *token_error_code(enum token_error error);
/* A sentence for the client, fit for error_description as it is. */
const char *token_error_description(enum token_error error);
/* By its code: 403 for insufficient_scope, 503 for temporarily_unavailable, else 401. */
int token_error_status(enum token_error error);

/* The token of a request: exactly one Authorization header, with the scheme Bearer in any case and
 * a token of RFC 6750's characters. TOKEN_OK, TOKEN_ABSENT, TOKEN_SEVERAL, or what
 * token_from_value() says. */
enum token_error token_from_request(const struct http_exchange *exchange, struct str *token);
/* Of one such header: TOKEN_OK, TOKEN_SCHEME, TOKEN_TOO_LARGE or TOKEN_MALFORMED. */
enum token_error token_from_value(struct str value, struct str *token);

enum token_kind {
    TOKEN_ACCESS, /* `typ` at+jwt, JWT or none */
    TOKEN_ID,     /* `typ` JWT or none */
    TOKEN_EITHER, /* as TOKEN_ACCESS */
};

/* The terms that a token must meet. Borrowed while token_verify() runs. */
struct token_rules {
    enum token_kind kind;
    const char *issuer;    /* `iss`, byte for byte */
    const char *audience;  /* `aud` is it, or has it among others */
    const char *client_id; /* or NULL. `azp` and `client_id` of the token, when they are there, must
                              be it; in an ID token for several audiences `azp` must be there */
    const char *nonce;     /* or NULL; else the token has this one */
    int64_t leeway_ms;     /* tolerated difference of clocks, for `exp` and `nbf` */
    struct identity_shape shape;
};

/*
 * TOKEN_OK with an identity that the caller owns, or why the token is refused, with `identity`
 * untouched. TOKEN_KEY_UNKNOWN says that newer keys might help. `keys` may be used by several
 * threads at once. Claims are judged after the signature, so that only the issuer's own words are
 * told back.
 */
enum token_error token_verify(struct str token, const struct key_set *keys,
                              const struct token_rules *rules, int64_t now_ms,
                              struct identity **identity);

/* The last part of token_verify(): whether the claims (JSON object) of a token whose signature is
 * good are what the rules ask. `until_ms` is the end of the token: `exp`, or the end of the leeway
 * for a token that came after it. */
enum token_error token_judge_claims(struct str claims, const struct token_rules *rules,
                                    int64_t now_ms, int64_t *until_ms);
