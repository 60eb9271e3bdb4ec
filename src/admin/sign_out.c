/*
 * Signing out: the session ends here, and the answer says where to end it at the provider, too
 * (OpenID Connect RP-Initiated Logout 1.0).
 */
#include <stdlib.h>
#include <string.h>

#include "taskgate/core/log.h"
#include "taskgate/core/magic.h"
#include "taskgate/core/memory.h"
#include "taskgate/json/members.h"

#include "cookies.h"
#include "internal.h"
#include "provider.h"
#include "query.h"
#include "reply.h"
#include "sessions.h"
#include "site.h"

struct leave {
    uint32_t magic; /* LEAVE_MAGIC while it lives */
    struct admin *admin;
    struct http_exchange *exchange; /* NULL once the client has gone */
    struct snapshot *snapshot;
    struct operator_identity *who;
    char cookie[COOKIE_VALUE_BYTES];
    bool is_stored;
};
#define LEAVE_MAGIC 0x1eaf3c88

static struct leave *leave_from(void *context)
{
    return MAGIC_CAST(struct leave, LEAVE_MAGIC, context);
}

static void sign_out_forget_exchange(void *context)
{
    struct leave *leave = leave_from(context);
    leave->exchange = NULL;
}

static void write_provider(struct buffer *url, const struct leave *leave, const char *end_session)
{
    const struct config *config = leave->snapshot->config;
    char *token = sessions_open_token(leave->who, str_from(leave->cookie));
    char *home = memory_format("%s/", config->public_url);
    bool has_query = strchr(end_session, '?') != NULL;
    buffer_append_format(url, "%s%cclient_id=", end_session, has_query ? '&' : '?');
    query_encode(url, str_from(config->oidc.client_id));
    buffer_append_text(url, "&post_logout_redirect_uri=");
    query_encode(url, str_from(home));
    /* Some providers demand it, and with it most do not ask whether one means it. */
    if (token) {
        buffer_append_text(url, "&id_token_hint=");
        query_encode(url, str_from(token));
        explicit_bzero(token, strlen(token));
    }
    free(token);
    free(home);
}

/* {"location": where the browser goes next}. */
static void sign_out_answer(struct leave *leave, const char *end_session)
{
    const struct config *config = leave->snapshot->config;
    struct buffer body, location, cookie;
    buffer_init(&body);
    buffer_init(&location);
    buffer_init(&cookie);
    if (end_session)
        write_provider(&location, leave, end_session);
    else
        buffer_append_format(&location, "%s/", config->public_url ? config->public_url : "");
    buffer_append_char(&location, '\0');
    cookie_write(&cookie, config, COOKIE_SESSION, "", 0);
    buffer_append_char(&cookie, '\0');
    buffer_append_char(&body, '{');
    json_add_text(&body, "location", location.bytes);
    buffer_append_char(&body, '}');
    http_on_gone(leave->exchange, NULL, NULL);
    reply_json_with_cookie(leave->exchange, 200, &body, cookie.bytes);
    buffer_finish(&cookie);
    buffer_finish(&location);
    buffer_finish(&body);
}

static void sign_out_end(struct leave *leave)
{
    operator_unref(leave->who);
    snapshot_unref(leave->snapshot);
    MAGIC_CLEAR(leave);
    explicit_bzero(leave, sizeof *leave);
    free(leave);
}

static void sign_out_on_provider(void *context, enum provider_result result,
                                 const struct provider_endpoints *endpoints)
{
    struct leave *leave = leave_from(context);
    if (leave->exchange)
        sign_out_answer(leave, result == PROVIDER_OK ? endpoints->end_session : NULL);
    sign_out_end(leave);
}

static void sign_out_on_ended(void *context, bool is_stored)
{
    struct leave *leave = leave_from(context);
    if (leave->who)
        log_info("Operator signed out", LOG_TEXT("person", leave->who->person.name));
    if (is_stored && leave->who && leave->snapshot->config->oidc.is_on) {
        provider_look(leave->admin->provider, leave->snapshot, sign_out_on_provider, leave);
        return;
    }
    if (leave->exchange && is_stored) {
        sign_out_answer(leave, NULL);
    } else if (leave->exchange) {
        http_on_gone(leave->exchange, NULL, NULL);
        reply_error(leave->exchange, REPLY_UNAVAILABLE,
                    "the database does not answer; the session goes on, see the log", NULL);
    }
    sign_out_end(leave);
}

static void sign_out_on_session(void *context, enum session_result result,
                                struct operator_identity *who)
{
    struct leave *leave = leave_from(context);
    leave->who = who;
    if (result == SESSION_UNAVAILABLE || leave->admin->closed)
        sign_out_on_ended(leave, false);
    else
        sessions_end(leave->admin, str_from(leave->cookie), sign_out_on_ended, leave);
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
    struct leave *leave = memory_alloc(sizeof *leave);
    MAGIC_SET(leave, LEAVE_MAGIC);
    leave->admin = request->admin;
    leave->exchange = request->exchange;
    leave->snapshot = snapshot_ref(request->snapshot);
    http_on_gone(request->exchange, sign_out_forget_exchange, leave);
    if (has_cookie) {
        memcpy(leave->cookie, cookie.bytes, cookie.length);
        sessions_find(request->admin, cookie, sign_out_on_session, leave);
    } else {
        sign_out_on_ended(leave, true);
    }
}
