/*
 * Connections: accepting them, and noticing that a client has gone away.
 *
 * HTTP/1 stops reading while a request is being answered, so the library does not
 * notice that the client of a held request or of a quiet stream has left. Each
 * accepted descriptor is therefore watched for the peer's close on the side.
 */
#ifndef EXAMPLE_CONNECTION_H
#define EXAMPLE_CONNECTION_H

#include <h2o.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct reply;

struct connection {
    h2o_linklist_t link; /* in connections.open */
    struct connections *owner;
    h2o_socket_t *socket;
    int descriptor;
    struct reply *reply; /* the held or streaming answer, NULL when there is none */
    bool gone;           /* the peer has closed its side */
};

struct connections {
    h2o_accept_ctx_t accept;
    h2o_socket_t *listener; /* NULL once closed */
    h2o_socket_t *watch;    /* an epoll of its own, nested in the loop */
    int watch_descriptor;
    h2o_linklist_t open;
    size_t count;
    size_t limit; /* at this count accepting pauses: a full descriptor table would spin */
};

/* Listens on a numeric address. false: the reason is on stderr. `bound` is the port
 * that was taken, which matters when `port` is 0. */
bool connections_open(struct connections *connections, h2o_context_t *context, const char *host,
                      uint16_t port, uint16_t *bound);

/* The connection that a request came in on. Valid as long as the request. */
struct connection *connection_of(h2o_req_t *request);

/* Accepts no more, and lets idle connections go. Those with an answer in flight
 * close after it. Run the loop until `count` is 0. */
void connections_close(struct connections *connections);

/* Frees the rest, after the loop has ended. */
void connections_free(struct connections *connections);

#endif
