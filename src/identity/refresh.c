/* Fetching an issuer's metadata and keys, on the fetcher's thread: the metadata from one of its
 * places, then the keys from where it says; the next fetch when these are due. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "issuer_internal.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"

#define KEYS_MIN_MS (INT64_C(5) * 60 * 1000)
#define KEYS_MAX_MS (INT64_C(24) * 60 * 60 * 1000)
#define RETRY_MS 5000        /* while no key is known */
#define STALE_RETRY_MS 30000 /* while old ones are good enough */

static void on_metadata(void *context, const struct fetch_answer *answer);
static void on_keys(void *context, const struct fetch_answer *answer);
static void on_timer(void *context);

/* ---- the end of a refresh ---- */

static void schedule(struct issuer *issuer, int64_t delay_ms)
{
    if (!issuer->has_timer)
        loop_timer_init(&issuer->timer, fetcher_loop(issuer->fetcher), on_timer, issuer);
    issuer->has_timer = true;
    loop_timer_start(&issuer->timer, delay_ms);
}

/* Says a problem once, not each time that it is met again. */
static void settle(struct issuer *issuer, const char *problem)
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

static void fail(struct issuer *issuer, const char *problem)
{
    schedule(issuer, issuer->keys ? STALE_RETRY_MS : RETRY_MS);
    settle(issuer, problem);
}

/* The outcome of an answer other than 200. */
static bool is_good(const struct fetch_answer *answer, struct error *problem)
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

static void get(struct issuer *issuer, const char *url, fetch_callback callback)
{
    const struct fetch_request request = {.method = "GET", .url = url};
    issuer->fetch =
        fetch_start(issuer->fetcher, &request, fetcher_loop(issuer->fetcher), callback, issuer);
}

static void fetch_keys(struct issuer *issuer)
{
    get(issuer, issuer->jwks_url ? issuer->jwks_url : issuer->found->jwks_url, on_keys);
}

static void on_keys(void *context, const struct fetch_answer *answer)
{
    struct issuer *issuer = issuer_from(context);
    struct error problem = {0};
    issuer->fetch = NULL;
    struct key_set *keys = is_good(answer, &problem) ? key_set_parse(answer->body, &problem) : NULL;
    if (!keys) {
        error_prefix(&problem, "keys");
        fail(issuer, problem.message);
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
    settle(issuer, "");
}

/* ---- the metadata ---- */

/* From the next of its places; false when there is none left. */
static bool fetch_metadata(struct issuer *issuer)
{
    while (issuer->place < ISSUER_METADATA_PLACES) {
        char *url = issuer_metadata_url(issuer->name, issuer->place++);
        if (!url)
            continue;
        get(issuer, url, on_metadata);
        free(url);
        return true;
    }
    return false;
}

static void on_metadata(void *context, const struct fetch_answer *answer)
{
    struct issuer *issuer = issuer_from(context);
    struct error problem = {0};
    issuer->fetch = NULL;
    if (is_good(answer, &problem))
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
    fail(issuer, problem.message);
}

/* ---- the beginning ---- */

void issuer_refresh_begin(void *context)
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

static void on_timer(void *context)
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

static void destroy(struct issuer *issuer)
{
    pthread_mutex_destroy(&issuer->lock);
    key_set_unref(issuer->keys);
    issuer_metadata_unref(issuer->metadata);
    free(issuer->name);
    free(issuer->jwks_url);
    MAGIC_CLEAR(issuer);
    free(issuer);
}

void issuer_refresh_end(void *context)
{
    struct issuer *issuer = issuer_from(context);
    if (issuer->has_timer)
        loop_timer_stop(&issuer->timer);
    fetch_cancel(issuer->fetch);
    pthread_mutex_lock(&issuer->lock);
    issuer_waits_post_all(issuer);
    pthread_mutex_unlock(&issuer->lock);
    issuer_metadata_unref(issuer->found);
    destroy(issuer);
}
