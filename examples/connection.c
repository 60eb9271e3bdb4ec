/* Accepts connections and notices clients that go away while they are being answered. */
#include "connection.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "reply.h"

#define ACCEPTS_PER_WAKEUP 16
#define SPARE_DESCRIPTORS ((rlim_t)32)
#define UNACKNOWLEDGED_MS 30000

static int bind_listener(const char *host, uint16_t port, uint16_t *bound);
static void on_accept(h2o_socket_t *listener, const char *error);
static void on_watch(h2o_socket_t *watch, const char *error);
static void on_close(void *data);

static size_t descriptor_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur <= 2 * SPARE_DESCRIPTORS)
        return (size_t)SPARE_DESCRIPTORS;
    return (size_t)limit.rlim_cur - SPARE_DESCRIPTORS;
}

bool connections_open(struct connections *connections, h2o_context_t *context, const char *host,
                      uint16_t port, uint16_t *bound)
{
    *connections = (struct connections){.watch_descriptor = -1, .limit = descriptor_limit()};
    connections->accept.ctx = context;
    connections->accept.hosts = context->globalconf->hosts;
    h2o_linklist_init_anchor(&connections->open);

    connections->watch_descriptor = epoll_create1(EPOLL_CLOEXEC);
    if (connections->watch_descriptor == -1) {
        fprintf(stderr, "cannot watch connections: %s\n", strerror(errno));
        return false;
    }
    int descriptor = bind_listener(host, port, bound);
    if (descriptor == -1) {
        close(connections->watch_descriptor);
        return false;
    }
    connections->watch = h2o_evloop_socket_create(context->loop, connections->watch_descriptor,
                                                  H2O_SOCKET_FLAG_DONT_READ);
    connections->watch->data = connections;
    h2o_socket_read_start(connections->watch, on_watch);

    connections->listener =
        h2o_evloop_socket_create(context->loop, descriptor, H2O_SOCKET_FLAG_DONT_READ);
    connections->listener->data = connections;
    h2o_socket_read_start(connections->listener, on_accept);
    return true;
}

static uint16_t port_of(int descriptor)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } address = {.v6 = {0}};
    socklen_t length = sizeof(address);
    if (getsockname(descriptor, &address.any, &length) != 0)
        return 0;
    return ntohs(address.any.sa_family == AF_INET6 ? address.v6.sin6_port : address.v4.sin_port);
}

static int bind_listener(const char *host, uint16_t port, uint16_t *bound)
{
    char service[8];
    snprintf(service, sizeof(service), "%u", (unsigned)port);
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE};
    struct addrinfo *address = NULL;
    int failed = getaddrinfo(host, service, &hints, &address);
    if (failed != 0) {
        fprintf(stderr, "--host %s: %s; give a numeric address such as 127.0.0.1\n", host,
                gai_strerror(failed));
        return -1;
    }
    int on = 1;
    int descriptor = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (descriptor == -1 ||
        setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
        bind(descriptor, address->ai_addr, address->ai_addrlen) != 0 ||
        listen(descriptor, SOMAXCONN) != 0) {
        fprintf(stderr, "cannot listen on %s port %u: %s; choose another with --port\n", host,
                (unsigned)port, strerror(errno));
        if (descriptor != -1)
            close(descriptor);
        descriptor = -1;
    } else {
        *bound = port_of(descriptor);
    }
    freeaddrinfo(address);
    return descriptor;
}

static void accept_one(struct connections *connections, h2o_socket_t *accepted)
{
    struct connection *connection = h2o_mem_alloc(sizeof(*connection));
    *connection = (struct connection){
        .owner = connections, .socket = accepted, .descriptor = h2o_socket_get_fd(accepted)};
    h2o_linklist_insert(&connections->open, &connection->link);
    connections->count++;
    accepted->on_close.cb = on_close;
    accepted->on_close.data = connection;

    /* HTTP/1 has no write timeout: a client that vanished without a word is found by the kernel. */
    unsigned unacknowledged = UNACKNOWLEDGED_MS;
    setsockopt(connection->descriptor, IPPROTO_TCP, TCP_USER_TIMEOUT, &unacknowledged,
               sizeof(unacknowledged));
    struct epoll_event interest = {.events = EPOLLRDHUP | EPOLLET, .data = {.ptr = connection}};
    epoll_ctl(connections->watch_descriptor, EPOLL_CTL_ADD, connection->descriptor, &interest);
    h2o_accept(&connections->accept, accepted);
}

static void on_accept(h2o_socket_t *listener, const char *error)
{
    struct connections *connections = listener->data;
    if (error != NULL)
        return;
    for (int i = 0; i < ACCEPTS_PER_WAKEUP; i++) {
        if (connections->count >= connections->limit) {
            h2o_socket_read_stop(listener);
            return;
        }
        h2o_socket_t *accepted = h2o_evloop_socket_accept(listener);
        if (accepted == NULL)
            return;
        accept_one(connections, accepted);
    }
}

static void on_close(void *data)
{
    struct connection *connection = data;
    struct connections *connections = connection->owner;
    h2o_linklist_unlink(&connection->link);
    free(connection);
    connections->count--;
    if (connections->listener != NULL && !h2o_socket_is_reading(connections->listener))
        h2o_socket_read_start(connections->listener, on_accept);
}

/* One event at a time: handling one may close, and so free, another connection. */
static void on_watch(h2o_socket_t *watch, const char *error)
{
    struct connections *connections = watch->data;
    struct epoll_event event;
    if (error != NULL)
        return;
    while (epoll_wait(connections->watch_descriptor, &event, 1, 0) == 1) {
        struct connection *connection = event.data.ptr;
        connection->gone = true;
        if (connection->reply != NULL)
            reply_client_gone(connection->reply);
    }
}

struct connection *connection_of(h2o_req_t *request)
{
    return request->conn->callbacks->get_socket(request->conn)->on_close.data;
}

void connections_close(struct connections *connections)
{
    if (connections->listener != NULL)
        h2o_socket_close(connections->listener);
    connections->listener = NULL;
    /* The library closes an idle connection at the end of the input. On a busy
     * connection it reads the end after the answer. */
    for (h2o_linklist_t *link = connections->open.next; link != &connections->open;
         link = link->next)
        shutdown(H2O_STRUCT_FROM_MEMBER(struct connection, link, link)->descriptor, SHUT_RD);
}

void connections_free(struct connections *connections)
{
    h2o_socket_close(connections->watch);
    for (h2o_linklist_t *link = connections->open.next; link != &connections->open;) {
        struct connection *connection = H2O_STRUCT_FROM_MEMBER(struct connection, link, link);
        link = link->next;
        connection->socket->on_close.cb = NULL;
        free(connection);
    }
}
