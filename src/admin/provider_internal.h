/* Shared by the two halves of the provider: one question to it, from its beginning to its answer.
 */
#pragma once

#include "taskgate/core/list.h"
#include "taskgate/core/magic.h"
#include "taskgate/identity/issuer.h"
#include "taskgate/identity/oauth.h"

#include "provider.h"

struct provider {
    struct loop *loop;
    struct issuers *issuers; /* NULL until somebody asks */
    struct issuer *issuer;   /* of the last configuration that was asked with, or NULL */
    char *issuer_name;
    struct list inquiries;
};

struct inquiry;
typedef void (*inquiry_step)(struct inquiry *inquiry);

struct inquiry {
    uint32_t magic;   /* INQUIRY_MAGIC while it lives */
    struct list node; /* in provider->inquiries */
    struct provider *provider;
    struct snapshot *snapshot;
    struct issuer *issuer;            /* of the snapshot; NULL: it cannot be asked */
    struct issuer_metadata *metadata; /* once it is known */
    struct issuer_wait *wait;         /* at most one of these two is under way */
    struct fetch *fetch;
    inquiry_step next;      /* after the wait */
    provider_looked looked; /* exactly one of these two is told, once */
    provider_told told;
    void *context;
    /* Of provider_identity.c. */
    char *code, *verifier, *nonce; /* of a sign-in; NULL for a token that was shown */
    char *token;                   /* to be verified */
    char *access_token;            /* for userinfo, or NULL */
    struct identity *identity;
    const char *reason; /* of a refusal */
    char detail[OAUTH_ERROR_BYTES];
    bool is_final; /* newer keys have been waited for */
};
#define INQUIRY_MAGIC 0x1a9c3f27

static inline struct inquiry *inquiry_from(void *context)
{
    return MAGIC_CAST(struct inquiry, INQUIRY_MAGIC, context);
}

struct inquiry *inquiry_create(struct provider *provider, struct snapshot *snapshot);
/* Takes the next step once the metadata is known, or cannot be: NULL then. */
void inquiry_know(struct inquiry *inquiry, inquiry_step next);
/* Takes the next step once there may be newer keys than `used` names. */
void inquiry_await_keys(struct inquiry *inquiry, uint64_t used, inquiry_step next);
/* Calls the inquiry's callback, and ends the inquiry. */
void inquiry_finish(struct inquiry *inquiry, enum provider_result result);
