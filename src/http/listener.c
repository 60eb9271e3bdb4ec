/*
 * The listening socket: opening it, accepting while there are seats, surviving a lack of
 * descriptors.
 */
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http_internal.h"
#include "taskgate/core/log.h"
#include "taskgate/core/metrics.h"

#define LISTEN_BACKLOG 4096
/* The bound for one round, so that a storm of new clients does not starve the old ones. */
#define ACCEPTS_PER_ROUND 32
#define DRAIN_ROUNDS 128 /* of so many: the longest queue of the kernel */
#define ACCEPT_AGAIN_MS 100

static void on_readable(h2o_socket_t *listener, const char *error);
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

bool listener_open(struct http_server *server, accepted_callback accepted, struct error *error)
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
        h2o_socket_read_start(server->listener, on_readable);
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

static void on_readable(h2o_socket_t *listener, const char *error)
{
    accept_clients(http_server_from(listener->data));
}

void listener_drain(struct http_server *server)
{
    if (server->listener == NULL)
        return;
    /* Those that wait already: the kernel would reset them. */
    for (int i = 0; i < DRAIN_ROUNDS && server->listener && is_client_waiting(server); i++)
        accept_clients(server);
    listener_close(server);
}

void listener_close(struct http_server *server)
{
    if (server->listener == NULL)
        return;
    set_accepting(server, false);
    loop_timer_stop(&server->accept_again);
    port_return_seat(server);
    h2o_socket_close(server->listener);
    server->listener = NULL;
}
