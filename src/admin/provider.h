/*
 * The OpenID provider of admin.oidc, as the operators' side uses it: its metadata, its keys, its
 * token and userinfo endpoints. On the admin's loop; nothing here blocks.
 */
#pragma once

#include "taskgate/gateway/snapshot.h"
#include "taskgate/identity/identity.h"
#include "taskgate/loop/loop.h"

struct provider;

enum provider_result {
    PROVIDER_OK,
    PROVIDER_REFUSED,     /* by the provider, or what it says is not to be trusted */
    PROVIDER_UNAVAILABLE, /* it does not answer, or not as a provider */
};

/* The provider's endpoints; NULL for those that it does not have. */
struct provider_endpoints {
    const char *authorization, *end_session;
    bool names_itself; /* its answers carry `iss` (RFC 9207) */
};

struct provider *provider_create(struct loop *loop);
/* Requests under way are answered PROVIDER_UNAVAILABLE. Before the loop is destroyed. NULL is
 * allowed. */
void provider_destroy(struct provider *provider);

/* Each of these answers once, at once or later, and keeps the snapshot as long. */

/* `endpoints` live until the callback returns; NULL unless PROVIDER_OK. */
typedef void (*provider_looked)(void *context, enum provider_result result,
                                const struct provider_endpoints *endpoints);
void provider_look(struct provider *provider, struct snapshot *snapshot, provider_looked callback,
                   void *context);

/* Everything in it is borrowed, and but for `reason` NULL unless PROVIDER_OK. */
struct provider_answer {
    enum provider_result result;
    struct identity *identity;
    const char *token;  /* that says so */
    const char *reason; /* of PROVIDER_REFUSED: a word of the code's own */
    const char *detail; /* the provider's word of it, or NULL */
};
typedef void (*provider_told)(void *context, const struct provider_answer *answer);
/* The identity that a token of this issuer names: an ID token or an access token for the gateway's
 * client. */
void provider_check_token(struct provider *provider, struct snapshot *snapshot, struct str token,
                          provider_told callback, void *context);
/* Trades a code for the identity of the person who has signed in. */
void provider_redeem(struct provider *provider, struct snapshot *snapshot, struct str code,
                     const char *verifier, const char *nonce, provider_told callback,
                     void *context);
