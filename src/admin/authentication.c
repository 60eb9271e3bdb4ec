/* An Authorization header counts alone; without one the cookie does. */
#include "authentication.h"

#include <stdlib.h>
#include <string.h>

#include "client_certificate.h"
#include "cookies.h"
#include "provider.h"
#include "refusals.h"
#include "sessions.h"
#include "taskgate/core/digest.h"
#include "taskgate/core/memory.h"

/* Counts and logs a refusal of credentials that were shown. */
static void authentication_note(const struct request *request, const char *via, const char *reason,
                                const char *detail, const char *person)
{
    struct str client = request->exchange ? http_peer(request->exchange) : STR_EMPTY;
    refusals_note(
        request->admin,
        &(struct refusal){
            .via = via, .reason = reason, .detail = detail, .person = person, .client = client});
}

static void authentication_refuse(authentication_callback callback, void *context,
                                  enum reply_error error, const char *message)
{
    callback(context, &(struct authentication){NULL, error, message});
}

#define TOKEN_IS_NEEDED "a valid token is needed, as \"Authorization: Bearer …\""

static void refuse_stranger(authentication_callback callback, void *context)
{
    authentication_refuse(callback, context, REPLY_UNAUTHORIZED, TOKEN_IS_NEEDED);
}

static void refuse_token(authentication_callback callback, void *context)
{
    authentication_refuse(callback, context, REPLY_INVALID_TOKEN, TOKEN_IS_NEEDED);
}

/* Takes the reference. */
static void authentication_accept(const struct request *request, authentication_callback callback,
                                  void *context, struct operator_identity *who)
{
    bool is_by_certificate = who->via == OPERATOR_VIA_CERTIFICATE;
    if (who->roles != 0) {
        callback(context, &(struct authentication){who, 0, NULL});
        return;
    }
    authentication_note(request, operator_via_name(who), "no_role", NULL, who->person.name);
    operator_unref(who);
    authentication_refuse(callback, context, REPLY_FORBIDDEN,
                          is_by_certificate ? "your entry in admin.people has no roles"
                                            : "you are in no group that has a role here");
}

/* ---- a certificate ---- */

static void find_by_certificate(const struct request *request, authentication_callback callback,
                                void *context)
{
    struct operator_identity *who =
        client_certificate_find(request->exchange, request->snapshot->config);
    struct str subject = http_client_certificate(request->exchange);
    if (who) {
        authentication_accept(request, callback, context, who);
        return;
    }
    if (subject.bytes)
        authentication_note(request, "certificate", "unknown", subject.bytes, NULL);
    refuse_stranger(callback, context);
}

/* ---- a token of the issuer ---- */

struct check {
    const struct request *request;
    authentication_callback callback;
    void *context;
    char sha256[65];
};

static void authentication_on_identity(void *context, const struct provider_answer *found)
{
    struct check *check = context;
    struct snapshot *snapshot = snapshot_current();
    struct operator_identity *who = found->identity && snapshot
                                        ? operator_of_identity(snapshot->config, found->identity)
                                        : NULL;
    bool is_down = found->result == PROVIDER_UNAVAILABLE;
    if (who) {
        memcpy(who->sha256, check->sha256, sizeof who->sha256);
        authentication_accept(check->request, check->callback, check->context, who);
    } else {
        const char *reason = is_down ? "unavailable" : found->reason ? found->reason : "issuer";
        authentication_note(check->request, "oidc", reason, found->detail, NULL);
        if (is_down)
            authentication_refuse(check->callback, check->context, REPLY_UNAVAILABLE,
                                  "the issuer cannot be asked for its keys; see the log");
        else
            refuse_token(check->callback, check->context);
    }
    snapshot_unref(snapshot);
    free(check);
}

static void find_by_token(const struct request *request, struct str token,
                          authentication_callback callback, void *context)
{
    const struct config *config = request->snapshot->config;
    char sha256[65];
    digest_sha256_hex(token, sha256);
    struct operator_identity *who =
        operator_of_token(request->admin->extra_token_sha256, config, sha256);
    if (who) {
        authentication_accept(request, callback, context, who);
    } else if (config->oidc.is_on && memchr(token.bytes, '.', token.length)) {
        struct check *check = memory_alloc(sizeof *check);
        *check = (struct check){.request = request, .callback = callback, .context = context};
        memcpy(check->sha256, sha256, sizeof check->sha256);
        provider_check_token(request->admin->provider, request->snapshot, token,
                             authentication_on_identity, check);
    } else {
        authentication_note(request, "token", "unknown", NULL, NULL);
        refuse_token(callback, context);
    }
}

/* ---- a cookie ---- */

struct lookup {
    const struct request *request;
    authentication_callback callback;
    void *context;
    struct operator_identity *holder; /* of the connection's certificate, or NULL */
};

static void authentication_on_session(void *context, enum session_result result,
                                      struct operator_identity *who)
{
    struct lookup lookup = *(struct lookup *)context;
    free(context);
    if (result == SESSION_UNAVAILABLE) {
        operator_unref(lookup.holder);
        authentication_refuse(lookup.callback, lookup.context, REPLY_UNAVAILABLE,
                              "the database does not answer, see the log");
    } else if (who) {
        operator_unref(lookup.holder);
        authentication_accept(lookup.request, lookup.callback, lookup.context, who);
    } else if (lookup.holder) {
        authentication_accept(lookup.request, lookup.callback, lookup.context, lookup.holder);
    } else {
        authentication_note(lookup.request, "session", "over", NULL, NULL);
        authentication_refuse(lookup.callback, lookup.context, REPLY_UNAUTHORIZED,
                              "the session is over; sign in again");
    }
}

/* ---- which of them ---- */

/* How many Authorization headers there are; `token` is that of the first, empty when it has none.
 */
static size_t find_bearer(const struct http_exchange *exchange, struct str *token)
{
    size_t found = 0, count = http_header_count(exchange);
    struct str scheme;
    *token = STR_EMPTY;
    for (size_t i = 0; i < count; i++) {
        struct http_header header = http_header_at(exchange, i);
        if (!str_equal(header.name, STR("authorization")))
            continue;
        if (found++ == 0 && str_cut(header.value, ' ', &scheme, token) &&
            !str_equal_ignore_case(scheme, STR("bearer")))
            *token = STR_EMPTY;
    }
    *token = str_trim(*token);
    return found;
}

void authentication_find(const struct request *request, authentication_callback callback,
                         void *context)
{
    struct str token, cookie;
    size_t headers = find_bearer(request->exchange, &token);
    if (headers == 1 && token.length > 0) {
        find_by_token(request, token, callback, context);
    } else if (headers == 0 &&
               cookie_read(request->exchange, request->snapshot->config, COOKIE_SESSION, &cookie)) {
        struct lookup *lookup = memory_alloc(sizeof *lookup);
        *lookup =
            (struct lookup){request, callback, context,
                            client_certificate_find(request->exchange, request->snapshot->config)};
        sessions_find(request->admin, cookie, authentication_on_session, lookup);
    } else if (headers == 0) {
        find_by_certificate(request, callback, context);
    } else {
        authentication_note(request, "token", headers > 1 ? "several" : "scheme", NULL, NULL);
        refuse_token(callback, context);
    }
}
