/*
 * An exchange: one request as h2o read it, until it is answered or its client is gone.
 */
#include <stddef.h>
#include <string.h>

#include "server_internal.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/memory.h"

void exchange_end(struct http_exchange *exchange)
{
    ASSERT(exchange->connection->exchange == exchange);
    exchange->ended = true;
    exchange->connection->exchange = NULL;
    if (exchange->is_held != NULL)
        *exchange->is_held = false;
    exchange->is_held = NULL;
}

void exchange_report_gone(struct http_exchange *exchange)
{
    exchange_end(exchange);
    if (exchange->gone != NULL)
        exchange->gone(exchange->gone_context);
}

void http_on_gone(struct http_exchange *exchange, loop_callback gone, void *context)
{
    exchange->gone = gone;
    exchange->gone_context = context;
}

/* ---- the request ---- */

static struct str from_iovec(h2o_iovec_t vector)
{
    return str_slice(vector.base, vector.len);
}

struct str http_method(const struct http_exchange *exchange)
{
    return from_iovec(exchange->request->input.method);
}

struct str http_path(const struct http_exchange *exchange)
{
    struct str path, query;
    str_cut(from_iovec(exchange->request->input.path), '?', &path, &query);
    return path;
}

struct str http_query(const struct http_exchange *exchange)
{
    struct str path, query;
    str_cut(from_iovec(exchange->request->input.path), '?', &path, &query);
    return query;
}

struct str http_authority(const struct http_exchange *exchange)
{
    const h2o_req_t *request = exchange->request;
    /* Without a Host header h2o puts the name of its host configuration there. */
    if (request->input.authority.base == request->hostconf->authority.hostport.base)
        return STR_EMPTY;
    return from_iovec(request->input.authority);
}

struct str http_body(const struct http_exchange *exchange)
{
    return from_iovec(exchange->request->entity);
}

/* h2o has copied the head of a request with a body to the request's pool, so its buffer serves the
 * body alone. In the buffer's place comes one without memory that says the same size. After the
 * response h2o takes just that many bytes out, and so frees it. A next request that has begun in
 * the buffer already stays. */
void http_forget_body(struct http_exchange *exchange)
{
    h2o_req_t *request = exchange->request;
    h2o_socket_t *socket = exchange->connection->socket;
    h2o_buffer_t *input = socket != NULL ? socket->input : NULL;
    if (exchange->ended || input == NULL || request->entity.len == 0 ||
        request->entity.base + request->entity.len != input->bytes + input->size)
        return;
    h2o_buffer_t *stand_in = memory_alloc(sizeof(*stand_in));
    *stand_in = (h2o_buffer_t){.capacity = 1,
                               .size = input->size,
                               .bytes = stand_in->_buf,
                               ._prototype = input->_prototype,
                               ._fd = -1};
    socket->input = stand_in;
    request->entity = h2o_iovec_init(NULL, 0);
    h2o_buffer__do_free(input);
}

/* h2o allocates for a request in chunks of this size; a request with an ordinary head has one. A
 * piece of a quarter of a chunk or more gets memory of its own, which would not be spare. It takes
 * units of 16 bytes. */
#define CHUNK_BYTES ((size_t)4080)
#define MOST_PIECE_BYTES ((size_t)992)
/* Of the chunk, for the head of the response and what h2o has of it: an event stream with three
 * headers takes 1.1 KB. With less there would be another chunk. */
#define RESPONSE_BYTES ((size_t)1280)

/* Of the chunk, in whole units of h2o's. */
static size_t spare_bytes(const h2o_mem_pool_t *pool, size_t most)
{
    size_t used = pool->chunk_offset + RESPONSE_BYTES;
    size_t left = used < CHUNK_BYTES ? CHUNK_BYTES - used : 0;
    return (left < most ? left : most) & ~(_Alignof(max_align_t) - 1);
}

/* Of one chunk they are one behind the other. */
static char *take_pieces(h2o_mem_pool_t *pool, size_t size, size_t *taken)
{
    char *first = NULL;
    for (*taken = 0; *taken < size;) {
        size_t piece = size - *taken < MOST_PIECE_BYTES ? size - *taken : MOST_PIECE_BYTES;
        char *next = h2o_mem_alloc_pool(pool, piece);
        first = first ? first : next;
        if (next != first + *taken)
            break;
        *taken += piece;
    }
    return first;
}

void *http_take_spare(struct http_exchange *exchange, size_t *most)
{
    h2o_mem_pool_t *pool = &exchange->request->pool;
    void *spare = take_pieces(pool, spare_bytes(pool, *most), most);
#ifdef __SANITIZE_ADDRESS__
    if (spare) {
        struct http_spare *own = memory_alloc(sizeof *own + *most);
        own->next = exchange->spares;
        exchange->spares = own;
        spare = own + 1;
    }
#endif
    return spare;
}

struct str http_peer(const struct http_exchange *exchange)
{
    return connection_peer(exchange->connection);
}

bool http_is_loopback(const struct http_exchange *exchange)
{
    return exchange->connection->is_loopback;
}

bool http_is_tls(const struct http_exchange *exchange)
{
    return exchange->connection->tls != NULL;
}

struct str http_client_certificate(const struct http_exchange *exchange)
{
    const char *subject = handshake_certificate(exchange->connection);
    return subject ? str_from(subject) : STR_EMPTY;
}

int64_t http_client_certificate_until_ms(const struct http_exchange *exchange)
{
    return handshake_certificate_until_ms(exchange->connection);
}

struct str http_header(const struct http_exchange *exchange, const char *name)
{
    const h2o_headers_t *headers = &exchange->request->headers;
    ssize_t index = h2o_find_header_by_str(headers, name, strlen(name), -1);
    return index < 0 ? STR_EMPTY : from_iovec(headers->entries[index].value);
}

struct str http_header_known(const struct http_exchange *exchange, enum http_name name)
{
    unsigned place = exchange->first[name];
    return place == 0 ? STR_EMPTY : from_iovec(exchange->request->headers.entries[place - 1].value);
}

enum http_name http_header_repeated(const struct http_exchange *exchange)
{
    for (unsigned name = 0; exchange->repeated >> name != 0; name++)
        if ((exchange->repeated >> name & 1) != 0 &&
            (http_name_flags((enum http_name)name) & HTTP_NAME_SINGLE) != 0)
            return (enum http_name)name;
    return HTTP_NAME_UNSEEN;
}

bool http_header_is_repeated(const struct http_exchange *exchange, enum http_name name)
{
    return (exchange->repeated >> name & 1) != 0;
}

size_t http_header_count(const struct http_exchange *exchange)
{
    size_t count = exchange->request->headers.size;
    return count < H2O_MAX_HEADERS ? count : H2O_MAX_HEADERS;
}

struct http_header http_header_at(const struct http_exchange *exchange, size_t index)
{
    const h2o_header_t *header = &exchange->request->headers.entries[index];
    return (struct http_header){.name = from_iovec(*header->name),
                                .value = from_iovec(header->value),
                                .known = exchange->known[index],
                                .is_clean = true};
}

void http_headers_drop(struct http_exchange *exchange, unsigned flags)
{
    h2o_headers_t *headers = &exchange->request->headers;
    size_t count = http_header_count(exchange), kept = 0;
    if (!(exchange->name_flags & flags))
        return;
    memset(exchange->first, 0, sizeof exchange->first);
    exchange->repeated = 0;
    exchange->name_flags = 0;
    for (size_t i = 0; i < count; i++) {
        enum http_name name = (enum http_name)exchange->known[i];
        if (http_name_flags(name) & flags)
            continue;
        headers->entries[kept] = headers->entries[i];
        exchange_note_name(exchange, kept++, name);
    }
    headers->size = kept;
}

int64_t http_received_ms(const struct http_exchange *exchange)
{
    return exchange->received_ms;
}
