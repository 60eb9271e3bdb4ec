/*
 * One inquiry at a time from its beginning to its answer: where the provider's endpoints are; and
 * from a code, or from a token, to an identity: the token endpoint (RFC 6749 §4.1.3), the ID token
 * (OpenID Connect Core §3.1.3.7), and userinfo (§5.3) where the ID token says too little.
 */
#include "provider.h"

#include <stdlib.h>
#include <string.h>

#include "taskgate/core/clock.h"
#include "taskgate/core/list.h"
#include "taskgate/core/log.h"
#include "taskgate/core/magic.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/identity/issuer.h"
#include "taskgate/identity/oauth.h"
#include "taskgate/json/text.h"

#include "sessions.h"

#define LEEWAY_MS 60000

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
    char *code, *verifier, *nonce; /* of a sign-in; NULL for a token that was shown */
    char *token;                   /* to be verified */
    char *access_token;            /* for userinfo, or NULL */
    struct identity *identity;
    const char *reason; /* of a refusal */
    char detail[OAUTH_ERROR_BYTES];
    bool is_final; /* newer keys have been waited for */
};
#define INQUIRY_MAGIC 0x1a9c3f27

static struct inquiry *inquiry_from(void *context)
{
    return MAGIC_CAST(struct inquiry, INQUIRY_MAGIC, context);
}

static void provider_tell(struct inquiry *inquiry, enum provider_result result)
{
    const struct issuer_metadata *metadata = inquiry->metadata;
    bool is_good = result == PROVIDER_OK;
    struct provider_endpoints endpoints = {0};
    if (metadata)
        endpoints = (struct provider_endpoints){
            .authorization = metadata->authorization_endpoint,
            .end_session = metadata->end_session_endpoint,
            .names_itself = metadata->names_itself,
        };
    if (inquiry->looked)
        inquiry->looked(inquiry->context, result, is_good ? &endpoints : NULL);
    else
        inquiry->told(inquiry->context, &(struct provider_answer){
                                            .result = result,
                                            .identity = is_good ? inquiry->identity : NULL,
                                            .token = is_good ? inquiry->token : NULL,
                                            .reason = inquiry->reason,
                                            .detail = *inquiry->detail ? inquiry->detail : NULL,
                                        });
}

/* Calls the inquiry's callback, and ends the inquiry. */
static void inquiry_finish(struct inquiry *inquiry, enum provider_result result)
{
    list_remove(&inquiry->node);
    issuer_wait_cancel(inquiry->wait);
    fetch_cancel(inquiry->fetch);
    provider_tell(inquiry, result);
    identity_unref(inquiry->identity);
    issuer_metadata_unref(inquiry->metadata);
    issuer_release(inquiry->issuer);
    snapshot_unref(inquiry->snapshot);
    memory_forget_text(inquiry->code);
    memory_forget_text(inquiry->verifier);
    memory_forget_text(inquiry->token);
    memory_forget_text(inquiry->access_token);
    free(inquiry->nonce);
    MAGIC_CLEAR(inquiry);
    free(inquiry);
}

/* ---- the provider ---- */

struct provider *provider_create(struct loop *loop)
{
    struct provider *provider = memory_alloc(sizeof *provider);
    provider->loop = loop;
    list_init(&provider->inquiries);
    return provider;
}

void provider_destroy(struct provider *provider)
{
    if (!provider)
        return;
    LIST_FOR_EACH_SAFE (node, next, &provider->inquiries) {
        inquiry_finish(LIST_ENTRY(node, struct inquiry, node), PROVIDER_UNAVAILABLE);
    }
    issuer_release(provider->issuer);
    issuers_destroy(provider->issuers);
    free(provider->issuer_name);
    free(provider);
}

/* A reference to the issuer of the configuration. It is kept between two inquiries, too, so that
 * its keys stay. NULL when there can be no thread to ask it. */
static struct issuer *get_issuer(struct provider *provider, const char *name)
{
    struct error error = {""};
    if (!provider->issuers)
        provider->issuers = issuers_create(&error);
    if (!provider->issuers) {
        log_error("The identity provider cannot be asked", LOG_TEXT("reason", error.message));
        return NULL;
    }
    if (!provider->issuer || strcmp(provider->issuer_name, name) != 0) {
        issuer_release(provider->issuer);
        free(provider->issuer_name);
        provider->issuer = issuers_get(provider->issuers, name, NULL);
        provider->issuer_name = memory_copy_text(name);
    }
    return issuers_get(provider->issuers, name, NULL);
}

static struct inquiry *inquiry_create(struct provider *provider, struct snapshot *snapshot)
{
    struct inquiry *inquiry = memory_alloc(sizeof *inquiry);
    MAGIC_SET(inquiry, INQUIRY_MAGIC);
    inquiry->provider = provider;
    inquiry->snapshot = snapshot_ref(snapshot);
    inquiry->issuer = get_issuer(provider, snapshot->config->oidc.issuer);
    list_append(&provider->inquiries, &inquiry->node);
    return inquiry;
}

/* ---- what is waited for ---- */

static void on_ready(void *context)
{
    struct inquiry *inquiry = inquiry_from(context);
    inquiry->wait = NULL;
    if (!inquiry->metadata)
        inquiry->metadata = issuer_metadata(inquiry->issuer);
    inquiry->next(inquiry);
}

/* Takes the next step once there may be newer keys than `used` names. */
static void inquiry_await_keys(struct inquiry *inquiry, uint64_t used, inquiry_step next)
{
    inquiry->next = next;
    if (inquiry->issuer)
        inquiry->wait =
            issuer_wait(inquiry->issuer, used, inquiry->provider->loop, on_ready, inquiry);
    if (!inquiry->wait)
        next(inquiry);
}

/* Takes the next step once the metadata is known, or cannot be: NULL then. */
static void inquiry_know(struct inquiry *inquiry, inquiry_step next)
{
    if (inquiry->issuer)
        inquiry->metadata = issuer_metadata(inquiry->issuer);
    if (inquiry->metadata)
        next(inquiry);
    else
        inquiry_await_keys(inquiry, 0, next);
}

/* ---- where things are ---- */

static void answer_look(struct inquiry *inquiry)
{
    inquiry_finish(inquiry, inquiry->metadata ? PROVIDER_OK : PROVIDER_UNAVAILABLE);
}

void provider_look(struct provider *provider, struct snapshot *snapshot, provider_looked callback,
                   void *context)
{
    struct inquiry *inquiry = inquiry_create(provider, snapshot);
    inquiry->looked = callback;
    inquiry->context = context;
    inquiry_know(inquiry, answer_look);
}

/* ---- to an identity ---- */

static void provider_refuse(struct inquiry *inquiry, const char *reason)
{
    inquiry->reason = reason;
    inquiry_finish(inquiry, PROVIDER_REFUSED);
}

/* ---- what the ID token leaves out ---- */

static void note_groups(const struct identity *identity)
{
    if (identity->groups.count == SESSIONS_MOST_GROUPS)
        log_warn("Groups of an operator beyond the first ones do not count",
                 LOG_TEXT("subject", identity->subject),
                 LOG_NUMBER("counted", SESSIONS_MOST_GROUPS));
}

static bool needs_more(const struct inquiry *inquiry)
{
    const struct identity *identity = inquiry->identity;
    bool says_all =
        identity->groups.count > 0 && identity->email && identity->email_verified && identity->name;
    note_groups(identity);
    return !says_all && inquiry->access_token && inquiry->metadata &&
           inquiry->metadata->userinfo_endpoint;
}

static struct identity_shape shape_of(const struct config_oidc *oidc)
{
    return (struct identity_shape){.groups_claim = oidc->groups_claim,
                                   .name_claim = oidc->name_claim,
                                   .most_groups = SESSIONS_MOST_GROUPS};
}

/* Claims of the ID token count before those of userinfo. */
static void add_userinfo(struct inquiry *inquiry, const struct identity *more)
{
    const struct identity *token = inquiry->identity;
    char *name = token->name ? token->name : more->name;
    struct identity merged = *token;
    merged.name = name;
    bool is_same = token->email && more->email && strcmp(token->email, more->email) == 0;
    if (!token->email || (is_same && more->email_verified)) {
        merged.email = more->email;
        merged.email_verified = more->email_verified;
    }
    if (token->groups.count == 0) {
        merged.groups = more->groups;
        note_groups(&merged);
    }
    OWNED char *claims = sessions_write_claims(&merged);
    struct identity *whole =
        identity_create(str_from(claims), token->issuer, &sessions_kept_shape, token->until_ms);
    identity_unref(inquiry->identity);
    inquiry->identity = whole;
}

static void on_userinfo(void *context, const struct fetch_answer *answer)
{
    struct inquiry *inquiry = inquiry_from(context);
    struct str body = answer->body;
    inquiry->fetch = NULL;
    const struct identity_shape shape = shape_of(&inquiry->snapshot->config->oidc);
    struct error error = {""};
    bool is_claims =
        answer->status == 200 && json_check(body, &error) && json_type(body) == JSON_OBJECT;
    struct identity *more =
        is_claims ? identity_create(body, inquiry->identity->issuer, &shape, INT64_MAX) : NULL;
    /* OpenID Connect Core §5.3.2: another's userinfo must not be used. */
    if (more && strcmp(more->subject, inquiry->identity->subject) != 0) {
        provider_refuse(inquiry, "userinfo");
    } else if (!more && inquiry->identity->groups.count == 0) {
        inquiry_finish(inquiry, PROVIDER_UNAVAILABLE);
    } else {
        if (more)
            add_userinfo(inquiry, more);
        inquiry_finish(inquiry, inquiry->identity ? PROVIDER_OK : PROVIDER_REFUSED);
    }
    identity_unref(more);
}

static void ask_userinfo(struct inquiry *inquiry)
{
    OWNED char *bearer = memory_format("Bearer %s", inquiry->access_token);
    const struct http_header header = {STR("authorization"), str_from(bearer)};
    const struct fetch_request request = {.method = "GET",
                                          .url = inquiry->metadata->userinfo_endpoint,
                                          .headers = &header,
                                          .header_count = 1};
    inquiry->fetch = fetch_start(issuers_fetcher(inquiry->provider->issuers), &request,
                                 inquiry->provider->loop, on_userinfo, inquiry);
    explicit_bzero(bearer, strlen(bearer));
}

/* ---- verifying ---- */

static void provider_verify(struct inquiry *inquiry)
{
    const struct config_oidc *oidc = &inquiry->snapshot->config->oidc;
    const struct token_rules rules = {
        .kind = inquiry->nonce ? TOKEN_ID : TOKEN_EITHER,
        .issuer = oidc->issuer,
        .audience = oidc->client_id,
        .client_id = oidc->client_id,
        .nonce = inquiry->nonce,
        .leeway_ms = LEEWAY_MS,
        .shape = shape_of(oidc),
    };
    uint64_t used = 0;
    enum token_error error = inquiry->issuer
                                 ? issuer_verify(inquiry->issuer, str_from(inquiry->token), &rules,
                                                 clock_now_ms(), &inquiry->identity, &used)
                                 : TOKEN_UNAVAILABLE;
    bool may_change = error == TOKEN_KEY_UNKNOWN || error == TOKEN_UNAVAILABLE;
    if (may_change && !inquiry->is_final) {
        inquiry->is_final = true;
        inquiry_await_keys(inquiry, used, provider_verify);
    } else if (error == TOKEN_UNAVAILABLE) {
        inquiry_finish(inquiry, PROVIDER_UNAVAILABLE);
    } else if (error != TOKEN_OK) {
        provider_refuse(inquiry, token_error_name(error));
    } else if (needs_more(inquiry)) {
        ask_userinfo(inquiry);
    } else {
        inquiry_finish(inquiry, PROVIDER_OK);
    }
}

void provider_check_token(struct provider *provider, struct snapshot *snapshot, struct str token,
                          provider_told callback, void *context)
{
    struct inquiry *inquiry = inquiry_create(provider, snapshot);
    inquiry->told = callback;
    inquiry->context = context;
    inquiry->token = memory_copy_str(token);
    provider_verify(inquiry);
}

/* ---- redeeming a code ---- */

static void refuse_code(struct inquiry *inquiry, struct str body)
{
    oauth_error_code(body, inquiry->detail);
    provider_refuse(inquiry, "code");
}

static void on_redeemed(void *context, const struct fetch_answer *answer)
{
    struct inquiry *inquiry = inquiry_from(context);
    struct error error = {""};
    inquiry->fetch = NULL;
    bool is_object = answer->status != 0 && json_check(answer->body, &error) &&
                     json_type(answer->body) == JSON_OBJECT;
    if (answer->status == 200 && is_object) {
        inquiry->token = json_plain_text(json_member(answer->body, "id_token"));
        inquiry->access_token = json_plain_text(json_member(answer->body, "access_token"));
    }
    if (inquiry->token)
        provider_verify(inquiry);
    else if (is_object && answer->status < 500)
        refuse_code(inquiry, answer->body);
    else
        inquiry_finish(inquiry, PROVIDER_UNAVAILABLE);
}

static void redeem_code(struct inquiry *inquiry)
{
    const struct config *config = inquiry->snapshot->config;
    if (!inquiry->metadata || !inquiry->metadata->token_endpoint) {
        inquiry_finish(inquiry, PROVIDER_UNAVAILABLE);
        return;
    }
    OWNED char *callback = memory_format("%s/login/callback", config->public_url);
    const struct oauth_client client = {
        .id = config->oidc.client_id,
        .secret = config->oidc.client_secret,
        .secret_in_body = inquiry->metadata->secret_in_body,
    };
    const struct oauth_parameter parameters[] = {
        {"grant_type", STR("authorization_code")},
        {"code", str_from(inquiry->code)},
        {"redirect_uri", str_from(callback)},
        {"code_verifier", str_from(inquiry->verifier)},
    };
    inquiry->fetch =
        oauth_post(issuers_fetcher(inquiry->provider->issuers), inquiry->metadata->token_endpoint,
                   &client, parameters, sizeof parameters / sizeof *parameters,
                   inquiry->provider->loop, on_redeemed, inquiry);
}

void provider_redeem(struct provider *provider, struct snapshot *snapshot, struct str code,
                     const char *verifier, const char *nonce, provider_told callback, void *context)
{
    struct inquiry *inquiry = inquiry_create(provider, snapshot);
    inquiry->told = callback;
    inquiry->context = context;
    inquiry->code = memory_copy_str(code);
    inquiry->verifier = memory_copy_text(verifier);
    inquiry->nonce = memory_copy_text(nonce);
    inquiry_know(inquiry, redeem_code);
}
