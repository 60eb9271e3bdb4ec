/*
 * An issuer as issuer.c sees it, and its tests.
 */
#pragma once

#include <pthread.h>

#include "taskgate/core/list.h"
#include "taskgate/core/magic.h"
#include "taskgate/identity/issuer.h"

struct issuer {
    uint32_t magic;      /* ISSUER_MAGIC */
    struct list node;    /* in the issuers */
    unsigned references; /* under the lock of the issuers */
    struct issuers *issuers;
    struct fetcher *fetcher;
    char *name, *jwks_url; /* the latter NULL: the metadata says */

    pthread_mutex_t lock; /* of what follows, up to the blank line */
    struct key_set *keys;
    struct issuer_metadata *metadata;
    uint64_t generation; /* of the keys; 0: none yet */
    struct error problem;
    struct list waits; /* of struct issuer_wait */
    bool is_fetching;
    bool has_asked_anew;
    int64_t asked_anew_ms, tried_ms; /* monotonic */

    /* Of the fetcher's thread alone. */
    bool has_timer;
    struct loop_timer timer;       /* of the next fetch */
    struct fetch *fetch;           /* under way, or NULL */
    unsigned place;                /* of the metadata that is fetched */
    struct issuer_metadata *found; /* that the keys which are fetched belong to */
};

#define ISSUER_MAGIC 0x49444904

static inline struct issuer *issuer_from(void *context)
{
    return MAGIC_CAST(struct issuer, ISSUER_MAGIC, context);
}

/* How long keys are kept whose answer had this max-age (see struct fetch_answer). */
int64_t issuer_keys_kept_ms(int64_t max_age_ms);
