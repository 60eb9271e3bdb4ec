/*
 * Signing in at the OpenID provider: the authorization code flow with PKCE, state, nonce and `iss`
 * (OpenID Connect Core §3.1, RFC 7636, RFC 9207), and signing out.
 *
 * All addresses that a browser is sent to are those of the configuration and of the provider's
 * metadata; nothing of a request becomes one.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "taskgate/core/clock.h"
#include "taskgate/core/digest.h"
#include "taskgate/core/log.h"
#include "taskgate/core/magic.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"
#include "taskgate/core/owned.h"
#include "taskgate/core/random.h"
#include "taskgate/core/state_seal.h"
#include "taskgate/json/members.h"

#include "cookies.h"
#include "internal.h"
#include "pending_reply.h"
#include "provider.h"
#include "query.h"
#include "refusals.h"
#include "reply.h"
#include "sessions.h"
#include "site.h"

#define CALLBACK_PATH "/login/callback"

/* ---- attempts ---- */

/*
 * Sign-ins that have begun: what the provider's answer must fit, until it comes.
 *
 * The gateway keeps nothing of them, because anybody may begin one. The `state` that goes to the
 * provider and back is a sealed text, so that any replica with the same state key can read it, also
 * after a restart. It is bound to the cookie of the browser in which the sign-in has begun, and is
 * good for ten minutes. That it is used once is for the provider to say, which takes each code once
 * (RFC 6749 §4.1.2). Any thread.
 *
 * The sealed text is the end of the attempt's life, the nonce and the verifier.
 */

#define ATTEMPT_LIFE_MS 600000

struct attempt {
    char nonce[COOKIE_VALUE_BYTES];
    char verifier[COOKIE_VALUE_BYTES]; /* RFC 7636: 64 unreserved characters */
};

#define PREFIX STR("sign_in_")
#define VALUE_LENGTH ((size_t)COOKIE_VALUE_BYTES - 1)

/* A new one for the browser with this cookie. Appends its state. */
static void attempt_begin(struct attempt *attempt, const struct state_keys *keys, struct str cookie,
                          struct buffer *state)
{
    OWNED_BUFFER(text);
    random_hex(attempt->nonce, COOKIE_VALUE_BYTES - 1);
    random_hex(attempt->verifier, COOKIE_VALUE_BYTES - 1);
    buffer_append_format(&text, "%s%s%" PRId64, attempt->nonce, attempt->verifier,
                         clock_now_ms() + ATTEMPT_LIFE_MS);
    if (!state_seal(keys, PREFIX, cookie, buffer_str(&text), state))
        memory_exhausted(); /* nothing else can be missing */
    explicit_bzero(text.bytes, text.length);
}

static bool attempts_read_text(struct attempt *attempt, struct str text)
{
    uint64_t until_ms;
    if (text.length <= 2 * VALUE_LENGTH ||
        !str_to_u64(str_slice(text.bytes + 2 * VALUE_LENGTH, text.length - 2 * VALUE_LENGTH),
                    &until_ms) ||
        until_ms <= (uint64_t)clock_now_ms())
        return false;
    memcpy(attempt->nonce, text.bytes, VALUE_LENGTH);
    memcpy(attempt->verifier, text.bytes + VALUE_LENGTH, VALUE_LENGTH);
    attempt->nonce[VALUE_LENGTH] = attempt->verifier[VALUE_LENGTH] = '\0';
    return true;
}

/* false: it is none of the gateway's, has begun in another browser, or is over. */
static bool attempt_read(struct attempt *attempt, const struct state_keys *keys, struct str cookie,
                         struct str state)
{
    OWNED_BUFFER(text);
    bool is_good = state_unseal(keys, PREFIX, cookie, state, &text) &&
                   attempts_read_text(attempt, buffer_str(&text));
    if (text.length > 0)
        explicit_bzero(text.bytes, text.length);
    return is_good;
}

/* ---- a sign-in ---- */

/* A browser on its way in or out; it may leave at any time. */
struct step {
    uint32_t magic;                /* STEP_MAGIC while it lives */
    struct pending_reply *pending; /* its `who` is found on the way */
    struct attempt attempt;
    struct buffer state, code, issuer, error; /* of the return */
    char cookie[COOKIE_VALUE_BYTES];
    bool must_name_issuer;
};
#define STEP_MAGIC 0x57e9a0d1

static struct step *step_from(void *context)
{
    return MAGIC_CAST(struct step, STEP_MAGIC, context);
}

struct failure {
    int status;
    const char *reason; /* of the log and the metric */
    const char *message;
};
static const struct failure
    failed_provider = {503, "unavailable",
                       "The identity provider does not answer. Try again later."},
    failed_store = {503, "store", "The database does not answer. Try again later."},
    failed_shut_down = {503, "shutting_down", "The gateway is shutting down."},
    failed_trust = {403, "untrusted", "What the identity provider says of you cannot be trusted."},
    failed_role = {403, "no_role", "You are in no group that has a role here."},
    failed_issuer = {400, "issuer", "The answer comes from another identity provider."},
    failed_form = {400, "malformed", "The answer of the identity provider is malformed."},
    failed_state = {400, "state",
                    "This sign-in has not begun in this browser, or is over. Begin again."},
    failed_refusal = {400, "provider", "The identity provider has refused the sign-in."};

static struct step *create_step(const struct request *request)
{
    struct step *step = memory_alloc(sizeof *step);
    MAGIC_SET(step, STEP_MAGIC);
    step->pending = pending_reply_create(request);
    buffer_init(&step->state);
    buffer_init(&step->code);
    buffer_init(&step->issuer);
    buffer_init(&step->error);
    return step;
}

static void destroy_step(struct step *step)
{
    pending_reply_destroy(step->pending);
    buffer_finish(&step->state);
    buffer_finish(&step->code);
    buffer_finish(&step->issuer);
    buffer_finish(&step->error);
    MAGIC_CLEAR(step);
    explicit_bzero(step, sizeof *step);
    free(step);
}

/* Ends the step with a page. `detail` is for the log, and may be NULL. */
static void sign_in_fail(struct step *step, const struct failure *failure, const char *detail)
{
    struct http_exchange *exchange = pending_reply_take(step->pending);
    const struct operator_identity *who = step->pending->who;
    refusals_note(step->pending->admin, &(struct refusal){
                                            .reason = failure->reason,
                                            .detail = detail,
                                            .person = who ? who->person.name : NULL,
                                            .client = exchange ? http_peer(exchange) : STR_EMPTY,
                                        });
    if (exchange)
        reply_notice(exchange, failure->status, "You are not signed in", failure->message);
    destroy_step(step);
}

static bool refuse_without_oidc(const struct request *request)
{
    if (request->snapshot->config->oidc.is_on)
        return false;
    reply_error(request->exchange, REPLY_NOT_FOUND,
                "nobody signs in here: admin.oidc is not configured", NULL);
    return true;
}

/* ---- to the provider ---- */

static void sign_in_add_parameter(struct buffer *url, const char *name, struct str value)
{
    bool has_query = url->length > 0 && memchr(url->bytes, '?', url->length) != NULL;
    buffer_append_format(url, "%c%s=", has_query ? '&' : '?', name);
    buffer_append_url_encoded(url, value);
}

static void add_scopes(struct buffer *url, const struct config_strings *scopes)
{
    OWNED_BUFFER(joined);
    for (size_t i = 0; i < scopes->count; i++) {
        if (i > 0)
            buffer_append_char(&joined, ' ');
        buffer_append_text(&joined, scopes->items[i]);
    }
    sign_in_add_parameter(url, "scope", buffer_str(&joined));
}

static void sign_in_write_address(struct buffer *url, const char *authorization,
                                  const struct config *config, const struct attempt *attempt,
                                  struct str state)
{
    char challenge[DIGEST_BASE64URL_BYTES];
    OWNED char *callback = memory_format("%s" CALLBACK_PATH, config->public_url);
    digest_sha256_base64url(str_from(attempt->verifier), challenge);
    buffer_append_text(url, authorization);
    sign_in_add_parameter(url, "response_type", STR("code"));
    sign_in_add_parameter(url, "client_id", str_from(config->oidc.client_id));
    sign_in_add_parameter(url, "redirect_uri", str_from(callback));
    add_scopes(url, &config->oidc.scopes);
    sign_in_add_parameter(url, "state", state);
    sign_in_add_parameter(url, "nonce", str_from(attempt->nonce));
    sign_in_add_parameter(url, "code_challenge", str_from(challenge));
    sign_in_add_parameter(url, "code_challenge_method", STR("S256"));
}

static void send_to_provider(struct step *step, const char *authorization)
{
    const struct config *config = step->pending->snapshot->config;
    OWNED_BUFFER(url);
    OWNED_BUFFER(cookie);
    struct http_exchange *exchange = pending_reply_take(step->pending);
    attempt_begin(&step->attempt, step->pending->admin->state_keys, str_from(step->cookie),
                  &step->state);
    sign_in_write_address(&url, authorization, config, &step->attempt, buffer_str(&step->state));
    cookie_write(&cookie, config, COOKIE_ATTEMPT, step->cookie, ATTEMPT_LIFE_MS / 1000);
    buffer_append_char(&cookie, '\0');
    reply_redirect(exchange, buffer_str(&url), (const char *const[2]){cookie.bytes, NULL});
    destroy_step(step);
}

static void sign_in_on_provider(void *context, enum provider_result result,
                                const struct provider_endpoints *endpoints)
{
    struct step *step = step_from(context);
    if (result != PROVIDER_OK || !endpoints->authorization)
        sign_in_fail(step, &failed_provider, NULL);
    else if (!step->pending->exchange)
        destroy_step(step);
    else if (step->pending->admin->closed)
        sign_in_fail(step, &failed_shut_down, NULL);
    else
        send_to_provider(step, endpoints->authorization);
}

void sign_in_begin(const struct request *request)
{
    struct str cookie;
    if (refuse_without_oidc(request))
        return;
    struct step *step = create_step(request);
    /* One cookie for all sign-ins of a browser: several may be under way in several tabs. */
    if (cookie_read(request->exchange, request->snapshot->config, COOKIE_ATTEMPT, &cookie))
        memcpy(step->cookie, cookie.bytes, cookie.length);
    else
        random_hex(step->cookie, COOKIE_VALUE_BYTES - 1);
    provider_look(request->admin->provider, request->snapshot, sign_in_on_provider, step);
}

/* ---- and back ---- */

static void sign_in_on_stored(void *context, bool is_stored)
{
    struct step *step = step_from(context);
    const struct config *config = step->pending->snapshot->config;
    struct buffer cookie;
    if (!is_stored) {
        sign_in_fail(step, &failed_store, NULL);
        return;
    }
    struct http_exchange *exchange = pending_reply_take(step->pending);
    metrics_count(METRIC_SIGN_INS, STR("success"));
    log_info("Operator signed in", LOG_TEXT("person", step->pending->who->person.name),
             LOG_TEXT("name", step->pending->who->name),
             LOG_TEXT("subject", step->pending->who->person.subject));
    if (exchange) {
        OWNED char *home = memory_format("%s/", config->public_url);
        buffer_init(&cookie);
        cookie_write(&cookie, config, COOKIE_SESSION, step->cookie, config->oidc.max_age_ms / 1000);
        buffer_append_char(&cookie, '\0');
        reply_redirect(exchange, str_from(home), (const char *const[2]){cookie.bytes, NULL});
        buffer_finish(&cookie);
    }
    destroy_step(step);
}

/* RFC 6749 §5.2: the code was used before, or is too old. The gateway keeps nothing of a sign-in,
 * so only the provider knows. */
static bool is_used_up(const struct provider_answer *answer)
{
    return answer->result == PROVIDER_REFUSED && strcmp(answer->reason, "code") == 0 &&
           answer->detail && strcmp(answer->detail, "invalid_grant") == 0;
}

static void sign_in_on_identity(void *context, const struct provider_answer *answer)
{
    struct step *step = step_from(context);
    const struct config *config = step->pending->snapshot->config;
    if (answer->result == PROVIDER_UNAVAILABLE) {
        sign_in_fail(step, &failed_provider, NULL);
        return;
    }
    if (is_used_up(answer)) {
        sign_in_fail(step, &failed_state, answer->detail);
        return;
    }
    step->pending->who = answer->identity ? operator_of_identity(config, answer->identity) : NULL;
    if (!step->pending->who) {
        sign_in_fail(step, &failed_trust, answer->detail ? answer->detail : answer->reason);
    } else if (step->pending->who->roles == 0) {
        sign_in_fail(step, &failed_role, NULL);
    } else if (step->pending->admin->closed) {
        sign_in_fail(step, &failed_shut_down, NULL);
    } else {
        random_hex(step->cookie, COOKIE_VALUE_BYTES - 1);
        sessions_begin(step->pending->admin, config, step->cookie, step->pending->who,
                       answer->token, sign_in_on_stored, step);
    }
}

/* RFC 9207: an answer that another issuer has sent is one that its browser was led astray with. */
static bool is_of_issuer(const struct step *step)
{
    struct str issuer = buffer_str(&step->issuer);
    if (issuer.length == 0)
        return !step->must_name_issuer;
    return str_equal(issuer, str_from(step->pending->snapshot->config->oidc.issuer));
}

static void on_metadata(void *context, enum provider_result result,
                        const struct provider_endpoints *endpoints)
{
    struct step *step = step_from(context);
    step->must_name_issuer = endpoints && endpoints->names_itself;
    if (result != PROVIDER_OK)
        sign_in_fail(step, &failed_provider, NULL);
    else if (!is_of_issuer(step))
        sign_in_fail(step, &failed_issuer, NULL);
    else
        provider_redeem(step->pending->admin->provider, step->pending->snapshot,
                        buffer_str(&step->code), step->attempt.verifier, step->attempt.nonce,
                        sign_in_on_identity, step);
}

/* The parameter, at most once; false when the query is not well formed. */
static bool sign_in_read_parameter(const struct request *request, const char *name,
                                   struct buffer *value)
{
    return query_read(value, http_query(request->exchange), name);
}

/* `error` is what the provider says has failed. */
static bool read_return(const struct request *request, struct step *step)
{
    return sign_in_read_parameter(request, "state", &step->state) &&
           sign_in_read_parameter(request, "error", &step->error) &&
           sign_in_read_parameter(request, "code", &step->code) &&
           sign_in_read_parameter(request, "iss", &step->issuer) &&
           (step->code.length > 0 || step->error.length > 0);
}

/* NULL: the provider has not said that anything has failed. */
static const char *provider_error(struct step *step)
{
    if (step->error.length == 0)
        return NULL;
    buffer_append_char(&step->error, '\0');
    return step->error.bytes;
}

static void ask_provider(struct step *step, struct str cookie)
{
    const char *error = provider_error(step);
    if (step->pending->admin->closed)
        sign_in_fail(step, &failed_shut_down, NULL);
    else if (!attempt_read(&step->attempt, step->pending->admin->state_keys, cookie,
                           buffer_str(&step->state)))
        sign_in_fail(step, &failed_state, error);
    else if (error)
        sign_in_fail(step, &failed_refusal, error);
    else
        provider_look(step->pending->admin->provider, step->pending->snapshot, on_metadata, step);
}

void sign_in_return(const struct request *request)
{
    struct str cookie;
    if (refuse_without_oidc(request))
        return;
    struct step *step = create_step(request);
    if (!read_return(request, step))
        sign_in_fail(step, &failed_form, provider_error(step));
    else if (!cookie_read(request->exchange, request->snapshot->config, COOKIE_ATTEMPT, &cookie))
        sign_in_fail(step, &failed_state, provider_error(step));
    else
        ask_provider(step, cookie);
}

/* ---- for the page and the command line ---- */

void sign_in_describe(const struct request *request)
{
    const struct config_oidc *oidc = &request->snapshot->config->oidc;
    OWNED_BUFFER(body);
    buffer_append_char(&body, '{');
    if (oidc->is_on) {
        json_add_text(&body, "issuer", oidc->issuer);
        json_add_text(&body, "clientId", oidc->client_id);
        json_add_texts(&body, "scopes", oidc->scopes.items, oidc->scopes.count);
    }
    buffer_append_char(&body, '}');
    reply_json(request->exchange, 200, &body);
}

/* ---- the end of a session ---- */

static void write_provider(struct buffer *url, const struct step *step, const char *end_session)
{
    const struct config *config = step->pending->snapshot->config;
    OWNED char *token = sessions_open_token(step->pending->who, str_from(step->cookie));
    OWNED char *home = memory_format("%s/", config->public_url);
    buffer_append_text(url, end_session);
    sign_in_add_parameter(url, "client_id", str_from(config->oidc.client_id));
    sign_in_add_parameter(url, "post_logout_redirect_uri", str_from(home));
    /* Some providers demand it, and with it most do not ask whether one means it. */
    if (token) {
        sign_in_add_parameter(url, "id_token_hint", str_from(token));
        explicit_bzero(token, strlen(token));
    }
}

/* {"location": where the browser goes next}. */
static void sign_out_answer(struct step *step, struct http_exchange *exchange,
                            const char *end_session)
{
    const struct config *config = step->pending->snapshot->config;
    OWNED_BUFFER(body);
    OWNED_BUFFER(location);
    OWNED_BUFFER(cookie);
    if (end_session)
        write_provider(&location, step, end_session);
    else
        buffer_append_format(&location, "%s/", config->public_url ? config->public_url : "");
    buffer_append_char(&location, '\0');
    cookie_write(&cookie, config, COOKIE_SESSION, "", 0);
    buffer_append_char(&cookie, '\0');
    buffer_append_char(&body, '{');
    json_add_text(&body, "location", location.bytes);
    buffer_append_char(&body, '}');
    reply_json_with_cookie(exchange, 200, &body, cookie.bytes);
}

static void sign_out_on_provider(void *context, enum provider_result result,
                                 const struct provider_endpoints *endpoints)
{
    struct step *step = step_from(context);
    struct http_exchange *exchange = pending_reply_take(step->pending);
    if (exchange)
        sign_out_answer(step, exchange, result == PROVIDER_OK ? endpoints->end_session : NULL);
    destroy_step(step);
}

static void sign_out_on_ended(void *context, bool is_stored)
{
    struct step *step = step_from(context);
    struct pending_reply *pending = step->pending;
    if (pending->who)
        log_info("Operator signed out", LOG_TEXT("person", pending->who->person.name));
    if (is_stored && pending->who && pending->snapshot->config->oidc.is_on) {
        provider_look(pending->admin->provider, pending->snapshot, sign_out_on_provider, step);
        return;
    }
    struct http_exchange *exchange = pending_reply_take(pending);
    if (exchange && is_stored)
        sign_out_answer(step, exchange, NULL);
    else if (exchange)
        reply_error(exchange, REPLY_UNAVAILABLE,
                    "the database does not answer; the session goes on, see the log", NULL);
    destroy_step(step);
}

static void sign_out_on_session(void *context, enum session_result result,
                                struct operator_identity *who)
{
    struct step *step = step_from(context);
    step->pending->who = who;
    if (result == SESSION_UNAVAILABLE || step->pending->admin->closed)
        sign_out_on_ended(step, false);
    else
        sessions_end(step->pending->admin, str_from(step->cookie), sign_out_on_ended, step);
}

void sign_out(const struct request *request)
{
    struct str cookie;
    bool has_cookie =
        cookie_read(request->exchange, request->snapshot->config, COOKIE_SESSION, &cookie);
    if (!site_is_own_page(request)) {
        reply_error(request->exchange, REPLY_FORBIDDEN,
                    "signing out needs X-Taskgate: 1 and the Origin of admin.public_url", NULL);
        return;
    }
    struct step *step = create_step(request);
    if (has_cookie) {
        memcpy(step->cookie, cookie.bytes, cookie.length);
        sessions_find(request->admin, cookie, sign_out_on_session, step);
    } else {
        sign_out_on_ended(step, true);
    }
}
