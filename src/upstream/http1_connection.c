/*
 * Connections: a non-blocking socket of which the loop tells once that there is something to do,
 * and which we read and write.
 *
 * An idle connection is watched, too: whatever comes on it, most often its end, ends it.
 */
#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "http1_client.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/memory.h"

/* Common servers close after five seconds; to be first avoids requests that cross it. */
#define IDLE_LIMIT_MS 4000

/* The events after which a read may find something. */
#define MAY_READ (EPOLLIN | LOOP_EDGE_HANGS_UP)
#define MAY_WRITE (EPOLLOUT | LOOP_EDGE_HANGS_UP)

static void on_events(void *context);

static int open_socket(const struct http1_address *address)
{
    static const struct {
        int level, name, value;
    } options[] = {
        {IPPROTO_TCP, TCP_NODELAY, 1},
        {SOL_SOCKET, SO_KEEPALIVE, 1},
        {IPPROTO_TCP, TCP_KEEPIDLE, UPSTREAM_KEEPALIVE_IDLE_S},
        {IPPROTO_TCP, TCP_KEEPINTVL, UPSTREAM_KEEPALIVE_INTERVAL_S},
        {IPPROTO_TCP, TCP_KEEPCNT, UPSTREAM_KEEPALIVE_PROBES},
    };
    int fd = socket(address->any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd == -1)
        return -1;
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        setsockopt(fd, options[i].level, options[i].name, &options[i].value, sizeof(int));
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
    connection->fd = fd;
    if (loop_edge_start(&connection->edge, host->client->loop, fd, on_events, connection))
        return connection;
    int reason = errno;
    http1_connection_close(connection);
    errno = reason;
    return NULL;
}

/* ---- what the loop tells ---- */

static bool may_read(const struct http1_connection *connection)
{
    return (connection->edge.events & MAY_READ) != 0;
}

/* Whether one without a call is open and has nothing to read. After a read that filled its memory
 * the loop's word is no answer. */
static bool is_quiet(struct http1_connection *connection)
{
    char byte;
    if (!may_read(connection))
        return true;
    if (recv(connection->fd, &byte, 1, MSG_PEEK) != -1 || errno != EAGAIN)
        return false;
    connection->edge.events &= ~(uint32_t)MAY_READ;
    return true;
}

static void finish_connecting(struct http1_connection *connection)
{
    int reason = 0;
    socklen_t length = sizeof(reason);

    if ((connection->edge.events & MAY_WRITE) == 0)
        return;
    if (getsockopt(connection->fd, SOL_SOCKET, SO_ERROR, &reason, &length) != 0)
        reason = errno;
    connection->is_open = reason == 0;
    connection->call->events->connected(connection->call, reason);
}

/* To write more of a request ends no call; to read may. */
static void on_events(void *context)
{
    struct http1_connection *connection = http1_connection_from(context);
    struct http1_call *call = connection->call;

    if (call == NULL) {
        if (!is_quiet(connection))
            http1_connection_close(connection);
        return;
    }
    if (!connection->is_open) {
        finish_connecting(connection);
        return;
    }
    if (connection->wants_room && (connection->edge.events & MAY_WRITE) != 0) {
        connection->wants_room = false;
        call->events->writable(call);
    }
    if (connection->wants_bytes && may_read(connection))
        call->events->readable(call);
}

/* ---- bytes ---- */

void http1_connection_read(struct http1_connection *connection, bool on)
{
    if (on && !connection->wants_bytes && may_read(connection))
        loop_edge_again(&connection->edge);
    connection->wants_bytes = on;
}

/* The loop tells of what comes after a read that did not fill its memory. An end it may have told
 * already, together with the bytes before it. */
ssize_t http1_connection_receive(struct http1_connection *connection, char *bytes, size_t length)
{
    ssize_t count;
    do
        count = recv(connection->fd, bytes, length, 0);
    while (count == -1 && errno == EINTR);

    if (count == -1 && errno == EAGAIN)
        connection->edge.events &= ~(uint32_t)MAY_READ;
    else if (count > 0 && (size_t)count < length)
        connection->edge.events &= ~(uint32_t)EPOLLIN;
    if (may_read(connection))
        loop_edge_again(&connection->edge);
    return count;
}

static struct iovec http1_connection_piece(struct str s)
{
    return (struct iovec){.iov_base = (void *)(uintptr_t)s.bytes, .iov_len = s.length};
}

static ssize_t send_pieces(int fd, struct str head, struct str body)
{
    if (head.length > 0 && body.length > 0 && head.bytes + head.length != body.bytes) {
        const struct iovec pieces[] = {http1_connection_piece(head), http1_connection_piece(body)};
        return writev(fd, pieces, 2);
    }
    return send(fd, head.length > 0 ? head.bytes : body.bytes, head.length + body.length, 0);
}

bool http1_connection_write(struct http1_connection *connection, struct str head, struct str body,
                            size_t *written)
{
    ssize_t count;
    do
        count = send_pieces(connection->fd, head, body);
    while (count == -1 && errno == EINTR);

    if (count == -1 && errno != EAGAIN) {
        /* There may be a response all the same; else this makes the reader find the end. */
        shutdown(connection->fd, SHUT_RDWR);
        return false;
    }
    *written = count == -1 ? 0 : (size_t)count;
    if (*written < head.length + body.length) {
        connection->edge.events &= ~(uint32_t)EPOLLOUT;
        connection->wants_room = true;
    }
    return true;
}

/* ---- idle ones ---- */

static void leave_idle(struct http1_connection *connection)
{
    if (list_is_empty(&connection->of_host))
        return;
    list_remove(&connection->of_host);
    list_remove(&connection->of_client);
    ASSERT_NUMBERS(connection->host->client->idle_count, >, 0);
    connection->host->client->idle_count--;
}

static bool http1_connection_is_of_owner(const struct http1_connection *connection,
                                         const struct http1_call *call)
{
    const char *one = connection->owner, *other = call->owner;
    return one == other || (one != NULL && other != NULL && strcmp(one, other) == 0);
}

/* A POST goes out only once, so the connection must be open; and what has come since the last
 * answer is no answer to the next request. */
static struct http1_connection *take_idle(struct http1_call *call)
{
    LIST_FOR_EACH_SAFE (node, next, &call->host->idle) {
        struct http1_connection *connection = LIST_ENTRY(node, struct http1_connection, of_host);
        if (!http1_connection_is_of_owner(connection, call))
            continue;
        if (!is_quiet(connection)) {
            http1_connection_close(connection);
            continue;
        }
        ASSERT(connection->call == NULL); /* an idle one has none */
        leave_idle(connection);
        connection->call = call;
        return connection;
    }
    return NULL;
}

void http1_connections_reuse(struct http1_call *const *calls, size_t count)
{
    loop_edges_look(calls[0]->client->loop);
    for (size_t i = 0; i < count; i++)
        calls[i]->connection = take_idle(calls[i]);
}

void http1_connection_release(struct http1_connection *connection)
{
    struct http1_client *client = connection->host->client;

    ASSERT(list_is_empty(&connection->of_host)); /* not idle already */
    connection->call = NULL;
    if (!is_quiet(connection)) {
        http1_connection_close(connection);
        return;
    }
    connection->was_idle = true;
    connection->idle_since_ms = loop_now_ms(client->loop);
    list_append(connection->host->idle.next, &connection->of_host); /* before the first */
    list_append(&client->idle, &connection->of_client);
    client->idle_count++;
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
    ASSERT(connection->fd != -1);
    leave_idle(connection);
    loop_edge_stop(&connection->edge);
    close(connection->fd);
    free(connection->owner);
    MAGIC_CLEAR(connection);
    free(connection);
}
