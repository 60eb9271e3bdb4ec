/* The owner of a request, by its access token. */
#include "token_check.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "call/authorization.h"
#include "call/call.h"
#include "taskgate/core/buffer.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"
#include "taskgate/core/owned.h"
#include "taskgate/http/guard.h"
#include "taskgate/identity/identity.h"
#include "taskgate/identity/issuer.h"
#include "taskgate/identity/token_cache.h"
#include "taskgate/json/members.h"

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

/* ---- headers that were let in lately ---- */

#define PLACES 512 /* a power of two */
#define VALUE_BYTES ((size_t)4096)
#define SESSION_BYTES ((size_t)256)

/* Authorization headers that were verified and let in lately, and how their calls are identified: a
 * request with the same bytes costs a comparison instead of hashes. Beside token_cache.h, which
 * remembers more tokens, by their digests. In this table each header has one place, by its last
 * bytes: those of a signature. In memory alone, gone with the snapshot. */
struct known {
    char *value; /* of the header; NULL: nothing is here */
    size_t length;
    uint64_t rules;
    struct identity *identity;
    struct policy_verified verified; /* its words */
    char token[DIGEST_HEX_BYTES];    /* as call_identify() has it */
    /* The session of the last call with it. */
    char session[SESSION_BYTES];
    size_t session_length;
    char session_digest[DIGEST_HEX_BYTES];
};

struct known_tokens {
    struct known places[PLACES];
};

static struct known_tokens *known_tokens_create(void)
{
    return memory_alloc(sizeof(struct known_tokens));
}

static void known_tokens_forget(struct known *known)
{
    if (!known->value)
        return;
    explicit_bzero(known->value, known->length);
    free(known->value);
    identity_unref(known->identity);
    known->value = NULL;
    known->identity = NULL;
}

static void known_tokens_clear(struct known_tokens *tokens)
{
    for (size_t i = 0; i < PLACES; i++)
        known_tokens_forget(&tokens->places[i]);
}

static void known_tokens_destroy(struct known_tokens *tokens)
{
    if (!tokens)
        return;
    known_tokens_clear(tokens);
    free(tokens);
}

static struct str known_tokens_header(const struct call *call)
{
    return http_header_known(call->exchange, HTTP_NAME_AUTHORIZATION);
}

/* NULL for a header that is not kept. */
static struct known *known_tokens_place(struct known_tokens *tokens, struct str value)
{
    uint64_t end;
    if (value.length < sizeof end || value.length > VALUE_BYTES)
        return NULL;
    memcpy(&end, value.bytes + value.length - sizeof end, sizeof end);
    return &tokens->places[(end * UINT64_C(0x9e3779b97f4a7c15)) >> 32 & (PLACES - 1)];
}

static void known_tokens_take_session(struct known *known, struct call *call, struct str session)
{
    if (session.length == 0)
        return;
    bool is_same = session.length == known->session_length &&
                   memcmp(session.bytes, known->session, session.length) == 0;
    if (is_same) {
        memcpy(call->session, known->session_digest, sizeof call->session);
        return;
    }
    call_digest_session(call, session, call->session);
    if (session.length > SESSION_BYTES)
        return;
    memcpy(known->session, session.bytes, session.length);
    known->session_length = session.length;
    memcpy(known->session_digest, call->session, sizeof known->session_digest);
}

/* Identifies a call whose header was let in by these rules before, and has not ended by `now_ms`
 * (wall clock). false: it is not known. */
static bool known_tokens_identify(struct known_tokens *tokens, uint64_t rules, struct call *call,
                                  int64_t now_ms)
{
    struct str value = known_tokens_header(call);
    struct known *known = known_tokens_place(tokens, value);
    if (!known || !known->value || known->rules != rules || known->length != value.length ||
        http_header_is_repeated(call->exchange, HTTP_NAME_AUTHORIZATION) ||
        now_ms >= known->identity->until_ms || memcmp(known->value, value.bytes, value.length) != 0)
        return false;
    call->identity = identity_ref(known->identity);
    call->verified = known->verified;
    call->identified = true;
    memcpy(call->token, known->token, sizeof call->token);
    memcpy(call->owner, known->identity->owner, sizeof known->identity->owner);
    call_vouch(call);
    known_tokens_take_session(known, call,
                              http_header_known(call->exchange, HTTP_NAME_MCP_SESSION_ID));
    return true;
}

/* The call has been let in; identifies it. */
static void known_tokens_add(struct known_tokens *tokens, uint64_t rules, struct call *call)
{
    struct str value = known_tokens_header(call);
    struct known *known = known_tokens_place(tokens, value);
    if (!known)
        return;
    call_identify(call);
    known_tokens_forget(known);
    known->value = memory_copy_str(value);
    known->length = value.length;
    known->rules = rules;
    known->identity = identity_ref(call->identity);
    known->verified = call->verified;
    known->session_length = 0;
    memcpy(known->token, call->token, sizeof known->token);
}

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
static void token_check_follow(struct gateway_worker *worker, const struct snapshot *snapshot)
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
    token_check_follow(worker, snapshot);
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
    token_check_follow(worker, snapshot);
    struct issuer *issuer = worker->tokens->issuers[source - snapshot->config->sources];
    return issuer ? issuer_metadata(issuer) : NULL;
}

/* The address at which the client has found the gateway: the authority that it asked for. The
 * scheme is that of the audience, since a proxy in front may have ended TLS; on this machine it is
 * plain http. */
static void write_base(const struct call *call, struct buffer *out)
{
    bool is_local = http_guard_is_loopback_name(http_authority(call->exchange));
    bool is_https = str_starts_with(str_from(call->source->auth.audience), STR("https://"));
    bool is_tls = http_is_tls(call->exchange) || (is_https && !is_local);
    buffer_append_text(out, is_tls ? "https://" : "http://");
    buffer_append(out, http_authority(call->exchange));
}

/* ---- challenges ---- */

/* Inside a quoted-string; what would end it is left out. */
static void append_quoted(struct buffer *out, const char *name, struct str value)
{
    buffer_append_format(out, "%s%s=\"", str_equal(buffer_str(out), STR("Bearer")) ? " " : ", ",
                         name);
    for (size_t i = 0; i < value.length; i++) {
        unsigned char c = (unsigned char)value.bytes[i];
        if (c >= 0x20 && c < 0x7f && c != '"' && c != '\\')
            buffer_append_char(out, (char)c);
    }
    buffer_append_char(out, '"');
}

static void write_challenge(const struct call *call, enum token_error error, struct buffer *out)
{
    const struct config_strings *scopes = &call->source->auth.scopes;
    OWNED_BUFFER(text);
    struct str path = http_path(call->exchange);
    buffer_append_text(out, "Bearer");
    write_base(call, &text);
    buffer_append_text(&text, METADATA_PATH);
    if (!str_equal(path, STR("/")))
        buffer_append(&text, path);
    append_quoted(out, "resource_metadata", buffer_str(&text));
    buffer_clear(&text);
    for (size_t i = 0; i < scopes->count; i++)
        buffer_append_format(&text, "%s%s", i ? " " : "", scopes->items[i]);
    if (scopes->count > 0)
        append_quoted(out, "scope", buffer_str(&text));
    if (*token_error_code(error)) {
        append_quoted(out, "error", str_from(token_error_code(error)));
        append_quoted(out, "error_description", str_from(token_error_description(error)));
    }
}

/* Ends the call: 401 or 403 with a challenge, 503 without. */
static void token_answer_refusal(struct call *call, enum token_error error)
{
    struct buffer body = {0}, challenge = {0};
    struct http_header headers[2] = {{STR("content-type"), STR("application/json")}};
    const char *code = token_error_code(error);
    buffer_append_char(&body, '{');
    json_add_text(&body, "error", *code ? code : "unauthorized");
    json_add_text(&body, "error_description", token_error_description(error));
    buffer_append_char(&body, '}');
    if (token_error_status(error) == 503) {
        headers[1] = (struct http_header){STR("retry-after"), STR("5")};
    } else {
        write_challenge(call, error, &challenge);
        headers[1] = (struct http_header){STR("www-authenticate"), buffer_str(&challenge)};
    }
    call_respond(call, token_error_status(error), headers, 2, buffer_str(&body));
    buffer_finish(&challenge);
    buffer_finish(&body);
}

/* ---- metadata ---- */

void token_answer_metadata(struct call *call)
{
    const struct config_auth *auth = &call->source->auth;
    struct str path = http_path(call->exchange), audience = str_from(auth->audience);
    struct http_header type = {STR("content-type"), STR("application/json")};
    struct buffer body = {0}, resource = {0};
    char *header[] = {"header"};
    if (str_starts_with(audience, STR("https://")) || str_starts_with(audience, STR("http://"))) {
        buffer_append(&resource, audience);
    } else {
        size_t behind = strlen(METADATA_PATH);
        write_base(call, &resource);
        buffer_append(&resource, str_slice(path.bytes + behind, path.length - behind));
    }
    buffer_append_char(&body, '{');
    json_add_str(&body, "resource", buffer_str(&resource));
    json_add_texts(&body, "authorization_servers", &auth->issuer, 1);
    if (auth->scopes.count > 0)
        json_add_texts(&body, "scopes_supported", auth->scopes.items, auth->scopes.count);
    json_add_texts(&body, "bearer_methods_supported", header, 1);
    buffer_append_char(&body, '}');
    call_respond(call, 200, &type, 1, buffer_str(&body));
    buffer_finish(&resource);
    buffer_finish(&body);
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

static enum token_error token_check_verify(struct call *call, struct str token, int64_t now_ms,
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

static void token_check_remember(struct call *call, struct str token, struct identity *identity,
                                 int64_t now_ms)
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
    token_check_follow(call->worker, call->snapshot);
    token_from_request(call->exchange, &token);
    enum token_error error = token_check_verify(call, token, now_ms, &identity, NULL);
    if (error != TOKEN_OK) {
        token_check_refuse(call, error);
        return;
    }
    token_check_remember(call, token, identity, now_ms);
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
    token_check_follow(call->worker, call->snapshot);
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
    error = token_check_verify(call, token, now_ms, &identity, &used);
    if (error == TOKEN_OK) {
        token_check_remember(call, token, identity, now_ms);
        return admit(call, identity);
    }
    bool may_help = error == TOKEN_KEY_UNKNOWN || error == TOKEN_UNAVAILABLE;
    return may_help && wait_for_keys(call, used, next) ? GATE_WAITS : refuse(call, error);
}
