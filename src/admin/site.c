/* Host and Origin, against the configuration. */
#include "site.h"

#include "taskgate/http/guard.h"

#include "reply.h"

bool site_is_https(const struct config *config)
{
    return str_starts_with(str_from(config->public_url), STR("https://"));
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

bool site_is_own_page(const struct request *request)
{
    const struct config *config = request->snapshot->config;
    struct str own = public_origin(config);
    return str_equal(http_header(request->exchange, "x-taskgate"), STR("1")) && own.length > 0 &&
           str_equal_ignore_case(http_header(request->exchange, "origin"), own);
}

/* Fetch Standard: every POST of a page has an Origin, and a Sec-Fetch-Site besides over https. */
bool site_is_browser(const struct http_exchange *exchange)
{
    static const char *const marks[] = {"origin", "sec-fetch-site", "referer"};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        if (http_header(exchange, marks[i]).bytes)
            return true;
    }
    return false;
}

bool site_check(const struct request *request, bool any_host)
{
    const struct config *config = request->snapshot->config;
    if (!any_host && !is_public_host(request->exchange, config) &&
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
