/*
 * The seats of a port. One lock guards them all: it is taken a few times for each connection, which
 * costs nothing beside the accept.
 */
#include "taskgate/core/assert.h"
#include "taskgate/http/server.h"

#include <pthread.h>
#include <stdlib.h>

#include "server_internal.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/memory.h"

/* A scan of the port must not fill the log. */
#define TELL_EVERY_MS 10000

struct http_port {
    pthread_mutex_t lock;
    int max_connections; /* 0: no bound */
    /* Under the lock: */
    int taken;           /* connections, and seats that listeners hold */
    struct list waiting; /* struct http_server.in_line */
    struct list called;  /* the same: those that have a seat and are not notified yet */
    int64_t told_ms;     /* of failed handshakes: the last line, monotonic; 0: never */
    int64_t left_out;    /* of those since */
};

struct http_port *http_port_create(int max_connections)
{
    struct http_port *port = memory_alloc(sizeof(*port));
    pthread_mutex_init(&port->lock, NULL);
    port->max_connections = max_connections;
    list_init(&port->waiting);
    list_init(&port->called);
    return port;
}

void http_port_destroy(struct http_port *port)
{
    if (port == NULL)
        return;
    pthread_mutex_destroy(&port->lock);
    free(port);
}

bool port_take_seat(struct http_server *server)
{
    struct http_port *port = server->shared;
    pthread_mutex_lock(&port->lock);
    bool is_free = port->max_connections <= 0 ||
                   (port->taken < port->max_connections && list_is_empty(&port->waiting));
    if (!server->has_seat && is_free) {
        server->has_seat = true;
        port->taken++;
    } else if (!server->has_seat && list_is_empty(&server->in_line)) {
        list_append(&port->waiting, &server->in_line);
    }
    bool has_seat = server->has_seat;
    pthread_mutex_unlock(&port->lock);
    return has_seat;
}

/* ---- the next in line ---- */

/* A message to the loop of a server that was called. The server may be gone when it arrives. */
struct call_up {
    struct http_port *port;
    struct loop *loop;
};

/* Only its own loop takes a server out of this list. */
static void on_call_up(void *context)
{
    struct call_up *message = context;
    struct http_port *port = message->port;
    pthread_mutex_lock(&port->lock);
    LIST_FOR_EACH_SAFE (node, next, &port->called) {
        struct http_server *server = LIST_ENTRY(node, struct http_server, in_line);
        if (server->loop == message->loop) {
            list_remove(node);
            loop_timer_start(&server->accept_again, 0);
        }
    }
    pthread_mutex_unlock(&port->lock);
    free(message);
}

/* Under the lock. The seat goes from hand to hand: a listener whose clients come often cannot take
 * it before the one that waits. */
static void leave_seat(struct http_port *port, const struct loop *loop)
{
    ASSERT_NUMBERS(port->taken, >, 0);
    if (list_is_empty(&port->waiting)) {
        port->taken--;
        return;
    }
    struct http_server *server = LIST_ENTRY(port->waiting.next, struct http_server, in_line);
    list_remove(&server->in_line);
    ASSERT(!server->has_seat);
    server->has_seat = true;
    if (server->loop == loop) {
        loop_timer_start(&server->accept_again, 0);
        return;
    }
    struct call_up *message = memory_alloc(sizeof(*message));
    *message = (struct call_up){port, server->loop};
    list_append(&port->called, &server->in_line);
    /* Under the lock the server is still in the list, so its loop still runs. */
    loop_post(server->loop, on_call_up, message);
}

void port_return_seat(struct http_server *server)
{
    struct http_port *port = server->shared;
    pthread_mutex_lock(&port->lock);
    bool had_seat = server->has_seat;
    server->has_seat = false;
    list_remove(&server->in_line);
    if (had_seat)
        leave_seat(port, server->loop);
    pthread_mutex_unlock(&port->lock);
}

void port_fill_seat(struct http_server *server)
{
    pthread_mutex_lock(&server->shared->lock);
    ASSERT(server->has_seat);
    server->has_seat = false;
    pthread_mutex_unlock(&server->shared->lock);
}

void port_leave(struct http_server *server)
{
    pthread_mutex_lock(&server->shared->lock);
    leave_seat(server->shared, server->loop);
    pthread_mutex_unlock(&server->shared->lock);
}

/* ---- the log ---- */

bool port_may_tell(struct http_port *port, int64_t *left_out)
{
    int64_t now_ms = clock_monotonic_ms();
    pthread_mutex_lock(&port->lock);
    bool may_tell = port->told_ms == 0 || now_ms - port->told_ms >= TELL_EVERY_MS;
    *left_out = port->left_out;
    port->left_out = may_tell ? 0 : port->left_out + 1;
    if (may_tell)
        port->told_ms = now_ms;
    pthread_mutex_unlock(&port->lock);
    return may_tell;
}
