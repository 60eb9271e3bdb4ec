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

/* ---- the cut ---- */

/* Ends a response that is not begun or is between two writes, as incomplete. */
static void send_error(h2o_req_t *request)
{
    static h2o_generator_t nothing = {NULL, NULL};

    if (request->_generator == NULL) {
        /* Nothing was begun: what h2o needs to begin now does not go out. */
        h2o_socket_t *socket = request->conn->callbacks->get_socket(request->conn);
        shutdown(h2o_socket_get_fd(socket), SHUT_RDWR);
        request->res.status = 500;
        request->res.content_length = 0;
        h2o_start_response(request, &nothing);
    }
    h2o_send(request, NULL, 0, H2O_SEND_STATE_ERROR);
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
        send_error(request);
    /* With nothing to write that has closed the socket already. Its memory stays until the
     * next round, and then no write is under way. Under TLS, h2o would end a connection with a
     * word of its own, and must see that one is not yet out. */
    h2o_socket_cb written = socket->_cb.write;
    if (written != NULL)
        written(socket, reason);
}
