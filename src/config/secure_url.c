/* The addresses that may be called. */
#include <ctype.h>
#include <string.h>

#include "taskgate/config/secure_url.h"

static bool starts_with_ignore_case(struct str text, struct str prefix)
{
    return text.length >= prefix.length &&
           str_equal_ignore_case(str_slice(text.bytes, prefix.length), prefix);
}

bool secure_url_is_plain(struct str url)
{
    return starts_with_ignore_case(url, STR("http://"));
}

/* "127." and nothing but digits and dots: 127.example.com is somebody else. */
static bool is_loopback(struct str host)
{
    if (str_equal_ignore_case(host, STR("localhost")) || str_equal(host, STR("[::1]")))
        return true;
    if (!str_starts_with(host, STR("127.")))
        return false;
    unsigned dots = 0;
    for (size_t i = 0; i < host.length; i++) {
        if (host.bytes[i] == '.')
            dots++;
        else if (!isdigit((unsigned char)host.bytes[i]))
            return false;
    }
    return dots == 3;
}

/* Without the port. */
static struct str host_of(struct str authority)
{
    size_t end = 0;
    if (authority.length && authority.bytes[0] == '[') {
        while (end < authority.length && authority.bytes[end] != ']')
            end++;
        return str_slice(authority.bytes, end < authority.length ? end + 1 : 0);
    }
    while (end < authority.length && authority.bytes[end] != ':')
        end++;
    return str_slice(authority.bytes, end);
}

bool secure_url_check(struct str url, struct error *error)
{
    struct str https = STR("https://"), http = STR("http://");
    bool is_plain = secure_url_is_plain(url);
    if (!is_plain && !starts_with_ignore_case(url, https))
        return error_set(error, "the URL does not begin with https://");
    for (size_t i = 0; i < url.length; i++) {
        unsigned char c = (unsigned char)url.bytes[i];
        if (c <= 0x20 || c >= 0x7f || c == '\\' || c == '"' || c == '#')
            return error_set(error, "the URL has a character that does not belong there");
    }
    size_t start = is_plain ? http.length : https.length, end = start;
    while (end < url.length && url.bytes[end] != '/' && url.bytes[end] != '?')
        end++;
    struct str authority = str_slice(url.bytes + start, end - start), host = host_of(authority);
    if (!host.length)
        return error_set(error, "the URL has no host");
    if (memchr(authority.bytes, '@', authority.length))
        return error_set(error, "the URL has a user in it");
    if (is_plain && !is_loopback(host))
        return error_set(error, "plain http is for this machine alone; the URL needs https");
    return true;
}
