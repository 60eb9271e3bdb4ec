/*
 * A connection while it is open: its client's address, holding back h2o's reads, and the cut.
 */
#include <openssl/ssl.h>
#include <sys/socket.h>

#include "http_internal.h"

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
static void send_error(h2o_req_t *request)
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
        send_error(request);
    /* Without a write under way this has closed the socket already. Its memory stays until the next
     * round. Under TLS, h2o ends a connection with a message of its own, and must see that one is
     * not sent yet. */
    h2o_socket_cb written = socket->_cb.write;
    if (written != NULL)
        written(socket, reason);
}
