/*
 * An HTTP server: h2o's configuration and context, and the life of both.
 */
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server_internal.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"

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

static bool listener_open(struct http_server *server, accepted_callback accepted,
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
    if (!departures_open(server, error) || !listener_open(server, connection_add, error)) {
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
