/*
 * An HTTP server: h2o's configuration and context, and the life of both.
 */
#include <errno.h>
#include <h2o.h>
#include <h2o/http1.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "server_internal.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"

/* ---- a request ---- */

/*
 * The head of a request, looked at for what two readers read in two ways and h2o does not tell: a
 * line that goes on in the next one, and lengths that differ, of which h2o takes the first.
 */

static const char length_field[] = "content-length:";
#define LENGTH_FIELD_BYTES (sizeof(length_field) - 1)

/* h2o has put the name in lower case, unless it read it otherwise. */
static bool is_length(struct str rest)
{
    return rest.length >= LENGTH_FIELD_BYTES && rest.bytes[LENGTH_FIELD_BYTES - 1] == ':' &&
           (memcmp(rest.bytes, length_field, LENGTH_FIELD_BYTES) == 0 ||
            strncasecmp(rest.bytes, length_field, LENGTH_FIELD_BYTES) == 0);
}

/* The value of the field at the beginning of `rest`. */
static struct str length_value(struct str rest)
{
    struct str line, behind;
    str_cut(str_slice(rest.bytes + LENGTH_FIELD_BYTES, rest.length - LENGTH_FIELD_BYTES), '\n',
            &line, &behind);
    return str_trim(line);
}

struct framing {
    struct str length; /* the head from its first length on */
    const char *fault;
};

/* Looks at the line at the beginning of `rest`. false: nothing behind it matters. */
static inline bool look_at_line(struct framing *framing, struct str rest)
{
    unsigned char first = rest.length > 0 ? (unsigned char)*rest.bytes : '\n';
    if (first <= ' ') {
        if (first == ' ' || first == '\t')
            framing->fault = "a folded header";
        return first != '\r' && first != '\n' && !framing->fault;
    }
    if ((first | 0x20) != 'c' || !is_length(rest))
        return true;
    if (framing->length.length == 0)
        framing->length = rest;
    else if (!str_equal(length_value(framing->length), length_value(rest)))
        framing->fault = "two lengths";
    return framing->fault == NULL;
}

/* Why two readers could read the head of a request, and where it ends, in two ways; NULL when they
 * cannot. Looks at nothing behind the head. */
static const char *framing_fault(struct str head)
{
    struct framing framing = {.fault = NULL};
    size_t at = 0;
#ifdef __SSE2__
    for (; head.length - at >= 16; at += 16) {
        __m128i block = _mm_loadu_si128((const __m128i *)(const void *)(head.bytes + at));
        unsigned feeds = (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(block, _mm_set1_epi8('\n')));
        for (; feeds != 0; feeds &= feeds - 1) {
            size_t line = at + (size_t)__builtin_ctz(feeds) + 1;
            if (!look_at_line(&framing, str_slice(head.bytes + line, head.length - line)))
                return framing.fault;
        }
    }
#endif
    for (; at < head.length; at++) {
        size_t line = at + 1;
        if (head.bytes[at] == '\n' &&
            !look_at_line(&framing, str_slice(head.bytes + line, head.length - line)))
            return framing.fault;
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

/* The h2o handler of every request: makes the exchange and calls the owner's handler. */
static void request_handler_register(struct http_server *server, h2o_pathconf_t *path)
{
    struct handler *handler = (struct handler *)h2o_create_handler(path, sizeof(*handler));
    handler->super.on_req = on_request;
    handler->server = server;
}

/* ---- clients that leave ---- */

/*
 * Clients that leave while their request waits: a second epoll beside h2o's.
 */

#define DEPARTURES_PER_ROUND 64

static void on_departures(void *context);

static bool departures_open(struct http_server *server, struct error *error)
{
    server->departures_fd = epoll_create1(EPOLL_CLOEXEC);
    if (server->departures_fd != -1)
        server->departures =
            loop_watch_create(server->loop, server->departures_fd, on_departures, server);
    if (server->departures == NULL)
        return error_set(error, "cannot create an epoll descriptor: %s", strerror(errno));
    return true;
}

static void departures_close(struct http_server *server)
{
    loop_watch_destroy(server->departures);
    if (server->departures_fd != -1)
        close(server->departures_fd);
}

/* `fd` is the socket of the connection. */
static bool departures_watch(struct connection *connection, int fd)
{
    struct epoll_event event = {.events = EPOLLRDHUP | EPOLLET, .data.ptr = connection};
    return epoll_ctl(connection->server->departures_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

/* The client has closed or half-closed. While a request is held, h2o reads nothing and does not
 * notice. At other times h2o is reading and sees it by itself. */
static void on_departures(void *context)
{
    struct http_server *server = http_server_from(context);
    struct epoll_event events[DEPARTURES_PER_ROUND];

    int count = epoll_wait(server->departures_fd, events, DEPARTURES_PER_ROUND, 0);
    /* One departure may end other connections of this batch. So all are marked first, and then
     * taken from a list that a closed connection leaves. */
    for (int i = 0; i < count; i++) {
        struct connection *connection = connection_from(events[i].data.ptr);
        connection->client_left = true;
        if (list_is_empty(&connection->departed))
            list_append(&server->departed, &connection->departed);
    }
    while (!list_is_empty(&server->departed)) {
        struct connection *connection =
            LIST_ENTRY(server->departed.next, struct connection, departed);
        list_remove(&connection->departed);
        if (connection->exchange != NULL) {
            h2o_req_t *request = connection->exchange->request;
            exchange_report_gone(connection->exchange);
            connection_cut(request);
        }
    }
}

/* The kernel finds a client that has vanished silently after about a minute, and one that reads
 * nothing after as long. h2o has no write timeout. */
#define USER_TIMEOUT_MS 60000
/* A client that has just come, or has just been answered, has this time for its request. */
#define SETTLED_MS 1000
#define KEEPALIVE_IDLE_S 30
#define KEEPALIVE_INTERVAL_S 10
#define KEEPALIVE_PROBES 3

/* ---- the end of its socket ---- */

static void on_socket_closed(void *context)
{
    struct connection *connection = connection_from(context);
    connection->socket = NULL;
    connection->ssl = NULL;
    handshake_stop(connection);
    intake_leave(connection);
    list_remove(&connection->resting);
    list_remove(&connection->idle);
    if (connection->users == 0)
        connection_end(connection);
}

/* Ends idle connections, and the others once they have answered. */
static void connection_retire_all(struct http_server *server)
{
    LIST_FOR_EACH_SAFE (node, next, &server->connections) {
        struct connection *connection = LIST_ENTRY(node, struct connection, node);
        connection->is_retired = true;
        if (connection->socket == NULL)
            continue;
        if (connection->exchange != NULL)
            connection->exchange->request->http1_is_persistent = 0;
        else if (connection->socket->input->size == 0)
            shutdown(h2o_socket_get_fd(connection->socket), SHUT_RD);
    }
}

/* How long it has sent parts of a request does not matter: only an answer makes it less idle. */
static struct connection *find_idlest(struct http_server *server)
{
    int64_t before_ms = loop_now_ms(server->loop) - SETTLED_MS;
    for (int rank = 0; rank < IDLE_RANKS; rank++) {
        struct connection *idlest = LIST_ENTRY(server->idle[rank].next, struct connection, idle);
        if (!list_is_empty(&server->idle[rank]) && idlest->idle_since_ms <= before_ms)
            return idlest;
    }
    return NULL;
}

/* Closes the idlest connection of the first rank. false: none has been idle for long enough. */
static bool connection_make_room(struct http_server *server)
{
    struct connection *connection = find_idlest(server);
    if (connection == NULL)
        return false;
    ASSERT(connection->socket != NULL); /* the end of a socket takes its connection from the list */
    h2o_socket_t *socket = connection->socket;
    h2o_socket_cb callback = socket->_cb.read != NULL ? socket->_cb.read : socket->_cb.write;
    list_remove(&connection->idle);
    if (connection->handshake != NULL)
        h2o_socket_close(socket);
    else if (callback != NULL)
        callback(socket, "makes room");
    return true;
}

/* ---- the beginning ---- */

static void set_socket_options(int fd)
{
    static const struct {
        int level;
        int name;
        int value;
    } settings[] = {
        {IPPROTO_TCP, TCP_NODELAY, 1},
        {SOL_SOCKET, SO_KEEPALIVE, 1},
        {IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE_S},
        {IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_INTERVAL_S},
        {IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_PROBES},
        {IPPROTO_TCP, TCP_USER_TIMEOUT, USER_TIMEOUT_MS},
    };
    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++)
        setsockopt(fd, settings[i].level, settings[i].name, &settings[i].value, sizeof(int));
}

/* Bytes that came with the end of a handshake are kept from h2o until its reading is wrapped. h2o
 * would answer them at once, and the connection might be gone. */
static void serve(h2o_socket_t *socket)
{
    struct connection *connection = connection_from(socket->on_close.data);
    struct http_server *server = connection->server;
    h2o_buffer_t *early = socket->input;
    h2o_buffer_init(&socket->input, &h2o_socket_buffer_prototype);
    h2o_http1_accept(&server->accept, socket, *h2o_get_timestamp(&server->h2o, NULL, NULL));
    h2o_buffer_dispose(&socket->input);
    socket->input = early;
    connection_enter(connection);
    intake_wrap(connection); /* may drop it */
    if (connection_leave(connection) && early->size > 0)
        socket->_cb.read(socket, NULL);
}

/* Takes an accepted socket into the server. */
static void connection_add(struct http_server *server, h2o_socket_t *socket)
{
    int fd = h2o_socket_get_fd(socket);
    struct connection *connection = memory_alloc(sizeof(*connection));
    MAGIC_SET(connection, CONNECTION_MAGIC);
    connection->server = server;
    connection->socket = socket;
    connection->is_loopback = address_is_loopback(fd);
    connection->linger_fd = -1;
    list_init(&connection->departed);
    list_init(&connection->resting);
    list_init(&connection->idle);
    list_append(&server->connections, &connection->node);
    connection_rest(connection, IDLE_SILENT);
    server->connection_count++;
    connection_gauge(server, 1);
    socket->on_close.cb = on_socket_closed;
    socket->on_close.data = connection;
    set_socket_options(fd);

    if (!departures_watch(connection, fd)) {
        /* Without the watch a waiting client that leaves would hold its call for ever. */
        h2o_socket_close(socket);
        return;
    }
    if (server->options.tls == NULL) {
        serve(socket);
        return;
    }
    connection->tls = tls_server_ref(server->options.tls);
    handshake_begin(connection, serve);
}

/*
 * The listening socket: opening it, accepting while there are seats, surviving a lack of
 * descriptors.
 */

#define LISTEN_BACKLOG 4096
/* The bound for one round, so that a storm of new clients does not starve the old ones. */
#define ACCEPTS_PER_ROUND 32
#define DRAIN_ROUNDS 128 /* of so many: the longest queue of the kernel */
#define ACCEPT_AGAIN_MS 100

static void server_on_readable(h2o_socket_t *listener, const char *error);
static void on_accept_again(void *context);
static void set_accepting(struct http_server *server, bool accepting);

/* The loops of this process share the port. The kernel would also let another process of this
 * user share it, and would spread the connections over both silently. A bind without sharing
 * fails then. */
static bool is_port_free(const struct addrinfo *address)
{
    const int on = 1;
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd == -1)
        return false;
    bool bound = setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
                 bind(fd, address->ai_addr, address->ai_addrlen) == 0;
    int reason = errno;
    close(fd);
    errno = reason;
    return bound;
}

/* A bound, listening descriptor, or -1 with errno. */
static int open_descriptor(const struct addrinfo *address, bool reuse_port)
{
    const int on = 1;
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd == -1)
        return -1;
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
        (reuse_port && setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) != 0) ||
        bind(fd, address->ai_addr, address->ai_addrlen) != 0 || listen(fd, LISTEN_BACKLOG) != 0) {
        int reason = errno;
        close(fd);
        errno = reason;
        return -1;
    }
    return fd;
}

static bool server_listener_open(struct http_server *server, accepted_callback accepted,
                                 struct error *error)
{
    const struct http_server_options *options = &server->options;
    char host[INET6_ADDRSTRLEN + 1];
    char port[8];
    if (options->address.length >= sizeof(host))
        return error_set(error, "\"%.*s\" is not an IP address", STR_ARGS(options->address));
    memcpy(host, options->address.bytes, options->address.length);
    host[options->address.length] = '\0';
    snprintf(port, sizeof(port), "%u", (unsigned)options->port);

    const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
                                   .ai_socktype = SOCK_STREAM};
    struct addrinfo *address;
    if (getaddrinfo(host, port, &hints, &address) != 0)
        return error_set(error, "\"%s\" is not an IP address", host);
    int fd = options->first_on_port && !is_port_free(address)
                 ? -1
                 : open_descriptor(address, options->reuse_port);
    int reason = errno;
    freeaddrinfo(address);
    if (fd == -1)
        return error_set(error, "cannot listen on %s port %s: %s", host, port, strerror(reason));

    server->accepted = accepted;
    server->port = address_port(fd);
    server->listener = h2o_evloop_socket_create(server->h2o.loop, fd, H2O_SOCKET_FLAG_DONT_READ);
    server->listener->data = server;
    loop_timer_init(&server->accept_again, server->loop, on_accept_again, server);
    set_accepting(server, true);
    return true;
}

static void set_accepting(struct http_server *server, bool accepting)
{
    if (server->accepting == accepting)
        return;
    server->accepting = accepting;
    if (accepting)
        h2o_socket_read_start(server->listener, server_on_readable);
    else
        h2o_socket_read_stop(server->listener);
}

/* A lack of descriptors or memory. The client stays in the queue and the listener readable: without
 * a pause the loop would spin. */
static void pause_accepting(struct http_server *server, int reason)
{
    log_warn("Cannot accept a connection", LOG_TEXT("error", strerror(reason)));
    loop_timer_start(&server->accept_again, ACCEPT_AGAIN_MS);
}

static bool is_client_waiting(const struct http_server *server)
{
    struct pollfd listener = {.fd = h2o_socket_get_fd(server->listener), .events = POLLIN};
    return poll(&listener, 1, 0) == 1;
}

/* Idle connections make room for a client that waits. The reserve is for when there are none. */
static bool take_seat(struct http_server *server)
{
    int most = server->options.max_connections;
    if (most > 0 && server->connection_count >= most && is_client_waiting(server))
        connection_make_room(server);
    if (port_take_seat(server))
        return true;
    if (!is_client_waiting(server))
        return false;
    if (server->options.transport != NULL)
        metrics_count(METRIC_LIMITS_REACHED, STR("connections"));
    while (connection_make_room(server)) {
        if (port_take_seat(server))
            return true;
    }
    set_accepting(server, false);
    loop_timer_start(&server->accept_again, ACCEPT_AGAIN_MS); /* if nobody leaves before */
    return false;
}

static void accept_clients(struct http_server *server)
{
    for (int i = 0; i < ACCEPTS_PER_ROUND && server->listener != NULL; i++) {
        if (!take_seat(server))
            return;
        h2o_socket_t *socket = h2o_evloop_socket_accept(server->listener);
        if (socket != NULL) {
            port_fill_seat(server);
            server->accepted(server, socket);
            continue;
        }
        if (errno == ECONNABORTED || errno == EINTR)
            continue;
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
            pause_accepting(server, errno);
        break;
    }
    port_return_seat(server);
    if (server->listener != NULL)
        set_accepting(server, !loop_timer_is_running(&server->accept_again));
}

static void on_accept_again(void *context)
{
    struct http_server *server = http_server_from(context);
    set_accepting(server, true);
    accept_clients(server);
}

static void server_on_readable(h2o_socket_t *listener, const char *error)
{
    accept_clients(http_server_from(listener->data));
}

static void listener_close(struct http_server *server);

static void listener_drain(struct http_server *server)
{
    if (server->listener == NULL)
        return;
    /* Those that wait already: the kernel would reset them. */
    for (int i = 0; i < DRAIN_ROUNDS && server->listener && is_client_waiting(server); i++)
        accept_clients(server);
    listener_close(server);
}

static void listener_close(struct http_server *server)
{
    if (server->listener == NULL)
        return;
    set_accepting(server, false);
    loop_timer_stop(&server->accept_again);
    port_return_seat(server);
    h2o_socket_close(server->listener);
    server->listener = NULL;
}

static void on_report_drained(void *context);

/* h2o answers by itself what never becomes a request of ours, 413 among it, through the
 * fallback path, and closes. Its log is the one moment when that is known and the socket
 * is still open. */
static void server_on_refused(h2o_logger_t *logger, h2o_req_t *request)
{
    struct connection *connection = connection_of(request);
    if (connection != NULL)
        linger_prepare(connection);
}

static void server_configure(struct http_server *server)
{
    const struct http_server_options *options = &server->options;

    h2o_config_init(&server->config);
    server->config.server_name = h2o_iovec_init(NULL, 0);
    server->config.max_request_entity_size = options->max_body_bytes + 1;
    server->config.http1.req_timeout = (uint64_t)options->read_timeout_ms;
    server->config.http1.upgrade_to_http2 = 0; /* HTTP/2 is off: CVE-2023-44487 */
    h2o_hostconf_t *host =
        h2o_config_register_host(&server->config, h2o_iovec_init(H2O_STRLIT("default")), 65535);
    request_handler_register(server, h2o_config_register_path(host, "/", 0));
    h2o_create_logger(&host->fallback_path, sizeof(h2o_logger_t))->log_access = server_on_refused;
    refusal_register(&host->fallback_path);

    h2o_context_init(&server->h2o, loop_native(server->loop), &server->config);
    server->accept = (h2o_accept_ctx_t){.ctx = &server->h2o, .hosts = server->config.hosts};
}

struct http_server *http_server_create(struct loop *loop, const struct http_server_options *options,
                                       struct error *error)
{
    struct http_server *server = memory_alloc(sizeof(*server));
    MAGIC_SET(server, HTTP_SERVER_MAGIC);
    server->loop = loop;
    server->options = *options;
    server->options.tls = tls_server_ref(options->tls);
    handshake_watch(options->tls);
    server->departures_fd = -1;
    if (options->shared_port == NULL)
        server->own_port = http_port_create(
            options->max_connections > 0 ? options->max_connections + options->reserved_connections
                                         : 0);
    server->shared = options->shared_port != NULL ? options->shared_port : server->own_port;
    list_init(&server->in_line);
    list_init(&server->connections);
    for (int rank = 0; rank < IDLE_RANKS; rank++)
        list_init(&server->idle[rank]);
    list_init(&server->departed);
    intake_open(server);
    responses_open(server);
    loop_timer_init(&server->report_drained, loop, on_report_drained, server);
    server_configure(server);
    if (!departures_open(server, error) || !server_listener_open(server, connection_add, error)) {
        http_server_destroy(server);
        return NULL;
    }
    server->options.address = STR_EMPTY;
    return server;
}

uint16_t http_server_port(const struct http_server *server)
{
    return server->port;
}

void http_server_set_max_body(struct http_server *server, size_t max_body_bytes)
{
    server->options.max_body_bytes = max_body_bytes;
    server->config.max_request_entity_size = max_body_bytes + 1;
}

void http_server_set_tls(struct http_server *server, struct tls_server *tls)
{
    struct tls_server *before = server->options.tls;
    if (tls_server_equal(before, tls))
        return; /* and its tickets go on */
    server->options.tls = tls_server_ref(tls);
    handshake_watch(tls);
    if (!tls_server_admit_alike(before, tls))
        connection_retire_all(server);
    tls_server_unref(before);
}

bool http_is_in_reserve(const struct http_exchange *exchange)
{
    const struct http_server *server = exchange->connection->server;
    bool is_idle = false; /* another connection, which will make room */
    for (int rank = 0; rank < IDLE_RANKS; rank++)
        is_idle |= !list_is_empty(&server->idle[rank]);
    return server->options.max_connections > 0 && !is_idle &&
           server->connection_count > server->options.max_connections;
}

int http_server_connections(const struct http_server *server)
{
    return server->connection_count;
}

/* ---- the graceful end ---- */

void http_server_close_after_answers(struct http_server *server, bool closes)
{
    ASSERT(server->drained == NULL);
    server->h2o.shutdown_requested = closes;
}

static bool has_bytes_waiting(int fd)
{
    char byte;
    return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

/* Idle connections get no request any more. One of which a part has arrived is served. A response
 * that has begun may have promised that its connection stays open: the client may send one more
 * request.
 */
static int drain_request(h2o_req_t *request, void *context)
{
    h2o_socket_t *socket = request->conn->callbacks->get_socket(request->conn);
    if (request->_generator == NULL)
        request->http1_is_persistent = 0;
    if (request->version == 0 && request->pathconf == NULL && socket->input->size == 0 &&
        !has_bytes_waiting(h2o_socket_get_fd(socket)))
        shutdown(h2o_socket_get_fd(socket), SHUT_RD);
    return 0;
}

void http_server_drain(struct http_server *server, loop_callback idle, void *context)
{
    ASSERT(server->drained == NULL); /* drained once */
    ASSERT(idle != NULL);
    server->drained = idle;
    server->drained_context = context;
    /* Not h2o_context_request_shutdown(): it also starts a timer of HTTP/2. */
    server->h2o.shutdown_requested = 1;
    server->config.http1.callbacks.foreach_request(&server->h2o, drain_request, NULL);
    /* After that: clients that have connected a moment ago, or are in their handshake, are served.
     */
    listener_drain(server);
    if (server->connection_count == 0)
        loop_timer_start(&server->report_drained, 0);
}

static void on_report_drained(void *context)
{
    struct http_server *server = http_server_from(context);
    server->drained(server->drained_context); /* may destroy the server */
}

/* ---- the end ---- */

static int server_take_first(h2o_req_t *request, void *context)
{
    h2o_req_t **first = context;
    *first = request;
    return 1;
}

static void cut_all(struct http_server *server)
{
    for (;;) {
        h2o_req_t *request = NULL;
        server->config.http1.callbacks.foreach_request(&server->h2o, server_take_first, &request);
        if (request == NULL)
            break;
        struct connection *connection = connection_of(request);
        if (connection->exchange != NULL)
            exchange_report_gone(connection->exchange);
        connection_cut(request);
    }
    /* Those that linger, and under TLS those that begin or end. */
    while (!list_is_empty(&server->connections)) {
        struct connection *connection =
            LIST_ENTRY(server->connections.next, struct connection, node);
        if (connection->socket != NULL)
            h2o_socket_close(connection->socket);
        else
            connection_remove(connection);
    }
}

void http_server_destroy(struct http_server *server)
{
    if (server == NULL)
        return;
    server->destroying = true;
    listener_close(server);
    cut_all(server);
    ASSERT_NUMBERS(server->connection_count, ==, 0);
    departures_close(server);
    loop_timer_stop(&server->report_drained);
    loop_round_end_finish(&server->round_end);
    responses_close(server);
    /* h2o leaves its queue between threads behind. */
    h2o_multithread_queue_t *queue = server->h2o.queue;
    h2o_context_dispose(&server->h2o);
    free(queue);
    h2o_config_dispose(&server->config);
    tls_server_unref(server->options.tls);
    http_port_destroy(server->own_port);
    MAGIC_CLEAR(server);
    free(server);
}
