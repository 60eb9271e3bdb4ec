/* The owner of a request, by its access token. */
#include "token_check.h"

#include <pthread.h>
#include <stdlib.h>

#include "call/call_part.h"
#include "call/verified.h"
#include "known_tokens.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"
#include "taskgate/identity/issuer.h"
#include "taskgate/identity/token_cache.h"
#include "token_answer.h"

#define REMEMBERED_TOKENS 8192 /* of each loop */

/* Of the gateway. */
struct token_check {
    pthread_mutex_t lock;
    struct issuers *issuers; /* NULL until a source has auth */
    size_t open_workers;
};

/* Of a worker: the issuers of the snapshot that it saw last, beside its sources. */
struct token_worker {
    struct known_tokens *known; /* NULL until the first */
    struct token_cache *cache;
    uint64_t snapshot_number;
    struct issuer **issuers; /* NULL in it: the source has no auth */
    size_t count;
};

/* ---- life ---- */

struct token_check *token_check_create(void)
{
    struct token_check *check = memory_alloc(sizeof *check);
    pthread_mutex_init(&check->lock, NULL);
    return check;
}

void token_check_destroy(struct token_check *check)
{
    if (!check)
        return;
    issuers_destroy(check->issuers);
    pthread_mutex_destroy(&check->lock);
    free(check);
}

void token_check_worker_init(struct gateway_worker *worker)
{
    struct token_check *check = worker->gateway->token_check;
    worker->tokens = memory_alloc(sizeof *worker->tokens);
    pthread_mutex_lock(&check->lock);
    check->open_workers++;
    pthread_mutex_unlock(&check->lock);
}

static void release_issuers(struct token_worker *tokens)
{
    for (size_t i = 0; i < tokens->count; i++)
        issuer_release(tokens->issuers[i]);
    free(tokens->issuers);
    tokens->issuers = NULL;
    tokens->count = 0;
}

void token_check_worker_close(struct gateway_worker *worker)
{
    struct token_check *check = worker->gateway->token_check;
    if (!worker->tokens)
        return;
    release_issuers(worker->tokens);
    known_tokens_destroy(worker->tokens->known);
    token_cache_destroy(worker->tokens->cache);
    free(worker->tokens);
    worker->tokens = NULL;
    pthread_mutex_lock(&check->lock);
    bool is_last = --check->open_workers == 0;
    pthread_mutex_unlock(&check->lock);
    if (is_last) {
        issuers_destroy(check->issuers);
        check->issuers = NULL;
    }
}

/* NULL when the thread does not start: then nothing can be verified. */
static struct issuers *open_issuers(struct token_check *check)
{
    struct error error = {""};
    pthread_mutex_lock(&check->lock);
    if (!check->issuers)
        check->issuers = issuers_create(&error);
    struct issuers *issuers = check->issuers;
    pthread_mutex_unlock(&check->lock);
    if (!issuers)
        log_error("Tokens cannot be verified", LOG_TEXT("error", error.message));
    return issuers;
}

/* The new ones are taken before the old ones go: one that stays keeps its keys. */
static void follow(struct gateway_worker *worker, const struct snapshot *snapshot)
{
    struct token_worker *tokens = worker->tokens;
    const struct config *config = snapshot->config;
    struct token_worker fresh = {
        .known = tokens->known, .cache = tokens->cache, .snapshot_number = snapshot->number};
    if (tokens->snapshot_number == snapshot->number)
        return;
    if (fresh.known)
        known_tokens_clear(fresh.known);
    fresh.count = config->source_count;
    fresh.issuers = memory_alloc_array(fresh.count, sizeof(struct issuer *));
    for (size_t i = 0; i < fresh.count; i++) {
        const struct config_auth *auth = &config->sources[i].auth;
        struct issuers *issuers = auth->issuer ? open_issuers(worker->gateway->token_check) : NULL;
        if (issuers)
            fresh.issuers[i] = issuers_get(issuers, auth->issuer, auth->jwks_url);
    }
    struct token_worker old = *tokens;
    *tokens = fresh;
    release_issuers(&old);
}

void token_check_prepare(struct gateway_worker *worker)
{
    struct snapshot *snapshot = snapshot_current();
    follow(worker, snapshot);
    snapshot_unref(snapshot);
}

struct fetcher *token_check_fetcher(struct gateway_worker *worker)
{
    struct issuers *issuers = open_issuers(worker->gateway->token_check);
    return issuers ? issuers_fetcher(issuers) : NULL;
}

struct issuer_metadata *token_check_metadata(struct gateway_worker *worker,
                                             const struct snapshot *snapshot,
                                             const struct config_source *source)
{
    follow(worker, snapshot);
    struct issuer *issuer = worker->tokens->issuers[source - snapshot->config->sources];
    return issuer ? issuer_metadata(issuer) : NULL;
}

/* ---- one request ---- */

void token_check_refuse(struct call *call, enum token_error error)
{
    log_warn("Access token refused", LOG_TEXT("source", call->source->id),
             LOG_TEXT("reason", token_error_name(error)));
    metrics_count(METRIC_TOKENS_REFUSED, str_from(call->source->id),
                  str_from(token_error_name(error)));
    call_part_drop_all(call);
    token_answer_refusal(call, error);
}

static size_t index_of(const struct call *call)
{
    return (size_t)(call->source - call->snapshot->config->sources);
}

/* Sources of one snapshot have numbers of their own, and so have snapshots. */
static uint64_t rules_of(const struct call *call)
{
    return call->snapshot->number << 16 | (index_of(call) & 0xffff);
}

static enum gate_verdict refuse(struct call *call, enum token_error error)
{
    token_check_refuse(call, error);
    return GATE_ANSWERED;
}

static enum gate_verdict admit(struct call *call, struct identity *identity)
{
    const struct config_strings *scopes = &call->source->auth.scopes;
    call->identity = identity;
    verified_from(identity, &call->verified);
    call_vouch(call);
    for (size_t i = 0; i < scopes->count; i++) {
        if (!identity_has_scope(identity, scopes->items[i]))
            return refuse(call, TOKEN_SCOPE);
    }
    if (!call->worker->tokens->known)
        call->worker->tokens->known = known_tokens_create();
    known_tokens_add(call->worker->tokens->known, rules_of(call), call);
    return GATE_PASSED;
}

static enum token_error verify(struct call *call, struct str token, int64_t now_ms,
                               struct identity **identity, uint64_t *used)
{
    const struct config_auth *auth = &call->source->auth;
    struct issuer *issuer = call->worker->tokens->issuers[index_of(call)];
    const struct token_rules rules = {.kind = TOKEN_ACCESS,
                                      .issuer = auth->issuer,
                                      .audience = auth->audience,
                                      .leeway_ms = auth->leeway_ms,
                                      .shape = {.groups_claim = auth->groups_claim}};
    return issuer ? issuer_verify(issuer, token, &rules, now_ms, identity, used)
                  : TOKEN_UNAVAILABLE;
}

static void remember(struct call *call, struct str token, struct identity *identity, int64_t now_ms)
{
    struct token_worker *tokens = call->worker->tokens;
    struct token_digest digest = token_digest(token);
    if (!tokens->cache)
        tokens->cache = token_cache_create(REMEMBERED_TOKENS);
    token_cache_add(tokens->cache, rules_of(call), &digest, identity, now_ms);
}

/* A call that waits for keys. */
struct key_wait {
    struct call_part part;
    struct call *call;
    struct issuer_wait *wait;
    call_step next;
};

static void drop_wait(struct call *call, void *object)
{
    struct key_wait *waiting = object;
    issuer_wait_cancel(waiting->wait);
    free(waiting);
}

static const struct call_part_kind wait_kind = CALL_PART_KIND(struct key_wait, drop_wait);

static void on_keys(void *context)
{
    struct key_wait *waiting = context;
    struct call *call = waiting->call;
    call_step next = waiting->next;
    struct str token = STR_EMPTY;
    struct identity *identity = NULL;
    int64_t now_ms = clock_now_ms();
    call_part_remove(&waiting->part);
    free(waiting);
    follow(call->worker, call->snapshot);
    token_from_request(call->exchange, &token);
    enum token_error error = verify(call, token, now_ms, &identity, NULL);
    if (error != TOKEN_OK) {
        token_check_refuse(call, error);
        return;
    }
    remember(call, token, identity, now_ms);
    if (admit(call, identity) == GATE_PASSED)
        next(call);
}

static bool wait_for_keys(struct call *call, uint64_t used, call_step next)
{
    struct issuer *issuer = call->worker->tokens->issuers[index_of(call)];
    struct key_wait *waiting = memory_alloc(sizeof *waiting);
    waiting->call = call;
    waiting->next = next;
    waiting->wait = issuer ? issuer_wait(issuer, used, call->worker->loop, on_keys, waiting) : NULL;
    if (!waiting->wait) {
        free(waiting);
        return false;
    }
    call_part_add(call, &waiting->part, &wait_kind);
    return true;
}

enum gate_verdict token_check_then(struct call *call, call_step next)
{
    struct token_worker *tokens = call->worker->tokens;
    struct str token = STR_EMPTY;
    struct identity *identity = NULL;
    uint64_t used = 0;
    int64_t now_ms = clock_now_ms();
    follow(call->worker, call->snapshot);
    if (tokens->known && known_tokens_identify(tokens->known, rules_of(call), call, now_ms))
        return GATE_PASSED;
    enum token_error error = token_from_request(call->exchange, &token);
    if (error != TOKEN_OK)
        return refuse(call, error);
    if (tokens->cache) {
        struct token_digest digest = token_digest(token);
        identity = token_cache_find(tokens->cache, rules_of(call), &digest, now_ms);
    }
    if (identity)
        return admit(call, identity_ref(identity));
    error = verify(call, token, now_ms, &identity, &used);
    if (error == TOKEN_OK) {
        remember(call, token, identity, now_ms);
        return admit(call, identity);
    }
    bool may_help = error == TOKEN_KEY_UNKNOWN || error == TOKEN_UNAVAILABLE;
    return may_help && wait_for_keys(call, used, next) ? GATE_WAITS : refuse(call, error);
}
