/*
 * A connection while it is open: its client's address, holding back h2o's reads, and the cut.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "server_internal.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/metrics.h"

/*
 * The addresses at both ends of a socket.
 */

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_storage space;
};

static bool read_local(int fd, union address *address)
{
    socklen_t length = sizeof(*address);
    *address = (union address){.space = {0}};
    return getsockname(fd, &address->any, &length) == 0;
}

bool address_is_loopback(int fd)
{
    union address address;
    if (!read_local(fd, &address))
        return false;
    if (address.any.sa_family == AF_INET)
        return ntohl(address.v4.sin_addr.s_addr) >> 24 == 127;
    if (address.any.sa_family != AF_INET6)
        return false;
    const struct in6_addr *v6 = &address.v6.sin6_addr;
    return IN6_IS_ADDR_LOOPBACK(v6) || (IN6_IS_ADDR_V4MAPPED(v6) && v6->s6_addr[12] == 127);
}

uint16_t address_port(int fd)
{
    union address address;
    if (!read_local(fd, &address))
        return 0;
    return ntohs(address.any.sa_family == AF_INET6 ? address.v6.sin6_port : address.v4.sin_port);
}

/* The other end's address; leaves `text` alone when the socket has none. */
static void address_write_peer(int fd, char text[INET6_ADDRSTRLEN])
{
    union address address = {.space = {0}};
    socklen_t length = sizeof(address);
    if (getpeername(fd, &address.any, &length) != 0)
        return;
    bool is_v4 = address.any.sa_family == AF_INET;
    const void *bytes =
        is_v4 ? (const void *)&address.v4.sin_addr : (const void *)&address.v6.sin6_addr;
    inet_ntop(address.any.sa_family, bytes, text, INET6_ADDRSTRLEN);
}

/* The end of a connection whose socket is closed: it lingers, and goes once no call uses it. */

void connection_gauge(const struct http_server *server, double change)
{
    if (server->options.transport != NULL)
        metrics_add(METRIC_CONNECTIONS_ACTIVE, change,
                    METRIC_LABELS(str_from(server->options.transport)));
}

/* A connection less: the drain may be complete. */
static void report_closed(struct http_server *server)
{
    if (server->destroying)
        return;
    if (server->drained != NULL && server->connection_count == 0)
        loop_timer_start(&server->report_drained, 0);
}

void connection_remove(struct connection *connection)
{
    struct http_server *server = connection->server;
    ASSERT(connection->socket == NULL && connection->exchange == NULL);
    ASSERT_NUMBERS(server->connection_count, >, 0);
    linger_stop(connection);
    list_remove(&connection->departed);
    list_remove(&connection->node);
    tls_server_unref(connection->tls);
    free(connection->certificate);
    MAGIC_CLEAR(connection);
    free(connection);
    server->connection_count--;
    connection_gauge(server, -1);
    port_leave(server);
    report_closed(server);
}

static void on_linger_end(void *context)
{
    connection_remove(connection_from(context));
}

void connection_end(struct connection *connection)
{
    if (!linger_start(connection, on_linger_end))
        connection_remove(connection);
}

void connection_enter(struct connection *connection)
{
    connection->users++;
}

bool connection_leave(struct connection *connection)
{
    ASSERT_NUMBERS(connection->users, >, 0);
    connection->users--;
    if (connection->socket != NULL)
        return true;
    if (connection->users == 0)
        connection_end(connection);
    return false;
}

struct connection *connection_of(h2o_req_t *request)
{
    return request->conn->callbacks->get_socket(request->conn)->on_close.data;
}

struct str connection_peer(struct connection *connection)
{
    if (connection->peer[0] == '\0' && connection->socket != NULL)
        address_write_peer(h2o_socket_get_fd(connection->socket), connection->peer);
    return str_from(connection->peer);
}

struct str connection_holder(struct connection *connection)
{
    return connection->holder[0] != '\0' ? str_from(connection->holder)
                                         : connection_peer(connection);
}

void connection_rest(struct connection *connection, enum idle_rank rank)
{
    struct http_server *server = connection->server;
    connection->idle_since_ms = loop_now_ms(server->loop);
    list_remove(&connection->idle);
    list_append(&server->idle[rank], &connection->idle);
}

/* The client has sent something while its request is held: its end, or the next request. */
static void on_early(h2o_socket_t *socket, const char *error)
{
    h2o_socket_read_stop(socket);
}

void connection_hold(struct connection *connection)
{
    ASSERT(connection->socket != NULL);
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

/* ---- the cut ---- */

/* Ends a response as incomplete. It is not begun, or between two writes. */
static void connection_send_error(h2o_req_t *request)
{
    static h2o_generator_t nothing = {NULL, NULL};

    if (request->_generator == NULL) {
        /* No response was begun. h2o must begin one now, and it must not go out. */
        h2o_socket_t *socket = request->conn->callbacks->get_socket(request->conn);
        shutdown(h2o_socket_get_fd(socket), SHUT_RDWR);
        request->res.status = 500;
        request->res.content_length = 0;
        h2o_start_response(request, &nothing);
    }
    h2o_send(request, NULL, 0, H2O_SEND_STATE_ERROR);
}

/* h2o has no call to close a connection from outside. It closes one when the read or the write that
 * it waits for reports an error. A request that is held, or between two writes, waits for neither,
 * so a write is begun just for that. */
void connection_cut(h2o_req_t *request)
{
    static const char reason[] = "cut by the server";
    h2o_socket_t *socket = request->conn->callbacks->get_socket(request->conn);

    /* A TLS close notification would tell the client that it has the whole response. */
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
        connection_send_error(request);
    /* Without a write under way this has closed the socket already. Its memory stays until the next
     * round. Under TLS, h2o ends a connection with a message of its own, and must see that one is
     * not sent yet. */
    h2o_socket_cb written = socket->_cb.write;
    if (written != NULL)
        written(socket, reason);
}
