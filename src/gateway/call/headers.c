/* Filtering of headers between the two sides. */
#include "headers.h"

#include <stdlib.h>
#include <string.h>

#include "authorization.h"
#include "call.h"
#include "taskgate/core/map.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/mcp/mirrored_header.h"

void headers_init(struct headers *headers, bool owns)
{
    *headers = (struct headers){.owns = owns};
}

void headers_init_in(struct headers *headers, struct http_header *room, size_t capacity)
{
    *headers = (struct headers){.items = room, .capacity = capacity, .room = room};
}

void headers_finish(struct headers *headers)
{
    for (size_t i = 0; headers->owns && i < headers->count; i++)
        free((char *)headers->items[i].name.bytes);
    if (headers->items != headers->room)
        free(headers->items);
    free(headers->owner);
    headers_init(headers, headers->owns);
}

/* Name and value in one block, which the name's pointer frees. */
static struct http_header headers_copy(const struct http_header *header)
{
    struct str name = header->name, value = header->value;
    struct http_header copied = *header;
    char *block = memory_alloc(name.length + value.length + 1);
    if (name.length > 0)
        memcpy(block, name.bytes, name.length);
    if (value.length > 0)
        memcpy(block + name.length, value.bytes, value.length);
    copied.name = str_slice(block, name.length);
    copied.value = str_slice(block + name.length, value.length);
    return copied;
}

static void grow(struct headers *headers)
{
    size_t capacity = headers->capacity ? headers->capacity * 2 : 16;
    struct http_header *kept = headers->items;
    bool is_room = kept && kept == headers->room;
    headers->items = memory_grow_array(is_room ? NULL : kept, capacity, sizeof *headers->items);
    if (is_room)
        memcpy(headers->items, kept, headers->count * sizeof *kept);
    headers->capacity = capacity;
}

static inline void add(struct headers *headers, const struct http_header *header)
{
    if (headers->count == headers->capacity)
        grow(headers);
    struct http_header *item = &headers->items[headers->count++];
    if (headers->owns)
        *item = headers_copy(header);
    else
        *item = *header;
}

void headers_add(struct headers *headers, struct str name, struct str value)
{
    add(headers, &(struct http_header){.name = name, .value = value});
}

void headers_add_all(struct headers *headers, const struct headers *from)
{
    for (size_t i = 0; i < from->count; i++)
        add(headers, &from->items[i]);
    if (!headers->owner)
        headers->owner = memory_copy_text(from->owner);
}

void headers_fit(struct headers *headers)
{
    if (headers->items == headers->room || headers->count == headers->capacity)
        return;
    headers->items = memory_grow_array(headers->items, headers->count, sizeof *headers->items);
    headers->capacity = headers->count;
}

/* Returns where the next header goes that is kept. */
static size_t headers_keep(struct headers *headers, size_t at, size_t kept)
{
    headers->items[kept] = headers->items[at];
    return kept + 1;
}

static void drop(const struct headers *headers, size_t at)
{
    if (headers->owns)
        free((char *)headers->items[at].name.bytes);
}

/* In lower case, and with "-" for "_", which many servers take for one. */
static char fold_letter(char c)
{
    if (c == '_')
        return '-';
    if (c >= 'A' && c <= 'Z')
        return (char)(c | 0x20);
    return c;
}

static bool are_one_name(struct str left, struct str right)
{
    if (left.length != right.length)
        return false;
    for (size_t i = 0; i < left.length; i++) {
        if (fold_letter(left.bytes[i]) != fold_letter(right.bytes[i]))
            return false;
    }
    return true;
}

void headers_take_out(struct headers *headers, struct str name)
{
    size_t kept = 0;
    for (size_t i = 0; i < headers->count; i++) {
        if (are_one_name(headers->items[i].name, name))
            drop(headers, i);
        else
            kept = headers_keep(headers, i, kept);
    }
    headers->count = kept;
}

void headers_remove(struct headers *headers, enum http_name name)
{
    size_t kept = 0;
    for (size_t i = 0; i < headers->count; i++) {
        if (http_name_of(&headers->items[i]) == name)
            drop(headers, i);
        else if (kept == i)
            kept++;
        else
            kept = headers_keep(headers, i, kept);
    }
    headers->count = kept;
}

void headers_drop(struct headers *headers, unsigned flags)
{
    size_t kept = 0;
    for (size_t i = 0; i < headers->count; i++) {
        struct http_header *item = &headers->items[i];
        if (!(http_name_flags(http_name_of(item)) & flags))
            headers->items[kept++] = *item;
        else if (headers->owns)
            free((char *)item->name.bytes);
    }
    headers->count = kept;
}

void headers_set(struct headers *headers, struct str name, struct str value)
{
    headers_take_out(headers, name);
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

struct str headers_known(const struct headers *headers, enum http_name name)
{
    for (size_t i = 0; i < headers->count; i++) {
        if (http_name_of(&headers->items[i]) == name)
            return headers->items[i].value;
    }
    return STR_EMPTY;
}

bool headers_name_event_stream(const struct headers *headers)
{
    struct str type = headers_known(headers, HTTP_NAME_CONTENT_TYPE);
    struct str media, parameters;
    if (str_equal(type, STR("application/json")))
        return false; /* as nearly all are */
    str_cut(type, ';', &media, &parameters);
    return str_equal_ignore_case(str_trim(media), STR("text/event-stream"));
}

const struct http_header headers_of_stream[HEADERS_OF_STREAM] = {
    {{"content-type", 12}, {"text/event-stream", 17}},
    {{"cache-control", 13}, {"no-cache, no-transform", 22}},
    {{"x-accel-buffering", 17}, {"no", 2}}, /* nginx holds a stream back otherwise */
};

void headers_let_stream_pass(struct headers *headers)
{
    for (size_t i = 1; i < HEADERS_OF_STREAM; i++)
        headers_set(headers, headers_of_stream[i].name, headers_of_stream[i].value);
}

static bool is_hop_by_hop(const struct http_header *header)
{
    return http_name_flags(http_name_of(header)) & HTTP_NAME_HOP_BY_HOP;
}

/* The headers that the Connection header names, read once for all headers. The list is the peer's,
 * so a long one is a set. */
struct named_headers {
    struct str list;       /* empty: it names none */
    struct map *long_list; /* NULL for a short one */
};

#define SHORT_LIST_BYTES 64 /* "close", "keep-alive, upgrade, http2-settings" */

static struct str fold_name(struct str name, struct buffer *room)
{
    buffer_clear(room);
    for (size_t i = 0; i < name.length; i++)
        buffer_append_char(room, fold_letter(name.bytes[i]));
    return buffer_str(room);
}

static struct named_headers read_list(struct str connection)
{
    struct named_headers named = {.list = connection};
    struct buffer room;
    if (connection.length <= SHORT_LIST_BYTES)
        return named;
    named.long_list = map_create();
    buffer_init(&room);
    while (connection.length > 0) {
        struct str token;
        str_cut(connection, ',', &token, &connection);
        map_put(named.long_list, fold_name(str_trim(token), &room), named.long_list);
    }
    buffer_finish(&room);
    return named;
}

static inline struct named_headers read_named(struct str connection)
{
    /* Nearly all lists are one of these, and name no header that is not hop-by-hop by itself. */
    if (connection.length == 0 || str_equal_ignore_case(connection, STR("keep-alive")) ||
        str_equal_ignore_case(connection, STR("close")))
        return (struct named_headers){.list = STR_EMPTY};
    return read_list(connection);
}

static void finish_named(struct named_headers *named)
{
    map_destroy(named->long_list, NULL);
}

static bool is_in_short_list(struct str list, struct str name)
{
    while (list.length > 0) {
        struct str token;
        str_cut(list, ',', &token, &list);
        if (str_equal_ignore_case(str_trim(token), name))
            return true;
    }
    return false;
}

static bool is_in_list(const struct named_headers *named, const struct http_header *header)
{
    /* The server must see the headers that the gateway has judged by. */
    if (http_name_flags(http_name_of(header)) & HTTP_NAME_END_TO_END)
        return false;
    if (!named->long_list)
        return is_in_short_list(named->list, header->name);
    OWNED_BUFFER(room);
    return map_get(named->long_list, fold_name(header->name, &room)) != NULL;
}

static inline bool is_named_by(const struct named_headers *named, const struct http_header *header)
{
    return named->list.length > 0 && is_in_list(named, header);
}

/* ---- the type of a message ---- */

static bool is_utf8_name(struct str charset)
{
    bool quoted = charset.length >= 2 && str_starts_with(charset, STR("\"")) &&
                  str_ends_with(charset, STR("\""));
    if (quoted)
        charset = str_slice(charset.bytes + 1, charset.length - 2);
    return str_equal_ignore_case(charset, STR("utf-8")) ||
           str_equal_ignore_case(charset, STR("utf8"));
}

/* A quoted parameter may hide another one from a reader that cuts at semicolons, so all quoted ones
 * are refused. */
static bool is_plain_parameter(struct str parameter)
{
    struct str name, value;
    bool has_value = str_cut(parameter, '=', &name, &value);
    name = str_trim(name);
    value = str_trim(value);
    if (name.length >= 7 && str_equal_ignore_case(str_slice(name.bytes, 7), STR("charset")))
        return name.length == 7 && has_value && is_utf8_name(value);
    return parameter.length == 0 || memchr(parameter.bytes, '"', parameter.length) == NULL;
}

bool headers_are_plain_json(const struct http_exchange *exchange)
{
    struct str coding = http_header_known(exchange, HTTP_NAME_CONTENT_ENCODING);
    struct str type = http_header_known(exchange, HTTP_NAME_CONTENT_TYPE);
    struct str media, parameters;
    if (coding.length == 0 && str_equal(type, STR("application/json")))
        return true; /* as nearly all are */
    str_cut(type, ';', &media, &parameters);
    if (!str_equal_ignore_case(str_trim(media), STR("application/json")))
        return false;
    while (parameters.length > 0) {
        struct str parameter;
        str_cut(parameters, ';', &parameter, &parameters);
        if (!is_plain_parameter(parameter))
            return false;
    }
    return coding.length == 0 || str_equal_ignore_case(str_trim(coding), STR("identity"));
}

/* ---- what a client may not say ---- */

/* Servers and the frameworks in front of them take these from a proxy: whose the call is, where it
 * goes and what it does. No proxy before the gateway is trusted, so nobody's word counts. */
static const char *const of_proxies[] = {
    "forwarded",
    "x-original-url",
    "x-original-uri",
    "x-original-host",
    "x-original-method",
    "x-rewrite-url",
    "x-http-method-override",
    "x-http-method",
    "x-method-override",
    "x-real-ip",
    "x-client-ip",
    "x-cluster-client-ip",
    "true-client-ip",
    "x-host",
    "x-proxy-user",
    "x-remote-user",
    "remote-user",
};
#define FOLDED_MAX 64 /* longer than any name that is compared */

static struct str fold_header(struct str name, char folded[FOLDED_MAX])
{
    size_t length = name.length < FOLDED_MAX ? name.length : FOLDED_MAX;
    for (size_t i = 0; i < length; i++)
        folded[i] = fold_letter(name.bytes[i]);
    return str_slice(folded, length);
}

static bool is_of_proxies(struct str folded)
{
    if (str_starts_with(folded, STR("x-forwarded-")))
        return true;
    for (size_t i = 0; i < sizeof of_proxies / sizeof *of_proxies; i++) {
        if (str_equal(folded, str_from(of_proxies[i])))
            return true;
    }
    return false;
}

/* A proxy's header, or one that reads like a known one behind its "_". */
static bool is_kept_back(const struct http_header *header)
{
    char folded[FOLDED_MAX];
    if (http_name_of(header) != HTTP_NAME_OTHER)
        return false;
    struct str name = fold_header(header->name, folded);
    return is_of_proxies(name) || (memchr(header->name.bytes, '_', header->name.length) &&
                                   http_name_find(name) != HTTP_NAME_OTHER);
}

/* All but `left_out`, Accept-Encoding and what a client may not say. */
static void add_end_to_end(struct headers *headers, const struct http_exchange *exchange,
                           enum http_name left_out)
{
    struct named_headers named = read_named(http_header_known(exchange, HTTP_NAME_CONNECTION));
    size_t count = http_header_count(exchange);
    for (size_t i = 0; i < count; i++) {
        const struct http_header item = http_header_at(exchange, i);
        if (!is_hop_by_hop(&item) && !is_named_by(&named, &item) && !is_kept_back(&item) &&
            item.known != HTTP_NAME_ACCEPT_ENCODING && item.known != left_out)
            add(headers, &item);
    }
    finish_named(&named);
}

void headers_from_client(struct headers *headers, const struct http_exchange *exchange)
{
    add_end_to_end(headers, exchange, HTTP_NAME_ACCEPT_ENCODING);
}

/* Static credentials may replace those that tell clients apart. */
static void note_owner(struct headers *headers, const struct config_source *source)
{
    char owner[OWNER_BYTES], token[DIGEST_HEX_BYTES] = "", session[DIGEST_HEX_BYTES] = "";
    struct str authorization = headers_known(headers, HTTP_NAME_AUTHORIZATION);
    struct str session_id = headers_known(headers, HTTP_NAME_MCP_SESSION_ID);
    if (authorization.length > 0)
        authorization_digest(authorization, token);
    if (session_id.length > 0)
        digest_sha256_hex(session_id, session);
    owner_write(owner, token, session, source->identity);
    headers->owner = memory_copy_text(owner);
}

struct str headers_connection_owner(const struct headers *headers,
                                    const struct config_source *source)
{
    if (!source->connections_per_owner)
        return STR_EMPTY;
    return headers->owner ? str_from(headers->owner) : STR("gateway");
}

/* Whether the client's token is meant for the gateway alone. */
static bool keeps_token(const struct config_source *source)
{
    return source->auth.issuer && source->auth.upstream != AUTH_UPSTREAM_PASS;
}

static inline void add_static(struct headers *headers, const struct config_source *source)
{
    for (size_t i = 0; i < source->header_count; i++)
        headers_set(headers, str_from(source->headers[i].name), str_from(source->headers[i].value));
}

void headers_set_static(struct headers *headers, const struct config_source *source)
{
    if (source->connections_per_owner && !headers->owner)
        note_owner(headers, source);
    if (keeps_token(source))
        headers_remove(headers, HTTP_NAME_AUTHORIZATION);
    add_static(headers, source);
}

void headers_from_request(struct headers *headers, const struct http_exchange *exchange,
                          const struct config_source *source)
{
    if (keeps_token(source) && !source->connections_per_owner) {
        add_end_to_end(headers, exchange, HTTP_NAME_AUTHORIZATION);
        add_static(headers, source);
        return;
    }
    headers_from_client(headers, exchange);
    headers_set_static(headers, source);
}

void headers_set_session(struct headers *headers, const struct upstream_session *session)
{
    headers_drop(headers, HTTP_NAME_MIRRORS_BODY | HTTP_NAME_OF_SESSION);
    headers_remove(headers, HTTP_NAME_MCP_PROTOCOL_VERSION);
    if (session && session->id.length > 0)
        headers_add(headers, STR("mcp-session-id"), session->id);
    if (session && session->version.length > 0)
        headers_add(headers, STR("mcp-protocol-version"), session->version);
}

void headers_from_call(struct headers *headers, const struct call *call)
{
    headers_from_request(headers, call->exchange, call->source);
    if (call->upstream_authorization)
        headers_set(headers, STR("authorization"), str_from(call->upstream_authorization));
    if (call_leases_session(call))
        headers_set_session(headers, call->upstream_session);
    if (!call_gives_session(call))
        return;
    headers_drop(headers, HTTP_NAME_OF_SESSION | HTTP_NAME_MIRRORS_BODY);
    headers_set(headers, STR("mcp-protocol-version"), STR(MCP_VERSION_MODERN));
    headers_add(headers, STR("mcp-method"), STR("tools/list")); /* until the method is set */
}

void headers_from_response(struct headers *headers, const struct http_header *items, size_t count)
{
    struct str connection = STR_EMPTY;
    for (size_t i = 0; i < count; i++) {
        if (http_name_of(&items[i]) == HTTP_NAME_CONNECTION)
            connection = items[i].value;
    }
    struct named_headers named = read_named(connection);
    for (size_t i = 0; i < count; i++) {
        if (!is_hop_by_hop(&items[i]) && !is_named_by(&named, &items[i]))
            add(headers, &items[i]);
    }
    finish_named(&named);
}

/* ---- those of a modern request that repeat its body ---- */

#define VERSION_NAME STR("mcp-protocol-version")

static bool is_kept(const struct http_header *header)
{
    enum http_name name = http_name_of(header);
    return name == HTTP_NAME_MCP_PROTOCOL_VERSION ||
           (http_name_flags(name) & HTTP_NAME_MIRRORS_BODY);
}

static void headers_write_line(const struct http_header *header, struct buffer *lines)
{
    if (!is_kept(header))
        return;
    buffer_append(lines, header->name);
    buffer_append_char(lines, ':');
    buffer_append(lines, header->value);
    buffer_append_char(lines, '\n');
}

void mirrored_headers_write(const struct http_exchange *exchange, struct buffer *lines)
{
    for (size_t i = 0; i < http_header_count(exchange); i++) {
        const struct http_header header = http_header_at(exchange, i);
        headers_write_line(&header, lines);
    }
}

void mirrored_headers_write_made(const struct headers *headers, struct buffer *lines)
{
    for (size_t i = 0; i < headers->count; i++)
        headers_write_line(&headers->items[i], lines);
}

void mirrored_headers_restore(struct headers *headers, struct str lines)
{
    struct str line, name, value;
    headers_drop(headers, HTTP_NAME_MIRRORS_BODY);
    while (lines.length > 0) {
        str_cut(lines, '\n', &line, &lines);
        str_cut(line, ':', &name, &value);
        if (str_equal(name, VERSION_NAME))
            headers_set(headers, name, value);
        else
            headers_add(headers, name, value);
    }
}

void mirrored_headers_set(struct headers *headers, const char *method, struct str name)
{
    struct buffer value;
    headers_drop(headers, HTTP_NAME_MIRRORS_BODY);
    headers_set(headers, VERSION_NAME, STR(MCP_VERSION_MODERN));
    headers_add(headers, STR("mcp-method"), str_from(method));
    if (name.length == 0)
        return;
    buffer_init(&value);
    mirrored_header_encode(name, &value);
    headers_add(headers, STR("mcp-name"), buffer_str(&value));
    buffer_finish(&value);
}
