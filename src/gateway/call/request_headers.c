/* A table of headers by task, and the two digests. */
#include "request_headers.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "call.h"
#include "taskgate/core/buffer.h"
#include "taskgate/core/map.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"

/* They are many, so that each is one piece. */
struct kept {
    size_t key_length, length;
    char text[]; /* the session's key, then "name:value\n" of each header but the credentials */
};

struct request_headers {
    pthread_mutex_t lock;
    struct map *kept; /* task id -> struct kept */
};

static const struct str credentials[] = {
    STR("authorization"),
    STR("cookie"),
    STR("dpop"),
    STR("mcp-session-id"),
};

/* They differ between calls of one client without a meaning for the call. */
static const struct str varying[] = {
    STR("accept"),      STR("user-agent"), STR("last-event-id"), STR("mcp-protocol-version"),
    STR("traceparent"), STR("tracestate"),
};

static bool is_among(struct str name, const struct str *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (str_equal_ignore_case(name, names[i]))
            return true;
    }
    return false;
}

#define IS_AMONG(name, names) is_among(name, names, sizeof(names) / sizeof *(names))

static struct str kept_session_key(const struct kept *kept)
{
    return str_slice(kept->text, kept->key_length);
}

static struct str kept_lines(const struct kept *kept)
{
    return str_slice(kept->text + kept->key_length, kept->length - kept->key_length);
}

struct request_headers *request_headers_create(void)
{
    struct request_headers *table = memory_alloc(sizeof *table);
    pthread_mutex_init(&table->lock, NULL);
    table->kept = map_create();
    return table;
}

void request_headers_destroy(struct request_headers *table)
{
    if (!table)
        return;
    map_destroy(table->kept, free);
    pthread_mutex_destroy(&table->lock);
    free(table);
}

bool request_headers_fit(const struct http_exchange *exchange)
{
    size_t bytes = 0, count = http_header_count(exchange);
    for (size_t i = 0; i < count; i++) {
        struct http_header header = http_header_at(exchange, i);
        bytes += header.name.length + header.value.length;
    }
    return bytes <= REQUEST_HEADERS_MOST_BYTES;
}

/* ---- the digests ---- */

struct line {
    const struct http_header *header;
};

/* By name, then in their order. */
static int request_headers_compare(const void *a, const void *b)
{
    const struct http_header *one = ((const struct line *)a)->header;
    const struct http_header *other = ((const struct line *)b)->header;
    int order = str_compare(one->name, other->name);
    return order != 0 ? order : one < other ? -1 : 1;
}

/* A header line holds no line break, so no two lists of headers have one text. */
static void request_headers_append_line(struct buffer *out, struct str name, struct str value)
{
    buffer_append(out, name);
    buffer_append_char(out, ':');
    buffer_append(out, value);
    buffer_append_char(out, '\n');
}

void request_headers_digest(const struct http_exchange *exchange, char hex[DIGEST_HEX_BYTES])
{
    struct headers headers;
    OWNED_BUFFER(text);
    size_t count = 0;
    headers_init(&headers, false);
    headers_from_client(&headers, exchange);
    headers_drop(&headers, HTTP_NAME_MIRRORS_BODY); /* each request has its own */
    struct line *lines = memory_alloc_array(headers.count + 1, sizeof *lines);
    for (size_t i = 0; i < headers.count; i++) {
        struct str name = headers.items[i].name;
        if (!IS_AMONG(name, credentials) && !IS_AMONG(name, varying))
            lines[count++].header = &headers.items[i];
    }
    qsort(lines, count, sizeof *lines, request_headers_compare);
    for (size_t i = 0; i < count; i++)
        request_headers_append_line(&text, lines[i].header->name, lines[i].header->value);
    digest_sha256_hex(buffer_str(&text), hex);
    free(lines);
    headers_finish(&headers);
}

void request_headers_digest_credentials(const struct headers *headers,
                                        const struct config_source *source,
                                        char hex[DIGEST_HEX_BYTES])
{
    OWNED_BUFFER(text);
    for (size_t i = 0; i < sizeof credentials / sizeof *credentials; i++)
        request_headers_append_line(&text, credentials[i],
                                    headers_find(headers, credentials[i].bytes));
    for (size_t i = 0; source && i < source->header_count; i++)
        request_headers_append_line(&text, str_from(source->headers[i].name),
                                    str_from(source->headers[i].value));
    digest_sha256_hex(buffer_str(&text), hex);
}

/* ---- for people ---- */

/* Names of credentials have one of these in them, whoever has made them up. */
static const char *const secret_words[] = {"auth",      "cookie", "token",      "secret",
                                           "key",       "passw",  "credential", "session",
                                           "signature", "jwt",    "assertion"};

static bool is_secret(struct str name)
{
    for (size_t i = 0; i < sizeof secret_words / sizeof *secret_words; i++) {
        if (memmem(name.bytes, name.length, secret_words[i], strlen(secret_words[i])))
            return true;
    }
    return false;
}

static bool is_shown(struct str name)
{
    return !IS_AMONG(name, varying) && !str_equal(name, STR("content-type")) &&
           (!IS_AMONG(name, credentials) || str_equal(name, STR("cookie")));
}

/* All values of one name, as a server may join them (RFC 9110 §5.3). */
static void write_values(struct buffer *out, const struct headers *headers, size_t first)
{
    struct str name = headers->items[first].name;
    struct buffer joined;
    if (is_secret(name)) {
        buffer_append_text(out, "null");
        return;
    }
    buffer_init(&joined);
    for (size_t i = first; i < headers->count; i++) {
        if (!str_equal(headers->items[i].name, name))
            continue;
        if (i > first)
            buffer_append_text(&joined, ", ");
        buffer_append(&joined, headers->items[i].value);
    }
    buffer_append_json_string(out, buffer_str(&joined));
    buffer_finish(&joined);
}

static bool request_headers_is_repeated(const struct headers *headers, size_t at)
{
    for (size_t i = 0; i < at; i++) {
        if (str_equal(headers->items[i].name, headers->items[at].name))
            return true;
    }
    return false;
}

void request_headers_show(struct buffer *out, const struct call *call)
{
    struct headers headers;
    char before = '{';
    if (!call->exchange) {
        buffer_append_text(out, "{}");
        return;
    }
    headers_init(&headers, false);
    headers_from_client(&headers, call->exchange);
    headers_drop(&headers, HTTP_NAME_MIRRORS_BODY);
    for (size_t i = 0; i < call->source->header_count; i++)
        headers_take_out(&headers, str_from(call->source->headers[i].name));
    for (size_t i = 0; i < headers.count; i++) {
        if (!is_shown(headers.items[i].name) || request_headers_is_repeated(&headers, i))
            continue;
        buffer_append_char(out, before);
        buffer_append_json_string(out, headers.items[i].name);
        buffer_append_char(out, ':');
        write_values(out, &headers, i);
        before = ',';
    }
    buffer_append_text(out, before == '{' ? "{}" : "}");
    headers_finish(&headers);
}

/* ---- the table ---- */

static void add_credentials(struct headers *headers, const struct headers *from)
{
    for (size_t i = 0; i < from->count; i++) {
        if (IS_AMONG(from->items[i].name, credentials))
            headers_add(headers, from->items[i].name, from->items[i].value);
    }
}

static struct kept *make_kept(struct str session_key, const struct headers *headers)
{
    OWNED_BUFFER(text);
    buffer_append(&text, session_key);
    for (size_t i = 0; i < headers->count; i++) {
        if (!IS_AMONG(headers->items[i].name, credentials))
            request_headers_append_line(&text, headers->items[i].name, headers->items[i].value);
    }
    struct kept *kept = memory_alloc(sizeof *kept + text.length);
    kept->key_length = session_key.length;
    kept->length = text.length;
    if (text.length > 0)
        memcpy(kept->text, text.bytes, text.length);
    return kept;
}

static void add_lines(struct headers *headers, struct str lines)
{
    while (lines.length > 0) {
        struct str line, name, value;
        str_cut(lines, '\n', &line, &lines);
        str_cut(line, ':', &name, &value);
        headers_add(headers, name, value);
    }
}

/* Under the lock. */
static struct kept *keep(struct request_headers *table, struct str id, struct str session_key,
                         const struct headers *headers)
{
    struct kept *kept = make_kept(session_key, headers);
    free(map_put(table->kept, id, kept));
    return kept;
}

void request_headers_keep(struct request_headers *table, struct str id, struct str session_key,
                          const struct http_exchange *exchange)
{
    struct headers headers;
    headers_init(&headers, false);
    headers_from_client(&headers, exchange);
    pthread_mutex_lock(&table->lock);
    keep(table, id, session_key, &headers);
    pthread_mutex_unlock(&table->lock);
    headers_finish(&headers);
}

static bool request_headers_fits(const struct http_exchange *exchange, const char *digest)
{
    char hex[DIGEST_HEX_BYTES];
    request_headers_digest(exchange, hex);
    return !*digest || strcmp(hex, digest) == 0;
}

bool request_headers_take(struct request_headers *table, struct str id, struct str session_key,
                          const char *digest, const struct http_exchange *exchange,
                          struct headers *headers)
{
    struct headers own;
    if (!request_headers_fit(exchange))
        return false;
    headers_init(&own, false);
    headers_from_client(&own, exchange);
    pthread_mutex_lock(&table->lock);
    struct kept *kept = map_get(table->kept, id);
    if (!kept && request_headers_fits(exchange, digest))
        kept = keep(table, id, session_key, &own);
    pthread_mutex_unlock(&table->lock);
    if (kept)
        add_credentials(headers, &own);
    headers_finish(&own);
    return kept != NULL;
}

bool request_headers_complete(struct request_headers *table, struct str id, struct headers *headers)
{
    struct headers whole;
    headers_init(&whole, true);
    pthread_mutex_lock(&table->lock);
    const struct kept *kept = map_get(table->kept, id);
    if (kept)
        add_lines(&whole, kept_lines(kept));
    pthread_mutex_unlock(&table->lock);
    headers_add_all(&whole, headers);
    headers_finish(headers);
    *headers = whole;
    return kept != NULL;
}

void request_headers_forget(struct request_headers *table, struct str id)
{
    pthread_mutex_lock(&table->lock);
    struct kept *kept = map_remove(table->kept, id);
    pthread_mutex_unlock(&table->lock);
    free(kept);
}

void request_headers_forget_session(struct request_headers *table, struct str session_key)
{
    size_t position = 0;
    struct str id;
    void *value;
    pthread_mutex_lock(&table->lock);
    while (map_next(table->kept, &position, &id, &value)) {
        if (!str_equal(kept_session_key(value), session_key))
            continue;
        map_remove(table->kept, id);
        free(value);
        position = 0; /* removal moves entries about */
    }
    pthread_mutex_unlock(&table->lock);
}
