/* The life of a connection: accepted, served, closed. */
#include <errno.h>
#include <h2o.h>
#include <h2o/http1.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server_internal.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"

/*
 * Clients that leave while their request waits: a second epoll beside h2o's.
 */

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

bool connection_make_room(struct http_server *server)
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

void connection_add(struct http_server *server, h2o_socket_t *socket)
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
