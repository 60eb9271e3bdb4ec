/* Host and Origin checks. */
#include "taskgate/http/guard.h"

#include <arpa/inet.h>
#include <string.h>

/* The host part of "host:port", "[v6]:port" or "host"; false when the port is no number. */
static bool split_port(struct str authority, struct str *host)
{
    struct str port = STR_EMPTY;
    uint64_t number;
    if (str_starts_with(authority, STR("["))) {
        struct str rest;
        if (!str_cut(authority, ']', host, &rest))
            return false;
        host->length++; /* with its bracket */
        if (rest.length == 0)
            return true;
        if (rest.bytes[0] != ':')
            return false;
        port = str_slice(rest.bytes + 1, rest.length - 1);
    } else if (!str_cut(authority, ':', host, &port)) {
        return true;
    }
    return str_to_u64(port, &number) && number <= 65535;
}

bool http_guard_is_loopback_name(struct str authority)
{
    struct str host;
    struct in_addr address;
    char text[INET_ADDRSTRLEN];
    if (!split_port(authority, &host))
        return false;
    if (str_equal_ignore_case(host, STR("localhost")) || str_equal(host, STR("[::1]")))
        return true;
    if (host.length == 0 || host.length >= sizeof text || memchr(host.bytes, '\0', host.length))
        return false;
    memcpy(text, host.bytes, host.length);
    text[host.length] = '\0';
    return inet_pton(AF_INET, text, &address) == 1 && ntohl(address.s_addr) >> 24 == 127;
}

bool http_guard_allows_host(const struct http_exchange *exchange, char *const *allowed,
                            size_t allowed_count)
{
    struct str authority = http_authority(exchange), host;
    if (http_is_loopback(exchange) ? http_guard_is_loopback_name(authority) : allowed_count == 0)
        return true;
    if (!split_port(authority, &host))
        return false;
    for (size_t i = 0; i < allowed_count; i++) {
        struct str name = str_from(allowed[i]);
        if (str_equal_ignore_case(name, host) || str_equal_ignore_case(name, authority))
            return true;
    }
    return false;
}

static bool is_allowed_origin(struct str origin, char *const *allowed, size_t allowed_count)
{
    for (size_t i = 0; i < allowed_count; i++) {
        if (str_equal_ignore_case(origin, str_from(allowed[i])))
            return true;
    }
    struct str scheme, rest;
    if (!str_cut(origin, ':', &scheme, &rest) || !str_starts_with(rest, STR("//")))
        return false;
    bool is_web =
        str_equal_ignore_case(scheme, STR("http")) || str_equal_ignore_case(scheme, STR("https"));
    return is_web && http_guard_is_loopback_name(str_slice(rest.bytes + 2, rest.length - 2));
}

bool http_guard_allows_origin(const struct http_exchange *exchange, char *const *allowed,
                              size_t allowed_count)
{
    if (http_header_known(exchange, HTTP_NAME_ORIGIN).bytes == NULL)
        return true;
    size_t count = http_header_count(exchange);
    for (size_t i = 0; i < count; i++) {
        struct http_header header = http_header_at(exchange, i);
        if (header.known == HTTP_NAME_ORIGIN &&
            !is_allowed_origin(header.value, allowed, allowed_count))
            return false;
    }
    return true;
}
