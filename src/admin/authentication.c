/* An Authorization header counts alone; without one the cookie does. */
#include "authentication.h"

#include <stdlib.h>
#include <string.h>

#include "client_certificate.h"
#include "cookies.h"
#include "provider.h"
#include "sessions.h"
#include "taskgate/core/digest.h"
#include "taskgate/core/memory.h"

static void answer(authentication_callback callback, void *context, struct operator_identity *who,
                   enum reply_error error, const char *message)
{
    if (who && who->roles == 0) {
        bool is_by_certificate = who->via == OPERATOR_VIA_CERTIFICATE;
        operator_unref(who);
        who = NULL;
        error = REPLY_FORBIDDEN;
        message = is_by_certificate ? "your entry in admin.people has no roles"
                                    : "you are in no group that has a role here";
    }
    callback(context, &(struct authentication){who, error, message});
}

static void refuse(authentication_callback callback, void *context)
{
    answer(callback, context, NULL, REPLY_UNAUTHORIZED,
           "a valid token is needed, as \"Authorization: Bearer …\"");
}

/* ---- a certificate ---- */

static void find_by_certificate(const struct request *request, authentication_callback callback,
                                void *context)
{
    struct operator_identity *who =
        client_certificate_find(request->exchange, request->snapshot->config);
    if (who)
        answer(callback, context, who, 0, NULL);
    else
        refuse(callback, context);
}

/* ---- a token of the issuer ---- */

struct check {
    authentication_callback callback;
    void *context;
    char sha256[65];
};

static void on_identity(void *context, enum provider_result result, struct identity *identity)
{
    struct check *check = context;
    struct snapshot *snapshot = snapshot_current();
    struct operator_identity *who =
        identity && snapshot ? operator_of_identity(snapshot->config, identity) : NULL;
    if (who)
        memcpy(who->sha256, check->sha256, sizeof who->sha256);
    if (result == PROVIDER_UNAVAILABLE)
        answer(check->callback, check->context, NULL, REPLY_UNAVAILABLE,
               "the issuer cannot be asked for its keys; see the log");
    else if (who)
        answer(check->callback, check->context, who, 0, NULL);
    else
        refuse(check->callback, check->context);
    snapshot_unref(snapshot);
    free(check);
}

static void find_by_token(const struct request *request, struct str token,
                          authentication_callback callback, void *context)
{
    const struct config *config = request->snapshot->config;
    char sha256[65];
    digest_sha256_hex(token, sha256);
    struct operator_identity *who = operator_of_token(request->admin, config, sha256);
    if (who) {
        answer(callback, context, who, 0, NULL);
    } else if (config->oidc.is_on && memchr(token.bytes, '.', token.length)) {
        struct check *check = memory_alloc(sizeof *check);
        *check = (struct check){.callback = callback, .context = context};
        memcpy(check->sha256, sha256, sizeof check->sha256);
        provider_check_token(request->admin->provider, request->snapshot, token, on_identity,
                             check);
    } else {
        refuse(callback, context);
    }
}

/* ---- a cookie ---- */

struct lookup {
    authentication_callback callback;
    void *context;
    struct operator_identity *holder; /* of the connection's certificate, or NULL */
};

static void on_session(void *context, enum session_result result, struct operator_identity *who)
{
    struct lookup lookup = *(struct lookup *)context;
    free(context);
    if (result == SESSION_UNAVAILABLE)
        answer(lookup.callback, lookup.context, NULL, REPLY_UNAVAILABLE,
               "the database does not answer, see the log");
    else if (who || lookup.holder)
        answer(lookup.callback, lookup.context, who ? who : operator_ref(lookup.holder), 0, NULL);
    else
        answer(lookup.callback, lookup.context, NULL, REPLY_UNAUTHORIZED,
               "the session is over; sign in again");
    operator_unref(lookup.holder);
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
            (struct lookup){callback, context,
                            client_certificate_find(request->exchange, request->snapshot->config)};
        sessions_find(request->admin, cookie, on_session, lookup);
    } else if (headers == 0) {
        find_by_certificate(request, callback, context);
    } else {
        refuse(callback, context);
    }
}
