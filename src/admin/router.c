/*
 * From a request to its handler: Host and Origin, then the path, the method, the token and the
 * role, in this order, before anything else of the request is read.
 */
#include "internal.h"

#include <stdlib.h>

#include "taskgate/core/memory.h"
#include "taskgate/http/guard.h"

#include "authentication.h"
#include "reply.h"

/* The roles for a route; a token with only `caller` sees its own tasks. */
enum need {
    NEED_NOTHING,
    NEED_VIEWER = ROLE_VIEWER,
    NEED_APPROVER = ROLE_APPROVER,
    NEED_CALLER = ROLE_CALLER,
    NEED_ANY_ROLE = ROLE_VIEWER | ROLE_APPROVER | ROLE_CALLER | ROLE_AUDITOR,
    NEED_VIEWER_OR_CALLER = ROLE_VIEWER | ROLE_CALLER,
    NEED_APPROVER_OR_CALLER = ROLE_APPROVER | ROLE_CALLER,
};

struct route {
    const char *method;
    const char *path; /* "{id}" stands for one segment */
    enum need need;
    bool any_host; /* probes come by pod address */
    request_handler handle;
};

static const struct route routes[] = {
    {"GET", "/health", NEED_NOTHING, true, probes_health},
    {"GET", "/ready", NEED_NOTHING, true, probes_ready},
    {"GET", "/metrics", NEED_NOTHING, true, probes_metrics},
    {"GET", "/", NEED_NOTHING, false, page_serve},
    {"GET", "/page.css", NEED_NOTHING, false, page_serve},
    {"GET", "/page.js", NEED_NOTHING, false, page_serve},
    {"GET", "/api.js", NEED_NOTHING, false, page_serve},
    {"GET", "/card.js", NEED_NOTHING, false, page_serve},
    {"GET", "/json.js", NEED_NOTHING, false, page_serve},
    {"GET", "/icon.svg", NEED_NOTHING, false, page_serve},
    {"GET", "/login", NEED_NOTHING, false, sign_in_begin},
    {"GET", "/login/callback", NEED_NOTHING, false, sign_in_return},
    {"POST", "/logout", NEED_NOTHING, false, sign_out},
    {"GET", "/api/v1/sign-in", NEED_NOTHING, false, sign_in_describe},
    {"GET", "/api/v1/whoami", NEED_ANY_ROLE, false, whoami_get},
    {"POST", "/api/v1/calls", NEED_CALLER, false, calls_create},
    {"GET", "/api/v1/tasks", NEED_VIEWER, false, tasks_list},
    {"GET", "/api/v1/tasks/{id}", NEED_VIEWER_OR_CALLER, false, tasks_get},
    {"GET", "/api/v1/tasks/{id}/result", NEED_VIEWER_OR_CALLER, false, results_get},
    {"POST", "/api/v1/tasks/{id}/approve", NEED_APPROVER, false, decisions_approve},
    {"POST", "/api/v1/tasks/{id}/reject", NEED_APPROVER, false, decisions_reject},
    {"POST", "/api/v1/tasks/{id}/cancel", NEED_APPROVER_OR_CALLER, false, decisions_cancel},
    {"GET", "/api/v1/events", NEED_VIEWER, false, events_open},
};
#define ROUTE_COUNT (sizeof routes / sizeof *routes)

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

static const struct route *find_route(struct str path, struct str *id)
{
    for (size_t i = 0; i < ROUTE_COUNT; i++) {
        if (path_matches(str_from(routes[i].path), path, id))
            return &routes[i];
    }
    return NULL;
}

static bool method_fits(const struct route *route, struct str method)
{
    if (str_equal(method, str_from(route->method)))
        return true;
    /* HEAD is GET without the body, but an event stream would never end. */
    return str_equal(method, STR("HEAD")) && str_equal(str_from(route->method), STR("GET")) &&
           route->handle != events_open;
}

/* A token in a URL ends up in logs and histories; the answer says so. */
static bool has_token_in_query(struct str query)
{
    struct str parameter, name, value;
    while (query.length > 0) {
        str_cut(query, '&', &parameter, &query);
        str_cut(parameter, '=', &name, &value);
        if (str_equal(name, STR("token")) || str_equal(name, STR("access_token")))
            return true;
    }
    return false;
}

/* Probes have no certificate. */
static bool any_client(const struct route *route)
{
    return route && (route->handle == probes_health || route->handle == probes_ready);
}

/* OpenSSL lets a client without a certificate in, and none with a certificate of somebody else. */
static bool check_certificate(const struct request *request, const struct route *route)
{
    if (!request->snapshot->config->admin_tls.client_ca || any_client(route) ||
        http_client_certificate(request->exchange).bytes != NULL)
        return true;
    reply_error(request->exchange, REPLY_FORBIDDEN,
                "a client certificate is needed here; admin.tls.client_ca says of whom", NULL);
    return false;
}

/* "https://gate.example" of a public_url that may go on with a path. */
static struct str public_origin(const struct config *config)
{
    struct str url = str_from(config->public_url), scheme, rest, authority, path;
    if (!str_cut(url, ':', &scheme, &rest))
        return STR_EMPTY;
    str_cut(str_slice(rest.bytes + 2, rest.length - 2), '/', &authority, &path);
    return str_slice(url.bytes, (size_t)(authority.bytes + authority.length - url.bytes));
}

static bool is_public_host(const struct http_exchange *exchange, const struct config *config)
{
    struct str origin = public_origin(config), scheme, rest;
    return str_cut(origin, ':', &scheme, &rest) &&
           str_equal_ignore_case(http_authority(exchange),
                                 str_slice(rest.bytes + 2, rest.length - 2));
}

static bool is_good_origin(const struct http_exchange *exchange, const struct config *config)
{
    struct str origin = http_header(exchange, "origin"), own = public_origin(config);
    return (own.length > 0 && str_equal_ignore_case(origin, own)) ||
           http_guard_allows_origin(exchange, config->admin_allowed_origins.items,
                                    config->admin_allowed_origins.count);
}

bool router_is_from_own_page(const struct request *request)
{
    const struct config *config = request->snapshot->config;
    struct str own = public_origin(config);
    return str_equal(http_header(request->exchange, "x-taskgate"), STR("1")) && own.length > 0 &&
           str_equal_ignore_case(http_header(request->exchange, "origin"), own);
}

static bool check_site(const struct request *request, const struct route *route)
{
    const struct config *config = request->snapshot->config;
    bool exempt = route && route->any_host;
    if (!exempt && !is_public_host(request->exchange, config) &&
        !http_guard_allows_host(request->exchange, config->admin_allowed_hosts.items,
                                config->admin_allowed_hosts.count)) {
        reply_error(request->exchange, REPLY_FORBIDDEN,
                    "this Host is not served here; use a loopback name, or list it in "
                    "admin.allowed_hosts",
                    NULL);
        return false;
    }
    if (!is_good_origin(request->exchange, config)) {
        reply_error(request->exchange, REPLY_FORBIDDEN,
                    "this Origin may not use the admin endpoint; list it in "
                    "admin.allowed_origins",
                    NULL);
        return false;
    }
    return true;
}

static const char *what_is_missing(enum need need)
{
    if (need == NEED_CALLER)
        return "this token may not call: it lacks the role caller";
    if (need == NEED_APPROVER || need == NEED_APPROVER_OR_CALLER)
        return "this token may not decide: it lacks the role approver";
    return "this token may not read: it lacks the role viewer";
}

/* ---- who asks ---- */

/* A request on its way to its handler; it outlives a client that leaves while the store is asked.
 */
struct admission {
    struct request request; /* its exchange is NULL once the client has gone */
    const struct route *route;
};

static void forget_exchange(void *context)
{
    struct admission *admission = context;
    admission->request.exchange = NULL;
}

static void end_admission(struct admission *admission)
{
    operator_unref(admission->request.who);
    snapshot_unref(admission->request.snapshot);
    free(admission);
}

/* A browser adds the cookie to requests of any page; these two it lets our own pages say alone. */
static bool is_of_our_page(const struct request *request)
{
    struct str method = http_method(request->exchange);
    return str_equal(method, STR("GET")) || str_equal(method, STR("HEAD")) ||
           router_is_from_own_page(request);
}

static void on_found(void *context, const struct authentication *result)
{
    struct admission *admission = context;
    struct request *request = &admission->request;
    request->who = result->who;
    if (request->exchange) {
        http_on_gone(request->exchange, NULL, NULL);
        if (!result->who)
            reply_error(request->exchange, result->error, result->message, NULL);
        else if (request->admin->closed)
            reply_error(request->exchange, REPLY_UNAVAILABLE, "the process ends", NULL);
        else if (result->who->is_session && !is_of_our_page(request))
            reply_error(request->exchange, REPLY_FORBIDDEN,
                        "a request by cookie that changes something needs X-Taskgate: 1 and the "
                        "Origin of admin.public_url",
                        NULL);
        else if (!operator_may(request->who, (unsigned)admission->route->need))
            reply_error(request->exchange, REPLY_FORBIDDEN, what_is_missing(admission->route->need),
                        NULL);
        else
            admission->route->handle(request);
    }
    end_admission(admission);
}

static void admit(const struct request *request, const struct route *route)
{
    if (route->need == NEED_NOTHING) {
        route->handle(request);
        return;
    }
    if (has_token_in_query(http_query(request->exchange))) {
        reply_error(request->exchange, REPLY_UNAUTHORIZED,
                    "a token is never taken from the URL; send \"Authorization: Bearer …\"", NULL);
        return;
    }
    struct admission *admission = memory_alloc(sizeof *admission);
    *admission = (struct admission){*request, route};
    snapshot_ref(request->snapshot);
    http_on_gone(request->exchange, forget_exchange, admission);
    authentication_find(&admission->request, on_found, admission);
}

static void route_request(struct request *request)
{
    const struct route *route = find_route(http_path(request->exchange), &request->id);
    if (!check_certificate(request, route) || !check_site(request, route))
        return;
    if (!route)
        reply_error(request->exchange, REPLY_NOT_FOUND, "there is nothing at this path", NULL);
    else if (!method_fits(route, http_method(request->exchange)))
        reply_method_not_allowed(request->exchange, route->method);
    else
        admit(request, route);
}

void router_handle(struct http_exchange *exchange, void *context)
{
    struct admin *admin = context;
    struct request request = {.admin = admin, .exchange = exchange, .snapshot = snapshot_current()};
    if (admin->closed)
        reply_error(exchange, REPLY_UNAVAILABLE, "the process ends", NULL);
    else if (request.snapshot)
        route_request(&request);
    else
        reply_error(exchange, REPLY_UNAVAILABLE, "no configuration is in force", NULL);
    snapshot_unref(request.snapshot);
}
