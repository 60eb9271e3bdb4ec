/* The table of header names, as lookups. */
#include "taskgate/http/names.h"

#include <stddef.h>
#include <string.h>

#define LONGEST_NAME sizeof("mcp-protocol-version")

_Static_assert(HTTP_NAME_COUNT <= UINT8_MAX, "a header has one byte for its name");

#define HTTP_NAME_ROW(symbol, text, flags)                                                         \
    _Static_assert(sizeof(text) <= LONGEST_NAME, "longer than LONGEST_NAME");
#include "taskgate/http/names_table.h"
#undef HTTP_NAME_ROW

static const char *const texts[HTTP_NAME_COUNT] = {
#define HTTP_NAME_ROW(symbol, text, flags) [HTTP_NAME_##symbol] = (text),
#include "taskgate/http/names_table.h"
#undef HTTP_NAME_ROW
};

static const uint8_t flags_of[HTTP_NAME_COUNT] = {
    [HTTP_NAME_PROXY_OTHER] = HTTP_NAME_NOT_SENT_UP,
    [HTTP_NAME_MCP_PARAM] = HTTP_NAME_MIRRORS_BODY | HTTP_NAME_END_TO_END,
#define HTTP_NAME_ROW(symbol, text, flags) [HTTP_NAME_##symbol] = (flags),
#include "taskgate/http/names_table.h"
#undef HTTP_NAME_ROW
};

enum http_name http_name_find(struct str name)
{
    /* Lengths and texts are constants here: the compiler compares words. */
#define HTTP_NAME_ROW(symbol, text, flags)                                                         \
    if (name.length == sizeof(text) - 1 && memcmp(name.bytes, text, sizeof(text) - 1) == 0)        \
        return HTTP_NAME_##symbol;
#include "taskgate/http/names_table.h"
#undef HTTP_NAME_ROW
    if (str_starts_with(name, STR("mcp-param-")))
        return HTTP_NAME_MCP_PARAM;
    return str_starts_with(name, STR("proxy-")) ? HTTP_NAME_PROXY_OTHER : HTTP_NAME_OTHER;
}

enum http_name http_name_find_any_case(struct str name)
{
    /* Only the beginning of a longer name matters. */
    char lower[LONGEST_NAME];
    size_t length = name.length < sizeof(lower) ? name.length : sizeof(lower);
    for (size_t i = 0; i < length; i++) {
        char c = name.bytes[i];
        lower[i] = (char)(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
    }
    return http_name_find(str_slice(lower, length));
}

const char *http_name_text(enum http_name name)
{
    return texts[name];
}

unsigned http_name_flags(enum http_name name)
{
    return flags_of[name];
}
