/*
 * The lingering close, for a request that is refused before its body was read (413). When a socket
 * is closed with unread bytes, the kernel sends a reset, and the client may lose the answer. So
 * this file reads and drops bytes until the client has seen the answer and closes, for a short time
 * at most. h2o 2.2.5 cannot do it. A duplicate of the descriptor keeps the connection alive after
 * h2o has closed its own.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server_internal.h"

#define LINGER_MS 2000
#define READS_PER_ROUND 16

void linger_prepare(struct connection *connection)
{
    if (connection->linger_fd == -1 && !connection->client_left && !connection->server->destroying)
        connection->linger_fd = fcntl(h2o_socket_get_fd(connection->socket), F_DUPFD_CLOEXEC, 0);
}

static void on_linger_readable(void *context)
{
    struct connection *connection = connection_from(context);
    char dropped[16384];

    for (int i = 0; i < READS_PER_ROUND; i++) {
        ssize_t count = recv(connection->linger_fd, dropped, sizeof(dropped), MSG_DONTWAIT);
        if (count > 0)
            continue;
        if (count == 0 || (errno != EAGAIN && errno != EINTR))
            connection->linger_ended(connection);
        return;
    }
}

bool linger_start(struct connection *connection, loop_callback ended)
{
    struct http_server *server = connection->server;

    if (connection->linger_fd == -1 || server->destroying)
        return false;
    shutdown(connection->linger_fd, SHUT_WR);
    connection->linger_watch =
        loop_watch_create(server->loop, connection->linger_fd, on_linger_readable, connection);
    if (connection->linger_watch == NULL)
        return false;
    connection->linger_ended = ended;
    loop_timer_init(&connection->linger_end, server->loop, ended, connection);
    loop_timer_start(&connection->linger_end, LINGER_MS);
    return true;
}

void linger_stop(struct connection *connection)
{
    if (connection->linger_watch != NULL) {
        loop_timer_stop(&connection->linger_end);
        loop_watch_destroy(connection->linger_watch);
        connection->linger_watch = NULL;
    }
    if (connection->linger_fd != -1)
        close(connection->linger_fd);
    connection->linger_fd = -1;
}
