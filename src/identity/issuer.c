/* The known metadata and keys of an issuer, and when they are fetched anew. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "issuer_internal.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/identity/issuer.h"

/* Fetching an issuer's metadata and keys, on the fetcher's thread: the metadata from one of its
 * places, then the keys from where it says; the next fetch when these are due. */

#define KEYS_MIN_MS (INT64_C(5) * 60 * 1000)
#define KEYS_MAX_MS (INT64_C(24) * 60 * 60 * 1000)
#define RETRY_MS 5000        /* while no key is known */
#define STALE_RETRY_MS 30000 /* while old ones are good enough */

static void issuer_on_metadata(void *context, const struct fetch_answer *answer);
static void issuer_on_keys(void *context, const struct fetch_answer *answer);
static void issuer_on_timer(void *context);

/* ---- the end of a refresh ---- */

static void schedule(struct issuer *issuer, int64_t delay_ms)
{
    if (!issuer->has_timer)
        loop_timer_init(&issuer->timer, fetcher_loop(issuer->fetcher), issuer_on_timer, issuer);
    issuer->has_timer = true;
    loop_timer_start(&issuer->timer, delay_ms);
}

static void issuer_waits_post_all(struct issuer *issuer);

/* Says a problem once, not each time that it is met again. */
static void issuer_settle(struct issuer *issuer, const char *problem)
{
    pthread_mutex_lock(&issuer->lock);
    bool is_news = strcmp(issuer->problem.message, problem) != 0;
    snprintf(issuer->problem.message, sizeof issuer->problem.message, "%s", problem);
    issuer->is_fetching = false;
    issuer_waits_post_all(issuer);
    pthread_mutex_unlock(&issuer->lock);
    if (is_news && *problem)
        log_warn("The keys of an issuer cannot be fetched", LOG_TEXT("issuer", issuer->name),
                 LOG_TEXT("problem", problem), LOG_BOOL("keys_known", issuer->keys != NULL));
    else if (is_news)
        log_info("The keys of an issuer can be fetched again", LOG_TEXT("issuer", issuer->name));
    issuer_metadata_unref(issuer->found);
    issuer->found = NULL;
}

static void issuer_fail(struct issuer *issuer, const char *problem)
{
    schedule(issuer, issuer->keys ? STALE_RETRY_MS : RETRY_MS);
    issuer_settle(issuer, problem);
}

/* The outcome of an answer other than 200. */
static bool issuer_is_good(const struct fetch_answer *answer, struct error *problem)
{
    if (answer->status == 200)
        return true;
    if (answer->status == 0)
        return error_set(problem, "%s", answer->problem);
    return error_set(problem, "HTTP status %d", answer->status);
}

/* ---- the keys ---- */

int64_t issuer_keys_kept_ms(int64_t max_age_ms)
{
    if (max_age_ms < KEYS_MIN_MS)
        return KEYS_MIN_MS;
    return max_age_ms > KEYS_MAX_MS ? KEYS_MAX_MS : max_age_ms;
}

static void issuer_get(struct issuer *issuer, const char *url, fetch_callback callback)
{
    const struct fetch_request request = {.method = "GET", .url = url};
    issuer->fetch =
        fetch_start(issuer->fetcher, &request, fetcher_loop(issuer->fetcher), callback, issuer);
}

static void fetch_keys(struct issuer *issuer)
{
    issuer_get(issuer, issuer->jwks_url ? issuer->jwks_url : issuer->found->jwks_url,
               issuer_on_keys);
}

static void issuer_on_keys(void *context, const struct fetch_answer *answer)
{
    struct issuer *issuer = issuer_from(context);
    struct error problem = {0};
    issuer->fetch = NULL;
    struct key_set *keys =
        issuer_is_good(answer, &problem) ? key_set_parse(answer->body, &problem) : NULL;
    if (!keys) {
        error_prefix(&problem, "keys");
        issuer_fail(issuer, problem.message);
        return;
    }
    log_debug("The keys of an issuer were fetched", LOG_TEXT("issuer", issuer->name),
              LOG_NUMBER("keys", (int64_t)key_set_count(keys)),
              LOG_NUMBER("ignored", (int64_t)key_set_ignored_count(keys)));
    pthread_mutex_lock(&issuer->lock);
    struct key_set *old_keys = issuer->keys;
    struct issuer_metadata *old_metadata = issuer->metadata;
    issuer->keys = keys;
    issuer->metadata = issuer->found;
    issuer->found = NULL;
    issuer->generation++;
    pthread_mutex_unlock(&issuer->lock);
    key_set_unref(old_keys);
    issuer_metadata_unref(old_metadata);
    schedule(issuer, issuer_keys_kept_ms(answer->max_age_ms));
    issuer_settle(issuer, "");
}

/* ---- the metadata ---- */

/* From the next of its places; false when there is none left. */
static bool fetch_metadata(struct issuer *issuer)
{
    while (issuer->place < ISSUER_METADATA_PLACES) {
        OWNED char *url = issuer_metadata_url(issuer->name, issuer->place++);
        if (!url)
            continue;
        issuer_get(issuer, url, issuer_on_metadata);
        return true;
    }
    return false;
}

static void issuer_on_metadata(void *context, const struct fetch_answer *answer)
{
    struct issuer *issuer = issuer_from(context);
    struct error problem = {0};
    issuer->fetch = NULL;
    if (issuer_is_good(answer, &problem))
        issuer->found = issuer_metadata_parse(answer->body, issuer->name, &problem);
    if (issuer->found && issuer->found->jwks_url) {
        fetch_keys(issuer);
        return;
    }
    if (issuer->found)
        error_set(&problem, "the metadata names no keys");
    issuer_metadata_unref(issuer->found);
    issuer->found = NULL;
    /* An issuer that does not answer at one place does not answer at another. */
    if (answer->status != 0 && fetch_metadata(issuer))
        return;
    error_prefix(&problem, "metadata");
    issuer_fail(issuer, problem.message);
}

/* ---- the beginning ---- */

/* On the fetcher's thread, posted. `is_fetching` is set before. */
static void issuer_refresh_begin(void *context)
{
    struct issuer *issuer = issuer_from(context);
    if (issuer->has_timer)
        loop_timer_stop(&issuer->timer);
    issuer->place = 0;
    if (issuer->jwks_url)
        fetch_keys(issuer);
    else
        fetch_metadata(issuer);
}

static void issuer_on_timer(void *context)
{
    struct issuer *issuer = issuer_from(context);
    pthread_mutex_lock(&issuer->lock);
    bool begins = !issuer->is_fetching;
    issuer->is_fetching = true;
    if (begins)
        issuer->tried_ms = clock_monotonic_ms();
    pthread_mutex_unlock(&issuer->lock);
    if (begins)
        issuer_refresh_begin(issuer);
}

static void issuer_destroy(struct issuer *issuer)
{
    ASSERT_NUMBERS(issuer->references, ==, 0);
    ASSERT(list_is_empty(&issuer->waits));
    pthread_mutex_destroy(&issuer->lock);
    key_set_unref(issuer->keys);
    issuer_metadata_unref(issuer->metadata);
    free(issuer->name);
    free(issuer->jwks_url);
    MAGIC_CLEAR(issuer);
    free(issuer);
}

/* The last reference is gone: the issuer is freed. */
static void issuer_refresh_end(void *context)
{
    struct issuer *issuer = issuer_from(context);
    if (issuer->has_timer)
        loop_timer_stop(&issuer->timer);
    fetch_cancel(issuer->fetch);
    pthread_mutex_lock(&issuer->lock);
    issuer_waits_post_all(issuer);
    pthread_mutex_unlock(&issuer->lock);
    issuer_metadata_unref(issuer->found);
    issuer_destroy(issuer);
}

/* Callers that wait for an issuer's keys. */

struct issuer_wait {
    uint32_t magic;   /* ISSUER_WAIT_MAGIC */
    struct list node; /* in the issuer, under its lock, until it is posted */
    struct loop *loop;
    loop_callback ready; /* of the loop's thread; NULL when nobody waits any more */
    void *context;
};
#define ISSUER_WAIT_MAGIC 0x49445705

static struct issuer_wait *issuer_wait_from(void *context)
{
    return MAGIC_CAST(struct issuer_wait, ISSUER_WAIT_MAGIC, context);
}

/* `ready` comes on the loop, once the wait is posted. */
static struct issuer_wait *issuer_wait_create(struct loop *loop, loop_callback ready, void *context)
{
    struct issuer_wait *wait = memory_alloc(sizeof(*wait));
    MAGIC_SET(wait, ISSUER_WAIT_MAGIC);
    wait->loop = loop;
    wait->ready = ready;
    wait->context = context;
    list_init(&wait->node);
    return wait;
}

/* On the caller's loop. */
static void issuer_deliver(void *context)
{
    OWNED struct issuer_wait *wait = issuer_wait_from(context);
    if (wait->ready)
        wait->ready(wait->context);
    MAGIC_CLEAR(wait);
}

static void issuer_wait_post(struct issuer_wait *wait)
{
    ASSERT(list_is_empty(&wait->node)); /* nobody else posts it */
    loop_post(wait->loop, issuer_deliver, wait);
}

/* Under the issuer's lock. */
static void issuer_waits_add(struct issuer *issuer, struct issuer_wait *wait)
{
    ASSERT(list_is_empty(&wait->node));
    list_append(&issuer->waits, &wait->node);
}

static void issuer_waits_post_all(struct issuer *issuer)
{
    LIST_FOR_EACH_SAFE (node, next, &issuer->waits) {
        list_remove(node);
        issuer_wait_post(LIST_ENTRY(node, struct issuer_wait, node));
    }
}

void issuer_wait_cancel(struct issuer_wait *wait)
{
    if (wait)
        wait->ready = NULL;
}

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
    ASSERT(list_is_empty(&issuers->list)); /* each was released */
    fetcher_destroy(issuers->fetcher);
    pthread_mutex_destroy(&issuers->lock);
    free(issuers);
}

struct fetcher *issuers_fetcher(struct issuers *issuers)
{
    return issuers->fetcher;
}

static struct issuer *issuer_find(struct issuers *issuers, const char *name, const char *jwks_url)
{
    LIST_FOR_EACH_SAFE (node, next, &issuers->list) {
        struct issuer *issuer = LIST_ENTRY(node, struct issuer, node);
        if (str_same(issuer->name, name) && str_same(issuer->jwks_url, jwks_url))
            return issuer;
    }
    return NULL;
}

struct issuer *issuers_get(struct issuers *issuers, const char *name, const char *jwks_url)
{
    pthread_mutex_lock(&issuers->lock);
    struct issuer *issuer = issuer_find(issuers, name, jwks_url);
    if (issuer) {
        ASSERT_NUMBERS(issuer->references, >, 0); /* else it has left the list */
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
    ASSERT_NUMBERS(issuer->references, >, 0);
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
