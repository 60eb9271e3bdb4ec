/* Filtering of headers between the two sides. */
#include "headers.h"

#include <stdlib.h>
#include <string.h>

#include "taskgate/core/memory.h"

/* Lower case. Framing and connection management belong to each hop. */
static const struct str hop_by_hop[] = {
    STR("connection"),
    STR("keep-alive"),
    STR("proxy-authenticate"),
    STR("te"),
    STR("trailer"),
    STR("proxy-authorization"),
    STR("trailers"),
    STR("transfer-encoding"),
    STR("proxy-connection"),
    STR("upgrade"),
    STR("content-length"),
    STR("http2-settings"),
    STR("expect"),
    STR("host"),
};

void headers_init(struct headers *headers, bool owns)
{
    *headers = (struct headers){.owns = owns};
}

void headers_finish(struct headers *headers)
{
    for (size_t i = 0; headers->owns && i < headers->count; i++)
        free((char *)headers->items[i].name.bytes);
    free(headers->items);
    headers_init(headers, headers->owns);
}

/* Name and value in one block, which the name's pointer frees. */
static struct http_header copy(struct str name, struct str value)
{
    char *block = memory_alloc(name.length + value.length + 1);
    if (name.length > 0)
        memcpy(block, name.bytes, name.length);
    if (value.length > 0)
        memcpy(block + name.length, value.bytes, value.length);
    return (struct http_header){str_slice(block, name.length),
                                str_slice(block + name.length, value.length)};
}

void headers_add(struct headers *headers, struct str name, struct str value)
{
    if (headers->count == headers->capacity) {
        headers->capacity = headers->capacity ? headers->capacity * 2 : 16;
        headers->items =
            memory_grow_array(headers->items, headers->capacity, sizeof *headers->items);
    }
    headers->items[headers->count++] =
        headers->owns ? copy(name, value) : (struct http_header){name, value};
}

void headers_set(struct headers *headers, struct str name, struct str value)
{
    size_t kept = 0;
    for (size_t i = 0; i < headers->count; i++) {
        struct http_header *item = &headers->items[i];
        if (!str_equal_ignore_case(item->name, name)) {
            headers->items[kept++] = *item;
        } else if (headers->owns) {
            free((char *)item->name.bytes);
        }
    }
    headers->count = kept;
    headers_add(headers, name, value);
}

struct str headers_find(const struct headers *headers, const char *name)
{
    for (size_t i = 0; i < headers->count; i++) {
        if (str_equal_ignore_case(headers->items[i].name, str_from(name)))
            return headers->items[i].value;
    }
    return STR_EMPTY;
}

bool headers_name_event_stream(const struct headers *headers)
{
    struct str type = headers_find(headers, "content-type");
    struct str media, parameters;
    str_cut(type, ';', &media, &parameters);
    return str_equal_ignore_case(str_trim(media), STR("text/event-stream"));
}

static bool is_hop_by_hop(struct str name)
{
    for (size_t i = 0; i < sizeof hop_by_hop / sizeof *hop_by_hop; i++) {
        if (name.length == hop_by_hop[i].length && str_equal_ignore_case(name, hop_by_hop[i]))
            return true;
    }
    return false;
}

/* Lower case. Upstream must see what the gateway has gone by, so Connection takes none of them
 * away. */
static const struct str end_to_end[] = {
    STR("authorization"),
    STR("content-type"),
    STR("mcp-session-id"),
    STR("mcp-protocol-version"),
};

/* Whether the comma-separated list of the Connection header names it. */
static bool is_named_by(struct str connection, struct str name)
{
    if (connection.length == 0)
        return false;
    for (size_t i = 0; i < sizeof end_to_end / sizeof *end_to_end; i++) {
        if (str_equal_ignore_case(name, end_to_end[i]))
            return false;
    }
    while (connection.length > 0) {
        struct str token;
        str_cut(connection, ',', &token, &connection);
        if (str_equal_ignore_case(str_trim(token), name))
            return true;
    }
    return false;
}

void headers_from_request(struct headers *headers, const struct http_exchange *exchange,
                          const struct config_source *source)
{
    struct str connection = http_header(exchange, "connection");
    size_t count = http_header_count(exchange);
    for (size_t i = 0; i < count; i++) {
        struct http_header item = http_header_at(exchange, i);
        if (is_hop_by_hop(item.name) || is_named_by(connection, item.name) ||
            str_equal_ignore_case(item.name, STR("accept-encoding")))
            continue;
        headers_add(headers, item.name, item.value);
    }
    for (size_t i = 0; i < source->header_count; i++)
        headers_set(headers, str_from(source->headers[i].name), str_from(source->headers[i].value));
}

void headers_from_response(struct headers *headers, const struct http_header *items, size_t count)
{
    struct str connection = STR_EMPTY;
    for (size_t i = 0; i < count; i++) {
        if (str_equal_ignore_case(items[i].name, STR("connection")))
            connection = items[i].value;
    }
    for (size_t i = 0; i < count; i++) {
        if (!is_hop_by_hop(items[i].name) && !is_named_by(connection, items[i].name))
            headers_add(headers, items[i].name, items[i].value);
    }
}
