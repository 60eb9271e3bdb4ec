/*
 * Clients that leave while their request waits: a second epoll beside h2o's.
 */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "http_internal.h"

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

bool departures_watch(struct connection *connection, int fd)
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
