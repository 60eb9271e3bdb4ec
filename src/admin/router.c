/*
 * From a request to its handler: Host and Origin, then the path, the method, the token and the
 * role, in this order, before anything else of the request is read.
 */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

#include "taskgate/core/digest.h"
#include "taskgate/core/magic.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/members.h"

#include "cookies.h"
#include "known_senders.h"
#include "provider.h"
#include "query.h"
#include "refusals.h"
#include "reply.h"
#include "sessions.h"
#include "site.h"

/* ---- the operator of a request ---- */

struct authentication {
    struct operator_identity *who; /* one reference, the receiver's; NULL: refused */
    enum reply_error error;        /* of a refusal */
    const char *message;
};
typedef void (*authentication_callback)(void *context, const struct authentication *result);

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

/* Answers once, at once or on the loop later. The request outlives the answer; its exchange need
 * not. */
static void authentication_find(const struct request *request, authentication_callback callback,
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

struct route {
    const char *method;
    const char *path; /* "{id}" stands for one segment */
    request_handler handle;
    bool any_host;    /* probes come by pod address */
    bool is_open;     /* needs no role */
    enum route_id id; /* unless it is open */
};

#define ROUTE(method, path, viewer, approver, caller, auditor, handler)                            \
    {method, path, handler, .id = ROUTE_##handler},
#define OPEN_ROUTE(method, path, any_host, handler)                                                \
    {method, path, handler, any_host, .is_open = true},
static const struct route routes[] = {
#include "routes_table.h"
};
#undef ROUTE
#undef OPEN_ROUTE
#define ROUTE_COUNT (sizeof routes / sizeof *routes)

/* Of every other file of the page. */
static const struct route page_route = {"GET", "/", page_serve, .is_open = true};

static bool path_matches(struct str pattern, struct str path, struct str *id)
{
    bool more_pattern = true, more_path = true;
    while (more_pattern && more_path) {
        struct str wanted, segment;
        more_pattern = str_cut(pattern, '/', &wanted, &pattern);
        more_path = str_cut(path, '/', &segment, &path);
        if (str_equal(wanted, STR("{id}"))) {
            if (segment.length == 0)
                return false;
            *id = segment;
        } else if (!str_equal(wanted, segment)) {
            return false;
        }
    }
    return more_pattern == more_path;
}

static bool method_fits(const struct route *route, struct str method)
{
    if (str_equal(method, str_from(route->method)))
        return true;
    /* HEAD is GET without the body, but an event stream would never end. */
    return str_equal(method, STR("HEAD")) && str_equal(str_from(route->method), STR("GET")) &&
           route->handle != events_open;
}

/* Of a path's routes the one of the method, else the first. */
static const struct route *find_route(const struct http_exchange *exchange, struct str *id)
{
    const struct route *first = NULL;
    struct str path = http_path(exchange);
    for (size_t i = 0; i < ROUTE_COUNT; i++) {
        if (!path_matches(str_from(routes[i].path), path, id))
            continue;
        if (method_fits(&routes[i], http_method(exchange)))
            return &routes[i];
        first = first ? first : &routes[i];
    }
    return first ? first : page_has(path) ? &page_route : NULL;
}

static void refuse_method(struct http_exchange *exchange, const struct route *route)
{
    OWNED_BUFFER(methods);
    buffer_append_text(&methods, route->method);
    for (const struct route *other = route + 1;
         route != &page_route && other < routes + ROUTE_COUNT; other++) {
        if (str_equal(str_from(other->path), str_from(route->path)))
            buffer_append_format(&methods, ", %s", other->method);
    }
    buffer_append_char(&methods, '\0');
    reply_method_not_allowed(exchange, methods.bytes);
}

/* A token in a URL ends up in logs and histories; the answer says so. */
static bool has_token_in_query(struct str query)
{
    struct str name, value;
    while (query_next(&query, &name, &value)) {
        if (str_equal(name, STR("token")) || str_equal(name, STR("access_token")))
            return true;
    }
    return false;
}

/* Probes have no certificate. */
static bool any_client(const struct route *route)
{
    return route && (route->handle == probes_health || route->handle == probes_ready ||
                     route->handle == idle_wait);
}

/* On this machine a page of any site could have a name lead to the port, and read what it answers.
 * Nobody learns anything from /health. A browser says a Host; a balancer's probe may say none. */
static bool answers_any_host(const struct route *route, const struct http_exchange *exchange)
{
    return route && route->any_host &&
           (route->handle == probes_health || route->handle == idle_wait ||
            !http_is_loopback(exchange) || http_authority(exchange).length == 0);
}

/* ---- who asks ---- */

/* A request on its way to its handler; it outlives a client that leaves while the store is asked.
 */
struct admission {
    uint32_t magic;         /* ADMISSION_MAGIC while it lives */
    struct request request; /* its exchange is NULL once the client has gone */
    const struct route *route;
};
#define ADMISSION_MAGIC 0xad315510

static struct admission *admission_from(void *context)
{
    return MAGIC_CAST(struct admission, ADMISSION_MAGIC, context);
}

static void router_forget_exchange(void *context)
{
    struct admission *admission = admission_from(context);
    admission->request.exchange = NULL;
}

static void end_admission(struct admission *admission)
{
    operator_unref(admission->request.who);
    snapshot_unref(admission->request.snapshot);
    MAGIC_CLEAR(admission);
    free(admission);
}

/* A browser adds its cookie and its certificate to requests of any page. Programs have no cookie,
 * and may use a certificate as they are. */
static bool router_is_wanted(const struct request *request)
{
    struct str method = http_method(request->exchange);
    if (str_equal(method, STR("GET")) || str_equal(method, STR("HEAD")))
        return true;
    if (request->who->is_session)
        return site_is_own_page(request);
    return request->who->via != OPERATOR_VIA_CERTIFICATE || site_is_own_page(request) ||
           !site_is_browser(request->exchange);
}

static void router_on_found(void *context, const struct authentication *result)
{
    struct admission *admission = admission_from(context);
    struct request *request = &admission->request;
    request->who = result->who;
    if (request->exchange) {
        http_on_gone(request->exchange, NULL, NULL);
        if (result->who)
            known_senders_note(request->admin, request->exchange, result->who);
        if (!result->who)
            reply_error(request->exchange, result->error, result->message, NULL);
        else if (request->admin->closed)
            reply_error(request->exchange, REPLY_UNAVAILABLE, "the process ends", NULL);
        else if (!router_is_wanted(request))
            reply_error(request->exchange, REPLY_FORBIDDEN,
                        "a browser's request that changes something needs X-Taskgate: 1 and the "
                        "Origin of admin.public_url",
                        NULL);
        else if ((request->right = rights_of(request->who, admission->route->id)) == RIGHT_NONE)
            reply_error(request->exchange, REPLY_FORBIDDEN, rights_missing(admission->route->id),
                        NULL);
        else
            admission->route->handle(request);
    }
    end_admission(admission);
}

static void router_admit(const struct request *request, const struct route *route)
{
    if (route->is_open) {
        route->handle(request);
        return;
    }
    if (has_token_in_query(http_query(request->exchange))) {
        reply_error(request->exchange, REPLY_UNAUTHORIZED,
                    "a token is never taken from the URL; send \"Authorization: Bearer …\"", NULL);
        return;
    }
    struct admission *admission = memory_alloc(sizeof *admission);
    *admission = (struct admission){ADMISSION_MAGIC, *request, route};
    snapshot_ref(request->snapshot);
    http_on_gone(request->exchange, router_forget_exchange, admission);
    authentication_find(&admission->request, router_on_found, admission);
}

static void route_request(struct request *request)
{
    const struct route *route = find_route(request->exchange, &request->id);
    const struct config *config = request->snapshot->config;
    if (!any_client(route) && !client_certificate_suffices(request->exchange, config)) {
        reply_error(request->exchange, REPLY_FORBIDDEN,
                    "a client certificate is needed here; admin.tls.client_ca says of whom", NULL);
        return;
    }
    if (!site_check(request, answers_any_host(route, request->exchange)))
        return;
    if (!route)
        reply_error(request->exchange, REPLY_NOT_FOUND, "there is nothing at this path", NULL);
    else if (!method_fits(route, http_method(request->exchange)))
        refuse_method(request->exchange, route);
    else
        router_admit(request, route);
}

/* Their last connections are for these. */
static bool is_probe(const struct http_exchange *exchange)
{
    struct str id;
    const struct route *route = find_route(exchange, &id);
    return route && any_client(route) && route->handle != idle_wait;
}

void router_handle(struct http_exchange *exchange, void *context)
{
    struct admin *admin = admin_from(context);
    struct request request = {.admin = admin, .exchange = exchange, .snapshot = snapshot_current()};
    if (admin->closed)
        reply_error(exchange, REPLY_UNAVAILABLE, "the process ends", NULL);
    else if (http_is_in_reserve(exchange) && !is_probe(exchange))
        reply_error(exchange, REPLY_UNAVAILABLE, "all connections are in use", NULL);
    else if (request.snapshot)
        route_request(&request);
    else
        reply_error(exchange, REPLY_UNAVAILABLE, "no configuration is in force", NULL);
    snapshot_unref(request.snapshot);
}

/* ---- who one is ---- */

void whoami_get(const struct request *request)
{
    static const enum config_role roles[] = {ROLE_VIEWER, ROLE_APPROVER, ROLE_CALLER, ROLE_AUDITOR};
    const struct operator_identity *who = request->who;
    OWNED_BUFFER(body);
    buffer_append_char(&body, '{');
    json_add_text(&body, "name", who->name);
    json_add_text(&body, "person", who->person.name);
    json_add_key(&body, "groups");
    ballot_names_write(&body, &who->person.groups);
    json_add_key(&body, "roles");
    buffer_append_char(&body, '[');
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
        if ((who->roles & (unsigned)roles[i]) != 0)
            buffer_append_format(&body, "%s\"%s\"",
                                 str_ends_with(buffer_str(&body), STR("[")) ? "" : ",",
                                 config_role_name(roles[i]));
    }
    buffer_append_char(&body, ']');
    json_add_text(&body, "via", operator_via_name(who));
    buffer_append_char(&body, '}');
    reply_json(request->exchange, 200, &body);
}
