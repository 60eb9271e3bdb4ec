/*
 * Connections: from accept to close, and the clients that leave while they wait.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http_internal.h"

#include <h2o/http1.h>

#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"

/* A client that has vanished without a word is found after about a minute, one that takes
 * nothing of what is sent to it after as long: h2o has no write timeout. */
#define USER_TIMEOUT_MS 60000
#define KEEPALIVE_IDLE_S 30
#define KEEPALIVE_INTERVAL_S 10
#define KEEPALIVE_PROBES 3

#define DEPARTURES_PER_ROUND 64

static void on_departures(void *context);

bool departures_open(struct http_server *server, struct error *error)
{
    server->departures_fd = epoll_create1(EPOLL_CLOEXEC);
    if (server->departures_fd != -1)
        server->departures =
            loop_watch_create(server->loop, server->departures_fd, on_departures, server);
    if (server->departures == NULL)
        return error_set(error, "cannot create an epoll descriptor: %s", strerror(errno));
    return true;
}

void departures_close(struct http_server *server)
{
    loop_watch_destroy(server->departures);
    if (server->departures_fd != -1)
        close(server->departures_fd);
}

/* The client has closed or half-closed. h2o reads nothing while a request is held, so that
 * it would not notice; with nothing held, h2o is reading and sees it by itself. */
static void on_departures(void *context)
{
    struct http_server *server = http_server_from(context);
    struct epoll_event events[DEPARTURES_PER_ROUND];

    int count = epoll_wait(server->departures_fd, events, DEPARTURES_PER_ROUND, 0);
    /* One departure may lead to the end of other connections of this batch: first mark all,
     * then take them from a list that a closed connection leaves. */
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
            exchange_tell_gone(connection->exchange);
            connection_cut(request);
        }
    }
}

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_storage space;
};

static bool local_end_is_loopback(int fd)
{
    union address address = {.space = {0}};
    socklen_t length = sizeof(address);
    if (getsockname(fd, &address.any, &length) != 0)
        return false;
    if (address.any.sa_family == AF_INET)
        return ntohl(address.v4.sin_addr.s_addr) >> 24 == 127;
    if (address.any.sa_family != AF_INET6)
        return false;
    const struct in6_addr *v6 = &address.v6.sin6_addr;
    return IN6_IS_ADDR_LOOPBACK(v6) || (IN6_IS_ADDR_V4MAPPED(v6) && v6->s6_addr[12] == 127);
}

struct str connection_peer(struct connection *connection)
{
    union address address = {.space = {0}};
    socklen_t length = sizeof(address);
    if (connection->peer[0] == '\0' && connection->socket != NULL &&
        getpeername(h2o_socket_get_fd(connection->socket), &address.any, &length) == 0) {
        bool is_v4 = address.any.sa_family == AF_INET;
        const void *bytes =
            is_v4 ? (const void *)&address.v4.sin_addr : (const void *)&address.v6.sin6_addr;
        inet_ntop(address.any.sa_family, bytes, connection->peer, sizeof(connection->peer));
    }
    return str_from(connection->peer);
}

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

static void on_socket_closed(void *context)
{
    struct connection *connection = connection_from(context);
    connection->socket = NULL;
    connection->ssl = NULL;
    handshake_stop(connection);
    intake_leave(connection);
    list_remove(&connection->resting);
    if (connection->is_open != NULL)
        *connection->is_open = false;
    if (!linger_start(connection))
        connection_remove(connection);
}

static void count_connection(const struct http_server *server, double change)
{
    if (server->options.transport != NULL)
        metrics_add(METRIC_CONNECTIONS_ACTIVE, change,
                    METRIC_LABELS(str_from(server->options.transport)));
}

void connection_add(struct http_server *server, h2o_socket_t *socket)
{
    int fd = h2o_socket_get_fd(socket);
    struct connection *connection = memory_alloc(sizeof(*connection));
    MAGIC_SET(connection, CONNECTION_MAGIC);
    connection->server = server;
    connection->socket = socket;
    connection->is_loopback = local_end_is_loopback(fd);
    connection->linger_fd = -1;
    list_init(&connection->departed);
    list_init(&connection->resting);
    list_append(&server->connections, &connection->node);
    server->connection_count++;
    count_connection(server, 1);
    socket->on_close.cb = on_socket_closed;
    socket->on_close.data = connection;
    set_socket_options(fd);

    struct epoll_event event = {.events = EPOLLRDHUP | EPOLLET, .data.ptr = connection};
    if (epoll_ctl(server->departures_fd, EPOLL_CTL_ADD, fd, &event) != 0) {
        /* Without it a waiting client that leaves would hold its call for ever. */
        h2o_socket_close(socket);
        return;
    }
    listener_update(server);
    if (server->options.tls == NULL) {
        connection_serve(socket);
        return;
    }
    connection->tls = tls_server_ref(server->options.tls);
    handshake_begin(connection);
}

/* The words that came with the end of a handshake are kept from h2o until its reading is wrapped:
 * it would answer them at once, and the connection might be gone. */
void connection_serve(h2o_socket_t *socket)
{
    struct connection *connection = connection_from(socket->on_close.data);
    struct http_server *server = connection->server;
    h2o_buffer_t *early = socket->input;
    h2o_buffer_init(&socket->input, &h2o_socket_buffer_prototype);
    h2o_http1_accept(&server->accept, socket, *h2o_get_timestamp(&server->h2o, NULL, NULL));
    h2o_buffer_dispose(&socket->input);
    socket->input = early;
    bool is_open = true;
    connection->is_open = &is_open;
    intake_wrap(connection); /* which may drop it */
    if (!is_open)
        return;
    connection->is_open = NULL;
    if (early->size > 0)
        socket->_cb.read(socket, NULL);
}

void connection_retire_all(struct http_server *server)
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

void connection_remove(struct connection *connection)
{
    struct http_server *server = connection->server;
    linger_stop(connection);
    list_remove(&connection->departed);
    list_remove(&connection->node);
    tls_server_unref(connection->tls);
    free(connection->certificate);
    MAGIC_CLEAR(connection);
    free(connection);
    server->connection_count--;
    count_connection(server, -1);
    server_connection_closed(server);
}

struct connection *connection_of(h2o_req_t *request)
{
    return request->conn->callbacks->get_socket(request->conn)->on_close.data;
}

/* Something came while a request is held: the end, or the next request. */
static void on_early(h2o_socket_t *socket, const char *error)
{
    h2o_socket_read_stop(socket);
}

void connection_hold(struct connection *connection)
{
    h2o_socket_dont_read(connection->socket, 1);
    h2o_socket_read_start(connection->socket, on_early);
}

void connection_let_go(struct connection *connection)
{
    if (connection->socket == NULL)
        return;
    h2o_socket_dont_read(connection->socket, 0);
    if (connection->socket->_cb.read == on_early)
        h2o_socket_read_stop(connection->socket);
}

/* h2o has no call to close a connection from outside. What closes it is an error reported to
 * whatever it waits for: a read, or a write; for a request that is held or between two
 * writes, one begun just for that. */
void connection_cut(h2o_req_t *request)
{
    static const char reason[] = "cut by the server";
    h2o_socket_t *socket = request->conn->callbacks->get_socket(request->conn);

    /* A farewell would say that what the client has is all. */
    const struct connection *connection = socket->on_close.data;
    if (connection->ssl != NULL)
        SSL_set_quiet_shutdown(connection->ssl, 1);
    request->http1_is_persistent = 0;
    connection_let_go(socket->on_close.data);
    if (socket->_cb.write == NULL && socket->_cb.read != NULL) {
        socket->_cb.read(socket, reason);
        return;
    }
    if (socket->_cb.write == NULL)
        response_send_error(request);
    /* With nothing to write that has closed the socket already. Its memory stays until the
     * next round, and then no write is under way. Under TLS, h2o would end a connection with a
     * word of its own, and must see that one is not yet out. */
    h2o_socket_cb written = socket->_cb.write;
    if (written != NULL)
        written(socket, reason);
}
