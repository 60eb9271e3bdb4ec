/* Host and Origin against loopback names and the configured lists. */
#include "taskgate/gateway/access.h"

static bool is_port(struct str text)
{
    uint64_t port;
    return text.length > 0 && text.length <= 5 && str_to_u64(text, &port) && port <= 65535;
}

/* Splits "name", "name:port", "[v6]" or "[v6]:port"; false when it is none of these. */
static bool split_host(struct str host, struct str *name, struct str *port)
{
    *port = STR_EMPTY;
    if (host.length > 0 && host.bytes[0] == '[') {
        struct str rest;
        if (!str_cut(host, ']', name, &rest))
            return false;
        name->length++; /* with its bracket */
        if (rest.length == 0)
            return true;
        *port = str_slice(rest.bytes + 1, rest.length - 1);
        return rest.bytes[0] == ':' && is_port(*port);
    }
    return !str_cut(host, ':', name, port) ? name->length > 0 : name->length > 0 && is_port(*port);
}

/* 127.0.0.0/8, as four decimal numbers. */
static bool is_loopback_v4(struct str name)
{
    struct str part;
    for (int i = 0; i < 4; i++) {
        uint64_t number;
        bool more = str_cut(name, '.', &part, &name);
        if (more != (i < 3) || part.length > 3 || !str_to_u64(part, &number) || number > 255)
            return false;
        if (i == 0 && number != 127)
            return false;
    }
    return true;
}

static bool is_loopback_name(struct str name)
{
    return str_equal_ignore_case(name, STR("localhost")) || str_equal(name, STR("[::1]")) ||
           is_loopback_v4(name);
}

static bool is_listed(struct str host, struct str name, const struct config_strings *allowed)
{
    for (size_t i = 0; i < allowed->count; i++) {
        struct str entry = str_from(allowed->items[i]);
        if (str_equal_ignore_case(entry, host) || str_equal_ignore_case(entry, name))
            return true;
    }
    return false;
}

bool access_host_allowed(struct str host, bool is_loopback, const struct config_strings *allowed)
{
    struct str name, port;
    if (!is_loopback && allowed->count == 0)
        return true;
    if (!split_host(host, &name, &port))
        return false;
    return (is_loopback && is_loopback_name(name)) || is_listed(host, name, allowed);
}

bool access_origin_allowed(struct str origin, const struct config_strings *allowed)
{
    static const struct str schemes[] = {{"http://", 7}, {"https://", 8}};
    struct str name, port;
    if (!origin.bytes)
        return true;
    for (size_t i = 0; i < allowed->count; i++) {
        if (str_equal_ignore_case(str_from(allowed->items[i]), origin))
            return true;
    }
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++) {
        struct str scheme = schemes[i];
        if (!str_starts_with(origin, scheme))
            continue;
        struct str host = str_slice(origin.bytes + scheme.length, origin.length - scheme.length);
        return split_host(host, &name, &port) && is_loopback_name(name);
    }
    return false;
}
