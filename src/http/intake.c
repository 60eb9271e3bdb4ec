/*
 * The memory that connections hold: requests that are received, their bodies until they are
 * answered, and responses that the client does not read. h2o collects a whole request in its
 * socket's buffer, and calls nothing before it is complete. So this file wraps h2o's read callback,
 * and looks after each read. Capacities count, not sizes. The connections of all loops share one
 * budget with one lock, which small requests do not take.
 */
#include <stdlib.h>
#include <string.h>

#include "server_internal.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"

/* h2o's first buffer and the rest of a small request: `limits.connections` bounds these. */
#define UNCOUNTED_BYTES ((size_t)16 * 1024)

/* ---- dropping ---- */

static void on_nothing(h2o_socket_t *socket, const char *error)
{
}

/* Ends a request that is being received. Bytes that the kernel does not take at once are not sent.
 */
static void turn_away(struct connection *connection, const char *answer)
{
    h2o_socket_t *socket = connection->socket;
    h2o_iovec_t bytes = h2o_iovec_init(answer, strlen(answer));
    if (!h2o_socket_is_writing(socket)) /* "100 Continue" */
        h2o_socket_write(socket, &bytes, 1, on_nothing);
    linger_prepare(connection);
    connection->h2o_read(socket, "turned away"); /* closes it */
}

/* The client of a response gets no more of it, as if it had left. */
static void intake_drop(struct connection *connection)
{
    static const char answer[] = "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\n"
                                 "Retry-After: 1\r\nContent-Length: 0\r\n\r\n";
    log_warn("Dropped a request: its sender holds too much memory",
             LOG_STR("client", connection_peer(connection)));
    if (connection->served == NULL) {
        turn_away(connection, answer);
        return;
    }
    h2o_req_t *request = connection->served->request;
    if (connection->exchange != NULL)
        exchange_report_gone(connection->exchange);
    connection_cut(request);
}

/* To the loop of a connection that was chosen. The connection may be gone when it arrives. */
struct delivery {
    struct budget *budget;
    struct loop *loop;
};

static bool is_of_loop(const struct budget_claim *claim, const void *loop);

static void drop_chosen(struct budget *budget, const struct loop *loop)
{
    struct budget_claim *claim;
    while ((claim = budget_find_chosen(budget, is_of_loop, loop)) != NULL)
        intake_drop(LIST_ENTRY(claim, struct connection, claim)); /* releases it */
}

static void on_delivery(void *context)
{
    struct delivery *delivery = context;
    drop_chosen(delivery->budget, delivery->loop);
    free(delivery);
}

/* Under the budget's lock the connection is still there, so its loop still runs. */
static void on_chosen(struct budget_claim *claim)
{
    const struct http_server *server = LIST_ENTRY(claim, struct connection, claim)->server;
    struct delivery *delivery = memory_alloc(sizeof(*delivery));
    *delivery = (struct delivery){server->options.budget, server->loop};
    loop_post(server->loop, on_delivery, delivery);
}

static const struct budget_owner claim_owner = {.chosen = on_chosen};

static bool is_of_loop(const struct budget_claim *claim, const void *loop)
{
    return claim->owner == &claim_owner &&
           LIST_ENTRY(claim, struct connection, claim)->server->loop == loop;
}

/* ---- counting ---- */

static size_t response_bytes(const struct http_exchange *exchange)
{
    return exchange->waiting.capacity + exchange->sending.capacity + exchange->charged;
}

static enum budget_kind intake_kind_of(const struct http_exchange *served)
{
    if (served == NULL)
        return BUDGET_RECEIVED;
    return response_bytes(served) > UNCOUNTED_BYTES ? BUDGET_KEPT : BUDGET_NEEDED;
}

/* Out of the way of small requests. */
static __attribute__((noinline)) void intake_hold(struct connection *connection, size_t bytes)
{
    budget_hold(connection->server->options.budget, &connection->claim, &claim_owner,
                connection_holder(connection), intake_kind_of(connection->served), bytes);
}

void intake_count(struct connection *connection)
{
    const struct budget *budget = connection->server->options.budget;
    const struct http_exchange *served = connection->served;
    if (budget == NULL || connection->socket == NULL)
        return;
    size_t bytes = connection->socket->input->capacity;
    if (served != NULL)
        bytes += response_bytes(served);
    if (bytes > UNCOUNTED_BYTES)
        intake_hold(connection, bytes);
    else
        intake_leave(connection);
}

void intake_leave(struct connection *connection)
{
    /* Only this loop sets the owner. */
    if (connection->claim.owner != NULL)
        budget_release(connection->server->options.budget, &connection->claim);
}

void http_charge(struct http_exchange *exchange, size_t bytes)
{
    if (exchange->ended)
        return;
    exchange->charged += bytes;
    intake_count(exchange->connection);
}

void http_vouch(struct http_exchange *exchange, struct str principal)
{
    struct connection *connection = exchange->connection;
    size_t length = principal.length < HOLDER_BYTES ? principal.length : HOLDER_BYTES - 1;
    if (exchange->ended || length == 0 ||
        (strncmp(connection->holder, principal.bytes, length) == 0 &&
         connection->holder[length] == '\0'))
        return;
    memcpy(connection->holder, principal.bytes, length);
    connection->holder[length] = '\0';
    if (connection->claim.owner != NULL)
        intake_count(connection);
}

/* ---- bodies of unknown clients ---- */

/* Of picohttpparser, in h2o's library, which has no header of it. */
struct phr_header {
    const char *name;
    size_t name_len;
    const char *value;
    size_t value_len;
};
int phr_parse_request(const char *bytes, size_t length, const char **method, size_t *method_length,
                      const char **path, size_t *path_length, int *minor_version,
                      struct phr_header *headers, size_t *header_count, size_t last_length);

/* As h2o judges: Transfer-Encoding wins. SIZE_MAX: not said. */
static size_t announced_bytes(const struct http_header *headers, size_t count)
{
    uint64_t length = 0;
    for (size_t i = 0; i < count; i++) {
        if (str_equal_ignore_case(headers[i].name, STR("transfer-encoding")))
            return SIZE_MAX;
        if (str_equal_ignore_case(headers[i].name, STR("content-length")) &&
            !str_to_u64(headers[i].value, &length))
            return SIZE_MAX;
    }
    return (size_t)length;
}

/* Reads the head that h2o has read, as far as it is there. */
static void look_at_head(struct connection *connection)
{
    const struct http_server_options *options = &connection->server->options;
    struct phr_header read[H2O_MAX_HEADERS];
    struct http_header headers[H2O_MAX_HEADERS];
    struct http_head head = {.headers = headers, .header_count = H2O_MAX_HEADERS};
    const h2o_buffer_t *input = connection->socket->input;
    int minor_version;
    int length = phr_parse_request(input->bytes, input->size, &head.method.bytes,
                                   &head.method.length, &head.path.bytes, &head.path.length,
                                   &minor_version, read, &head.header_count, 0);
    if (length <= 0)
        return;
    for (size_t i = 0; i < head.header_count; i++)
        headers[i] = (struct http_header){.name = str_slice(read[i].name, read[i].name_len),
                                          .value = str_slice(read[i].value, read[i].value_len)};
    head.has_certificate = handshake_certificate(connection) != NULL;
    connection->head_bytes = (size_t)length;
    connection->body_bytes = HTTP_FREE_BODY_BYTES;
    size_t announced = announced_bytes(headers, head.header_count);
    if (announced > HTTP_FREE_BODY_BYTES)
        connection->body_bytes = options->judge_body(&head, options->context);
    /* With a length, the client need not send what will not be read. */
    if (announced != SIZE_MAX && announced > connection->body_bytes)
        connection->body_bytes = 0;
}

static bool is_beyond(struct connection *connection)
{
    const h2o_buffer_t *input = connection->socket->input;
    if (connection->server->options.judge_body == NULL || input->size == 0)
        return false;
    if (connection->head_bytes == 0)
        look_at_head(connection);
    return connection->head_bytes > 0 &&
           input->size - connection->head_bytes > connection->body_bytes;
}

/* ---- the read callback ---- */

/* A large buffer with little in it: the rest is given back. h2o counts from its beginning. */
static void intake_shrink(h2o_socket_t *socket)
{
    h2o_buffer_t *old = socket->input;
    if (old->capacity <= UNCOUNTED_BYTES || old->size > old->capacity / 8)
        return;
    h2o_buffer_init(&socket->input, &h2o_socket_buffer_prototype);
    h2o_iovec_t place = h2o_buffer_reserve(&socket->input, old->size);
    memcpy(place.base, old->bytes, old->size);
    socket->input->size = old->size;
    h2o_buffer__do_free(old);
}

/* Calls h2o, which may close the connection. */
static void call_h2o(struct connection *connection, h2o_socket_cb callback, const char *error)
{
    connection_enter(connection);
    callback(connection->socket, error);
    if (connection_leave(connection))
        intake_wrap(connection);
}

static void intake_on_read(h2o_socket_t *socket, const char *error)
{
    struct connection *connection = socket->on_close.data;
    socket->_cb.read = connection->h2o_read;
    call_h2o(connection, connection->h2o_read, error);
}

static void on_written(h2o_socket_t *socket, const char *error)
{
    struct connection *connection = socket->on_close.data;
    h2o_socket_cb written = connection->h2o_written;
    connection->h2o_written = NULL;
    call_h2o(connection, written, error);
}

void intake_wrap(struct connection *connection)
{
    h2o_socket_t *socket = connection->socket;
    if (connection->server->options.budget == NULL || socket == NULL || connection->served != NULL)
        return;
    if (connection->h2o_read == NULL)
        connection->h2o_read = socket->_cb.read; /* h2o has just accepted it */
    if (socket->_cb.read == connection->h2o_read) {
        socket->_cb.read = intake_on_read;
    } else if (socket->_cb.read == NULL && socket->_cb.write != NULL &&
               socket->_cb.write != on_written) {
        /* "100 Continue" goes out, and h2o reads on by itself */
        connection->h2o_written = socket->_cb.write;
        socket->_cb.write = on_written;
    } else {
        return; /* it is done already */
    }
    intake_shrink(socket);
    intake_count(connection);
    const struct http_server *server = connection->server;
    bool is_large = connection->claim.owner != NULL;
    if (socket->_cb.read == intake_on_read && is_beyond(connection))
        turn_away(connection, "HTTP/1.1 401 Unauthorized\r\nConnection: close\r\n"
                              "WWW-Authenticate: Bearer\r\nContent-Length: 0\r\n\r\n");
    /* Other connections of this round may be about to read as much: their memory comes after this
     * is free, not before the message of on_chosen(). */
    if (is_large)
        drop_chosen(server->options.budget, server->loop);
}

void intake_complete(struct connection *connection)
{
    connection->head_bytes = 0;
    intake_count(connection);
}

static void on_round_end(void *context)
{
    struct http_server *server = http_server_from(context);
    while (!list_is_empty(&server->resting)) {
        struct connection *connection =
            LIST_ENTRY(server->resting.next, struct connection, resting);
        list_remove(&connection->resting);
        intake_wrap(connection);
    }
}

void intake_open(struct http_server *server)
{
    list_init(&server->resting);
    loop_round_end_init(&server->round_end, server->loop, on_round_end, server);
}

/* h2o sets its own callback again after it has freed its memory of the request. */
void intake_wrap_later(struct connection *connection)
{
    struct http_server *server = connection->server;
    if (server->options.budget == NULL || connection->socket == NULL)
        return;
    if (list_is_empty(&connection->resting))
        list_append(&server->resting, &connection->resting);
    loop_round_end_schedule(&server->round_end);
}
