/*
 * Headers, and the names that the gateway knows: a name is looked up once, where it is read, and is
 * a number from then on. Any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "taskgate/core/str.h"

/* The treatment of a header of that name. */
enum {
    HTTP_NAME_HOP_BY_HOP = 1,  /* belongs to one connection (RFC 9110 §7.6.1): not carried over */
    HTTP_NAME_FRAMES = 2,      /* of a response: the HTTP server's own to send */
    HTTP_NAME_NOT_SENT_UP = 4, /* of a request to a server: the HTTP client's own, or unwanted */
    HTTP_NAME_SINGLE = 8,      /* servers differ in which of two they take: refused when twice */
    HTTP_NAME_END_TO_END = 16, /* the gateway goes by it: Connection does not take it away */
    HTTP_NAME_OF_SESSION = 32, /* of MCP up to 2025-11-25: means nothing in a request after that */
    HTTP_NAME_MIRRORS_BODY =
        64, /* of MCP from 2026-07-28: means nothing in a request before that */
};

enum http_name {
    HTTP_NAME_UNSEEN, /* not looked up yet */
    HTTP_NAME_OTHER,
    HTTP_NAME_PROXY_OTHER, /* "proxy-" and something that has no row */
    HTTP_NAME_MCP_PARAM,   /* "mcp-param-" and something */
#define HTTP_NAME_ROW(symbol, text, flags) HTTP_NAME_##symbol,
#include "taskgate/http/names_table.h"
#undef HTTP_NAME_ROW
    HTTP_NAME_COUNT
};

struct http_header {
    struct str name; /* lower case where it was read, any case where it is written */
    struct str value;
    uint8_t known; /* enum http_name */
    bool is_clean; /* a parser has made sure: no CR, LF or NUL in name and value */
};

/* Of a name in lower case; never HTTP_NAME_UNSEEN. */
enum http_name http_name_find(struct str name);
/* The same of a name in any case. */
enum http_name http_name_find_any_case(struct str name);
/* Of a header; looked up only where it has not been. */
static inline enum http_name http_name_of(const struct http_header *header)
{
    return header->known != HTTP_NAME_UNSEEN ? (enum http_name)header->known
                                             : http_name_find_any_case(header->name);
}
/* Whether the name has a row in the table. */
static inline bool http_name_has_row(enum http_name name)
{
    return name > HTTP_NAME_MCP_PARAM;
}
/* The name's text; NULL for those without a row. */
const char *http_name_text(enum http_name name);
/* HTTP_NAME_HOP_BY_HOP and so on, of the table's row. */
unsigned http_name_flags(enum http_name name);
