/*
 * Reading a plain http URL. An unusual URL is not read: libcurl knows what to make of it.
 */
#include "http1_url.h"

#include <string.h>

static bool is_host_character(char c, bool is_bracketed)
{
    char lower = (char)(c | 0x20);
    if (c >= '0' && c <= '9')
        return true;
    if (is_bracketed)
        return (lower >= 'a' && lower <= 'f') || c == ':' || c == '.';
    return (lower >= 'a' && lower <= 'z') || c == '.' || c == '-' || c == '_';
}

static const char *read_host(struct http1_url *url, const char *at)
{
    bool is_bracketed = *at == '[';
    if (is_bracketed)
        at++;
    url->host.bytes = at;
    while (is_host_character(*at, is_bracketed))
        at++;
    url->host.length = (size_t)(at - url->host.bytes);
    if (is_bracketed && *at++ != ']')
        return NULL;
    return url->host.length > 0 && url->host.length < 256 ? at : NULL;
}

static const char *read_port(struct http1_url *url, const char *at)
{
    url->port = 80;
    if (*at != ':')
        return at;
    const char *digits = ++at;
    unsigned long port = 0;
    while (*at >= '0' && *at <= '9' && at - digits < 5)
        port = port * 10 + (unsigned long)(*at++ - '0');
    if (*digits == '0' || port == 0 || port > 65535)
        return NULL;
    url->port = (uint16_t)port;
    return at;
}

bool http1_url_read(struct http1_url *url, const char *text)
{
    static const char scheme[] = "http://";
    const size_t scheme_length = sizeof(scheme) - 1;
    if (text == NULL || strncmp(text, scheme, scheme_length) != 0)
        return false;

    const char *authority = text + scheme_length;
    const char *host_end = read_host(url, authority);
    const char *at = host_end != NULL ? read_port(url, host_end) : NULL;
    if (at == NULL || (*at != '/' && *at != '\0'))
        return false;
    url->authority = str_slice(authority, (size_t)(at - authority));
    url->host_line =
        url->port == 80 ? str_slice(authority, (size_t)(host_end - authority)) : url->authority;

    url->target.bytes = at;
    while (*at > ' ' && *at < 0x7f && *at != '#')
        at++;
    url->target.length = (size_t)(at - url->target.bytes);
    return *at == '\0';
}
