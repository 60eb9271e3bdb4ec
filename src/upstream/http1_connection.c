/*
 * Connections: a non-blocking socket that the loop watches, and we read and write.
 *
 * h2o would read until nothing is left and hide how much of a request went out; with
 * H2O_SOCKET_FLAG_DONT_READ it only tells when there is something to do. An idle connection
 * is watched, too: whatever comes on it, most often its end, ends it.
 */
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "http1_internal.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/memory.h"

/* Common servers close after five seconds; to be first avoids requests that cross it. */
#define IDLE_LIMIT_MS 4000
#define SMALL_BYTES ((size_t)2048)

static void on_readable(h2o_socket_t *socket, const char *error);
static void on_writable(h2o_socket_t *socket, const char *error);

static int open_socket(const struct http1_address *address)
{
    const int on = 1;
    int fd = socket(address->any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd == -1)
        return -1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    if (connect(fd, &address->any, address->length) == 0 || errno == EINPROGRESS)
        return fd;
    int reason = errno;
    close(fd);
    errno = reason;
    return -1;
}

struct http1_connection *http1_connection_open(struct http1_host *host,
                                               const struct http1_address *address,
                                               struct http1_call *call)
{
    int fd = open_socket(address);
    if (fd == -1)
        return NULL;
    struct http1_connection *connection = memory_alloc(sizeof(*connection));
    MAGIC_SET(connection, HTTP1_CONNECTION_MAGIC);
    list_init(&connection->of_host);
    list_init(&connection->of_client);
    connection->host = host;
    connection->call = call;
    connection->owner = memory_copy_text(call->owner);
    connection->socket =
        h2o_evloop_socket_create(loop_native(host->client->loop), fd, H2O_SOCKET_FLAG_DONT_READ);
    connection->socket->data = connection;
    h2o_socket_notify_write(connection->socket, on_writable);
    return connection;
}

/* ---- what the loop tells ---- */

static void on_readable(h2o_socket_t *socket, const char *error)
{
    struct http1_connection *connection = http1_connection_from(socket->data);
    if (connection->call != NULL)
        connection->call->events->readable(connection->call);
    else
        http1_connection_close(connection);
}

static void on_writable(h2o_socket_t *socket, const char *error)
{
    struct http1_connection *connection = http1_connection_from(socket->data);
    int reason = 0;
    socklen_t length = sizeof(reason);

    if (connection->is_open) {
        connection->call->events->writable(connection->call);
        return;
    }
    if (getsockopt(h2o_socket_get_fd(socket), SOL_SOCKET, SO_ERROR, &reason, &length) != 0)
        reason = errno;
    connection->is_open = reason == 0;
    connection->call->events->connected(connection->call, reason);
}

/* ---- bytes ---- */

void http1_connection_read(struct http1_connection *connection, bool on)
{
    if (on == (h2o_socket_is_reading(connection->socket) != 0))
        return;
    if (on)
        h2o_socket_read_start(connection->socket, on_readable);
    else
        h2o_socket_read_stop(connection->socket);
}

ssize_t http1_connection_receive(struct http1_connection *connection, char *bytes, size_t length)
{
    ssize_t count;
    do
        count = recv(h2o_socket_get_fd(connection->socket), bytes, length, 0);
    while (count == -1 && errno == EINTR);
    return count;
}

static struct iovec piece(struct str s)
{
    return (struct iovec){.iov_base = (void *)(uintptr_t)s.bytes, .iov_len = s.length};
}

/* To put small pieces together costs less than to have the kernel do it. */
static ssize_t send_pieces(int fd, struct str head, struct str body)
{
    char together[SMALL_BYTES];
    if (head.length + body.length > sizeof(together)) {
        const struct iovec pieces[] = {piece(head), piece(body)};
        return writev(fd, pieces, 2);
    }
    if (head.length > 0)
        memcpy(together, head.bytes, head.length);
    if (body.length > 0)
        memcpy(together + head.length, body.bytes, body.length);
    return send(fd, together, head.length + body.length, 0);
}

bool http1_connection_write(struct http1_connection *connection, struct str head, struct str body,
                            size_t *written)
{
    int fd = h2o_socket_get_fd(connection->socket);
    ssize_t count;
    do
        count = send_pieces(fd, head, body);
    while (count == -1 && errno == EINTR);

    if (count == -1 && errno != EAGAIN) {
        /* There may be a response all the same; else this makes the reader find the end. */
        shutdown(fd, SHUT_RDWR);
        return false;
    }
    *written = count == -1 ? 0 : (size_t)count;
    if (*written < head.length + body.length)
        h2o_socket_notify_write(connection->socket, on_writable);
    return true;
}

/* ---- idle ones ---- */

static void leave_idle(struct http1_connection *connection)
{
    if (list_is_empty(&connection->of_host))
        return;
    list_remove(&connection->of_host);
    list_remove(&connection->of_client);
    connection->host->client->idle_count--;
}

static bool is_of_owner(const struct http1_connection *connection, const struct http1_call *call)
{
    const char *one = connection->owner, *other = call->owner;
    return one == other || (one != NULL && other != NULL && strcmp(one, other) == 0);
}

static struct http1_connection *take_idle(struct http1_call *call)
{
    LIST_FOR_EACH_SAFE (node, next, &call->host->idle) {
        struct http1_connection *connection = LIST_ENTRY(node, struct http1_connection, of_host);
        if (!is_of_owner(connection, call))
            continue;
        leave_idle(connection);
        connection->call = call;
        return connection;
    }
    return NULL;
}

/* The loop may not yet have told that one was closed, and a POST goes out only once. What has come
 * since the last answer is no answer to the next request. False when there was none to close. */
static bool close_unusable(struct http1_call *const *calls, struct pollfd *looks, size_t count)
{
    bool any = false;
    int ready;
    do
        ready = poll(looks, (nfds_t)count, 0);
    while (ready == -1 && errno == EINTR);
    for (size_t i = 0; i < count && ready != 0; i++) {
        if (looks[i].fd == -1 || (ready != -1 && looks[i].revents == 0))
            continue;
        http1_connection_close(calls[i]->connection);
        calls[i]->connection = NULL;
        any = true;
    }
    return any;
}

void http1_connections_reuse(struct http1_call *const *calls, size_t count)
{
    struct pollfd looks[HTTP1_TOGETHER];
    bool any;
    do {
        any = false;
        for (size_t i = 0; i < count; i++) {
            bool has_one = calls[i]->connection != NULL; /* and it was looked at */
            if (!has_one)
                calls[i]->connection = take_idle(calls[i]);
            bool is_new = !has_one && calls[i]->connection != NULL;
            looks[i] = (struct pollfd){
                .fd = is_new ? h2o_socket_get_fd(calls[i]->connection->socket) : -1,
                .events = POLLIN | POLLRDHUP,
            };
            any |= is_new;
        }
    } while (any && close_unusable(calls, looks, count));
}

void http1_connection_release(struct http1_connection *connection)
{
    struct http1_client *client = connection->host->client;

    connection->call = NULL;
    connection->was_idle = true;
    connection->idle_since_ms = loop_now_ms(client->loop);
    list_append(connection->host->idle.next, &connection->of_host); /* before the first */
    list_append(&client->idle, &connection->of_client);
    client->idle_count++;
    http1_connection_read(connection, true);
    if (!loop_timer_is_running(&client->close_idle))
        loop_timer_start(&client->close_idle, IDLE_LIMIT_MS);
    if (client->idle_count > client->max_idle)
        http1_connection_close(LIST_ENTRY(client->idle.next, struct http1_connection, of_client));
}

void http1_connection_close_idle(void *context)
{
    struct http1_client *client = http1_client_from(context);
    const int64_t now_ms = clock_monotonic_ms();

    LIST_FOR_EACH_SAFE (node, next, &client->idle) {
        struct http1_connection *oldest = LIST_ENTRY(node, struct http1_connection, of_client);
        int64_t left_ms = oldest->idle_since_ms + IDLE_LIMIT_MS - now_ms;
        if (left_ms > 0) {
            loop_timer_start(&client->close_idle, left_ms);
            return;
        }
        http1_connection_close(oldest);
    }
}

void http1_connection_close(struct http1_connection *connection)
{
    leave_idle(connection);
    h2o_socket_close(connection->socket);
    free(connection->owner);
    MAGIC_CLEAR(connection);
    free(connection);
}
