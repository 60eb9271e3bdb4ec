/*
 * h2o's handler of every request: makes the exchange and gives it to the owner's handler.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "server_internal.h"
#include "taskgate/core/log.h"

/*
 * The head of a request, looked at for what two readers read in two ways and h2o does not tell: a
 * line that goes on in the next one, and lengths that differ, of which h2o takes the first.
 */

static const char length_field[] = "content-length:";
#define LENGTH_FIELD_BYTES (sizeof(length_field) - 1)

/* The head behind the line; empty behind the last one. */
static struct str request_handler_next_line(struct str rest, struct str *line)
{
    const char *feed = memchr(rest.bytes, '\n', rest.length);
    size_t length = feed != NULL ? (size_t)(feed - rest.bytes) : rest.length;
    *line = str_slice(rest.bytes, length);
    size_t taken = feed != NULL ? length + 1 : length;
    return str_slice(rest.bytes + taken, rest.length - taken);
}

static bool is_length(struct str line)
{
    return line.length > LENGTH_FIELD_BYTES && line.bytes[LENGTH_FIELD_BYTES - 1] == ':' &&
           (line.bytes[0] | 0x20) == 'c' &&
           strncasecmp(line.bytes, length_field, LENGTH_FIELD_BYTES) == 0;
}

/* Why two readers could read the head of a request, and where it ends, in two ways; NULL when they
 * cannot. Looks at nothing behind the head. */
static const char *framing_fault(struct str head)
{
    struct str line, rest = request_handler_next_line(head, &line), length = STR_EMPTY;
    while (rest.length > 0) {
        rest = request_handler_next_line(rest, &line);
        if (line.length == 0 || line.bytes[0] == '\r')
            return NULL;
        if (line.bytes[0] == ' ' || line.bytes[0] == '\t')
            return "a folded header";
        if (!is_length(line))
            continue;
        struct str value =
            str_trim(str_slice(line.bytes + LENGTH_FIELD_BYTES, line.length - LENGTH_FIELD_BYTES));
        if (length.bytes != NULL && !str_equal(length, value))
            return "two lengths";
        length = value;
    }
    return NULL;
}

struct handler {
    h2o_handler_t super;
    struct http_server *server;
};

/* h2o hands it back when it is done with the request. */
struct disposal {
    struct http_exchange *exchange;
};

/* h2o is done with the request: it was answered, or the connection broke. */
static void on_request_disposed(void *memory)
{
    struct http_exchange *exchange = http_exchange_from(((struct disposal *)memory)->exchange);
    if (!exchange->ended)
        exchange_report_gone(exchange);
    exchange->connection->served = NULL;
    connection_rest(exchange->connection,
                    exchange->connection->holder[0] == '\0' ? IDLE_STRANGER : IDLE_KNOWN);
    connection_let_go(exchange->connection);
    intake_wrap_later(exchange->connection);
    list_remove(&exchange->finished);
    buffer_finish(&exchange->waiting);
    buffer_finish(&exchange->sending);
#ifdef __SANITIZE_ADDRESS__
    for (struct http_spare *spare = exchange->spares, *next; spare; spare = next) {
        next = spare->next;
        free(spare);
    }
#endif
    MAGIC_CLEAR(exchange);
}

/* Looks each name up once, so that nobody compares it again. h2o takes no more headers than
 * that. */
static void intern_names(struct http_exchange *exchange)
{
    const h2o_headers_t *headers = &exchange->request->headers;
    size_t count = headers->size < H2O_MAX_HEADERS ? headers->size : H2O_MAX_HEADERS;
    for (size_t i = 0; i < count; i++)
        exchange_note_name(exchange, i,
                           http_name_find(str_slice(headers->entries[i].name->base,
                                                    headers->entries[i].name->len)));
}

static struct http_exchange *exchange_create(struct connection *connection, h2o_req_t *request)
{
    struct http_exchange *exchange = h2o_mem_alloc_pool(&request->pool, sizeof(*exchange));
    struct disposal *disposal =
        h2o_mem_alloc_shared(&request->pool, sizeof(*disposal), on_request_disposed);
    disposal->exchange = exchange;
    memset(exchange, 0, offsetof(struct http_exchange, known));
    MAGIC_SET(exchange, HTTP_EXCHANGE_MAGIC);
    exchange->generator.proceed = response_proceed;
    exchange->request = request;
    exchange->connection = connection;
    exchange->received_ms = loop_now_ms(connection->server->loop);
    exchange->length_left = -1;
    list_init(&exchange->finished);
    connection->exchange = connection->served = exchange;
    list_remove(&connection->idle);
    if (connection->is_retired)
        request->http1_is_persistent = 0;
    intake_complete(connection);
    intern_names(exchange);
    connection_hold(connection);
    return exchange;
}

/* h2o keeps a request at the beginning of its buffer until it is answered. */
static struct str raw_head(const struct connection *connection)
{
    const h2o_buffer_t *input = connection->socket->input;
    return str_slice(input->bytes, input->size);
}

static int on_request(h2o_handler_t *super, h2o_req_t *request)
{
    const struct http_server *server = ((struct handler *)super)->server;
    struct connection *connection = connection_of(request);
    struct http_exchange *exchange = exchange_create(connection, request);

    /* h2o refuses a chunked body of exactly its limit. So the limit given to h2o is one byte
     * higher. */
    const char *fault = framing_fault(raw_head(connection));
    if (fault != NULL) {
        log_warn("Request refused: its head can be read in two ways", LOG_TEXT("reason", fault));
        request->http1_is_persistent = 0; /* nobody knows where the next one begins */
        refusal_respond(exchange, 400);
        return 0;
    }
    if (request->entity.len > server->options.max_body_bytes) {
        refusal_respond(exchange, 413);
        return 0;
    }
    /* The departure of a client that left before its request was read is not reported again. If its
     * request is not answered at once, the exchange ends here. The exchange may be gone by then, so
     * a flag tells. */
    bool is_held = connection->client_left;
    if (is_held)
        exchange->is_held = &is_held;
    server->options.handler(exchange, server->options.context);
    if (is_held) {
        exchange_report_gone(exchange);
        connection_cut(request);
    }
    return 0;
}

void request_handler_register(struct http_server *server, h2o_pathconf_t *path)
{
    struct handler *handler = (struct handler *)h2o_create_handler(path, sizeof(*handler));
    handler->super.on_req = on_request;
    handler->server = server;
}
