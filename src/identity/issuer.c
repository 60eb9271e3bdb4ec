/* The known metadata and keys of an issuer, and when they are fetched anew. */
#include "taskgate/identity/issuer.h"

#include <stdlib.h>
#include <string.h>

#include "issuer_internal.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/memory.h"

#define UNKNOWN_KEY_INTERVAL_MS 30000
#define NO_KEYS_INTERVAL_MS 1000

struct issuers {
    struct fetcher *fetcher;
    pthread_mutex_t lock; /* of the list and of all reference counts */
    struct list list;
};

struct issuers *issuers_create(struct error *error)
{
    struct fetcher *fetcher = fetcher_create(error);
    if (!fetcher)
        return NULL;
    struct issuers *issuers = memory_alloc(sizeof(*issuers));
    issuers->fetcher = fetcher;
    pthread_mutex_init(&issuers->lock, NULL);
    list_init(&issuers->list);
    return issuers;
}

void issuers_destroy(struct issuers *issuers)
{
    if (!issuers)
        return;
    fetcher_destroy(issuers->fetcher);
    pthread_mutex_destroy(&issuers->lock);
    free(issuers);
}

struct fetcher *issuers_fetcher(struct issuers *issuers)
{
    return issuers->fetcher;
}

static bool is_same(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static struct issuer *find(struct issuers *issuers, const char *name, const char *jwks_url)
{
    LIST_FOR_EACH_SAFE (node, next, &issuers->list) {
        struct issuer *issuer = LIST_ENTRY(node, struct issuer, node);
        if (is_same(issuer->name, name) && is_same(issuer->jwks_url, jwks_url))
            return issuer;
    }
    return NULL;
}

struct issuer *issuers_get(struct issuers *issuers, const char *name, const char *jwks_url)
{
    pthread_mutex_lock(&issuers->lock);
    struct issuer *issuer = find(issuers, name, jwks_url);
    if (issuer) {
        issuer->references++;
        pthread_mutex_unlock(&issuers->lock);
        return issuer;
    }
    issuer = memory_alloc(sizeof(*issuer));
    MAGIC_SET(issuer, ISSUER_MAGIC);
    issuer->references = 1;
    issuer->issuers = issuers;
    issuer->fetcher = issuers->fetcher;
    issuer->name = memory_copy_text(name);
    issuer->jwks_url = memory_copy_text(jwks_url);
    pthread_mutex_init(&issuer->lock, NULL);
    list_init(&issuer->waits);
    issuer->is_fetching = true;
    issuer->tried_ms = clock_monotonic_ms();
    list_append(&issuers->list, &issuer->node);
    pthread_mutex_unlock(&issuers->lock);
    loop_post(fetcher_loop(issuer->fetcher), issuer_refresh_begin, issuer);
    return issuer;
}

void issuer_release(struct issuer *issuer)
{
    if (!issuer)
        return;
    struct issuers *issuers = issuer->issuers;
    pthread_mutex_lock(&issuers->lock);
    bool is_last = --issuer->references == 0;
    if (is_last)
        list_remove(&issuer->node);
    pthread_mutex_unlock(&issuers->lock);
    if (is_last)
        loop_post(fetcher_loop(issuer->fetcher), issuer_refresh_end, issuer);
}

struct key_set *issuer_keys(struct issuer *issuer)
{
    pthread_mutex_lock(&issuer->lock);
    struct key_set *keys = issuer->keys ? key_set_ref(issuer->keys) : NULL;
    pthread_mutex_unlock(&issuer->lock);
    return keys;
}

struct issuer_metadata *issuer_metadata(struct issuer *issuer)
{
    pthread_mutex_lock(&issuer->lock);
    struct issuer_metadata *metadata =
        issuer->metadata ? issuer_metadata_ref(issuer->metadata) : NULL;
    pthread_mutex_unlock(&issuer->lock);
    return metadata;
}

void issuer_problem(struct issuer *issuer, struct error *problem)
{
    pthread_mutex_lock(&issuer->lock);
    *problem = issuer->problem;
    pthread_mutex_unlock(&issuer->lock);
}

enum token_error issuer_verify(struct issuer *issuer, struct str token,
                               const struct token_rules *rules, int64_t now_ms,
                               struct identity **identity, uint64_t *used)
{
    pthread_mutex_lock(&issuer->lock);
    struct key_set *keys = issuer->keys ? key_set_ref(issuer->keys) : NULL;
    if (used)
        *used = issuer->generation;
    pthread_mutex_unlock(&issuer->lock);
    enum token_error error =
        keys ? token_verify(token, keys, rules, now_ms, identity) : TOKEN_UNAVAILABLE;
    key_set_unref(keys);
    return error;
}

/* ---- waiting ---- */

/* Whether a fetch may begin now; under the lock. */
static bool is_due(struct issuer *issuer, int64_t now_ms)
{
    if (!issuer->keys)
        return now_ms - issuer->tried_ms >= NO_KEYS_INTERVAL_MS;
    if (issuer->has_asked_anew && now_ms - issuer->asked_anew_ms < UNKNOWN_KEY_INTERVAL_MS)
        return false;
    issuer->has_asked_anew = true;
    issuer->asked_anew_ms = now_ms;
    return true;
}

struct issuer_wait *issuer_wait(struct issuer *issuer, uint64_t used, struct loop *loop,
                                loop_callback ready, void *context)
{
    int64_t now_ms = clock_monotonic_ms();
    bool begins = false;
    struct issuer_wait *wait = NULL;
    pthread_mutex_lock(&issuer->lock);
    bool is_newer = issuer->generation != used;
    if (!is_newer && !issuer->is_fetching)
        begins = is_due(issuer, now_ms);
    if (is_newer || issuer->is_fetching || begins) {
        wait = issuer_wait_create(loop, ready, context);
        if (!is_newer)
            issuer_waits_add(issuer, wait);
    }
    if (begins) {
        issuer->is_fetching = true;
        issuer->tried_ms = now_ms;
    }
    pthread_mutex_unlock(&issuer->lock);
    if (is_newer)
        issuer_wait_post(wait);
    if (begins)
        loop_post(fetcher_loop(issuer->fetcher), issuer_refresh_begin, issuer);
    return wait;
}
