/*
 * Shared by the files of the http module.
 *
 *     server ── listener, h2o context
 *        └── connection (one per socket, from accept to the end of lingering)
 *               ├── handshake (of TLS, before the first request)
 *               └── exchange (one per request, while it is answered)
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <h2o.h>
#include <netinet/in.h>

#include "taskgate/core/budget.h"
#include "taskgate/core/buffer.h"
#include "taskgate/core/list.h"
#include "taskgate/core/magic.h"
#include "taskgate/http/server.h"
#include "taskgate/tls/server.h"

struct http_server;
/* Takes an accepted socket, and may close it. */
typedef void (*accepted_callback)(struct http_server *server, h2o_socket_t *socket);

/* Connections that wait for a request, or receive it, in the order in which they make room. */
enum idle_rank {
    IDLE_SILENT,   /* nothing was ever answered there */
    IDLE_STRANGER, /* nobody knows the client */
    IDLE_KNOWN,
    IDLE_RANKS
};

struct http_server {
    uint32_t magic; /* HTTP_SERVER_MAGIC */
    struct loop *loop;
    struct http_server_options options; /* address emptied: it is the caller's */

    h2o_globalconf_t config;
    h2o_context_t h2o;
    h2o_accept_ctx_t accept;

    h2o_socket_t *listener;     /* NULL while draining */
    accepted_callback accepted; /* the listener's, for each new socket */
    bool accepting;             /* the listener is being read */
    uint16_t port;
    struct loop_timer accept_again; /* after a failure for want of descriptors or memory, or at once
                                       with the seat that it waited for */
    struct http_port *shared;       /* with the other listeners of the port */
    struct http_port *own_port;     /* NULL: `shared` is the caller's */
    struct list in_line;            /* in `shared`, or in no list; under its lock */
    bool has_seat;                  /* for the next client; under its lock */

    struct list connections;
    struct list idle[IDLE_RANKS]; /* of these the ones that may have to make room, idlest first */
    int connection_count;
    /* Reports clients that leave while nothing is read from them (http_on_gone). It watches each
     * connection from accept on, edge-triggered for EPOLLRDHUP. */
    int departures_fd;
    struct loop_watch *departures;
    struct list departed; /* connections of which the last batch told */

    loop_callback drained; /* set while draining */
    void *drained_context;
    struct loop_timer report_drained;
    bool destroying;

    /* intake.c: connections whose next request h2o is about to read, until the round's end. */
    struct list resting;
    struct loop_round_end round_end;

    /* response.c: exchanges whose last bytes go out at the end of the round. */
    struct list finished;
    struct loop_round_end send_finished;

    enum { HEAD_FLAG_UNSEEN, HEAD_FLAG_SEEN, HEAD_FLAG_ABSENT } head_flag; /* response.c */
};
#define HTTP_SERVER_MAGIC 0x48535301

static inline struct http_server *http_server_from(void *context)
{
    return MAGIC_CAST(struct http_server, HTTP_SERVER_MAGIC, context);
}

/* Holders are digests, names or addresses; a longer name is cut. */
#define HOLDER_BYTES 80

struct connection {
    uint32_t magic;       /* CONNECTION_MAGIC */
    struct list node;     /* in server->connections */
    struct list departed; /* in server->departed, or in no list */
    struct http_server *server;
    h2o_socket_t *socket;           /* NULL while lingering */
    struct http_exchange *exchange; /* the one not yet answered, or NULL */
    struct http_exchange *served;   /* the same, until h2o is done with its response */
    bool is_loopback;
    char peer[INET6_ADDRSTRLEN]; /* the client's address; "" until someone asks */
    struct list resting;         /* in server->resting, or in no list */
    struct list idle;            /* in one of the server's lists, or in no list */
    int64_t idle_since_ms;
    struct budget_claim claim; /* on what it holds; intake.c */
    char holder[HOLDER_BYTES]; /* that it counts for; "": the address */
    size_t head_bytes;         /* of the request that is received; 0: not looked at yet */
    size_t body_bytes;         /* the most of its body that is read */
    h2o_socket_cb h2o_read;    /* wrapped by intake.c; NULL if nothing is bounded */
    h2o_socket_cb h2o_written; /* the same, of what h2o sends before it reads on */
    unsigned users;            /* calls under way that go on using it if it is closed meanwhile */
    bool client_left;          /* it has closed, or half-closed, its side */

    struct tls_server *tls;      /* it was accepted with; NULL: plain */
    struct handshake *handshake; /* while it is under way */
    struct ssl_st *ssl;          /* h2o's, from the client's first word to the end of `socket` */
    char *certificate;           /* the client's subject, once someone has asked; or NULL */
    bool is_retired; /* the settings let others in now: only what is under way is answered */

    int linger_fd; /* -1, or a duplicate that outlives `socket`: see linger.c */
    struct loop_watch *linger_watch;
    struct loop_timer linger_end;
    loop_callback linger_ended;
};
#define CONNECTION_MAGIC 0x48534302

static inline struct connection *connection_from(void *context)
{
    return MAGIC_CAST(struct connection, CONNECTION_MAGIC, context);
}

#ifdef __SANITIZE_ADDRESS__
/* The sanitizer sees a use of spare memory after the request only if that is no part of a chunk of
 * h2o's. What the pool counts references of would be freed before the exchange has reported that
 * its client is gone, so this is freed with the exchange. The memory follows. */
struct http_spare {
    _Alignas(max_align_t) struct http_spare *next;
};
#endif

struct http_exchange {
    h2o_generator_t generator; /* first: h2o hands it back */
    uint32_t magic;            /* HTTP_EXCHANGE_MAGIC */
    struct list finished;      /* in server->finished, or in no list */
    h2o_req_t *request;
    struct connection *connection;
    int64_t received_ms;

    loop_callback gone;
    void *gone_context;
    bool *is_held; /* NULL, or set to false when the exchange ends */

    /* The response. One buffer is with h2o while the other collects. */
    char *header_lines, *header_lines_end; /* and the empty one; before them is room (response.c) */
    struct buffer waiting;
    struct buffer sending;
    loop_callback drained;
    void *drained_context;
    size_t charged;       /* bytes that the owner holds for it */
    int64_t length_left;  /* of a response with Content-Length; -1: not known */
    bool started;         /* h2o knows the response */
    bool in_flight;       /* h2o holds `sending` until proceed */
    bool headers_sent;    /* or in flight */
    bool has_no_body;     /* HEAD, 204, 304 */
    bool ends_with_close; /* HTTP/1.0: only the end of the connection ends the body */
    bool above_high_water;
    bool ended; /* by the caller or by the client: nothing more is taken or told */

    /* The request's headers by name: the first one's place and one more, 0 without; and what is
     * there twice, a bit for each name. */
    uint8_t first[HTTP_NAME_COUNT];
    uint32_t repeated;
    unsigned name_flags; /* of all names together */
#ifdef __SANITIZE_ADDRESS__
    struct http_spare *spares; /* what http_take_spare() gave */
#endif
    uint8_t known[H2O_MAX_HEADERS]; /* last, for it is not cleared: enum http_name of each */
};
#define HTTP_EXCHANGE_MAGIC 0x48534503

static inline struct http_exchange *http_exchange_from(void *context)
{
    return MAGIC_CAST(struct http_exchange, HTTP_EXCHANGE_MAGIC, context);
}

_Static_assert(HTTP_NAME_COUNT <= 32, "`repeated` has a bit for each name");

static inline void exchange_note_name(struct http_exchange *exchange, size_t place,
                                      enum http_name name)
{
    exchange->known[place] = (uint8_t)name;
    exchange->name_flags |= http_name_flags(name);
    if (exchange->first[name] == 0)
        exchange->first[name] = (uint8_t)(place + 1);
    else
        exchange->repeated |= UINT32_C(1) << name;
}

/* The files below call only those above them. */

/* ---- connection.c: addresses ---- */
/* Whether the local end of the socket is a loopback address. */
bool address_is_loopback(int fd);
/* The local port, or 0. */
uint16_t address_port(int fd);

const char *status_reason(int status);

/* ---- connection.c ---- */
struct connection *connection_of(h2o_req_t *request);
struct str connection_peer(struct connection *connection);
/* h2o does not read while a request is held. It would tell the kernel so, and tell it the
 * contrary after the response. So the socket is watched between these two calls all the same, and
 * the kernel is told only when something comes too early. */
void connection_hold(struct connection *connection);
void connection_let_go(struct connection *connection);
/* Closes the connection of `request` now, whatever it is doing. */
void connection_cut(h2o_req_t *request);
struct str connection_holder(struct connection *connection);
/* It waits for a request, and may have to make room. */
void connection_rest(struct connection *connection, enum idle_rank rank);

/* ---- linger.c ---- */
/* Keeps the connection readable for a moment after h2o has closed it. */
void linger_prepare(struct connection *connection);
/* Starts when h2o has closed. `ended` gets the connection once it is over, and removes it. false:
 * it was not prepared, and `ended` is never called. */
bool linger_start(struct connection *connection, loop_callback ended);
void linger_stop(struct connection *connection);

/* ---- intake.c ---- */
void intake_open(struct http_server *server);
/* Counts what is read from here on, while a request is being received. */
void intake_wrap(struct connection *connection);
/* The same at the end of the round. */
void intake_wrap_later(struct connection *connection);
/* The request is complete. */
void intake_complete(struct connection *connection);
/* Counts what the connection holds now. */
void intake_count(struct connection *connection);
/* The connection is closed. */
void intake_leave(struct connection *connection);

/* ---- handshake.c ---- */
/* To be called before the first handshake with `tls`; NULL is allowed. */
void handshake_watch(struct tls_server *tls);
/* Ends with a call of `done`, or with the connection closed. */
void handshake_begin(struct connection *connection, void (*done)(h2o_socket_t *socket));
/* Forgets what is under way; the socket is the caller's to close. */
void handshake_stop(struct connection *connection);
/* NULL when the client has shown none. */
const char *handshake_certificate(struct connection *connection);
/* When the client's certificate ceases to hold, on the wall clock; 0 without one. */
int64_t handshake_certificate_until_ms(const struct connection *connection);

/* ---- exchange.c ---- */
/* From here on nothing is taken from the owner or told to it. */
void exchange_end(struct http_exchange *exchange);
/* The client is gone: tells the owner, once; the connection is still to be cut. */
void exchange_report_gone(struct http_exchange *exchange);

/* ---- response.c ---- */
void responses_open(struct http_server *server);
void responses_close(struct http_server *server);
void response_proceed(h2o_generator_t *generator, h2o_req_t *request);

/* ---- refusal.c ---- */
/* On the path of what never becomes a request. */
void refusal_register(h2o_pathconf_t *path);
/* The same words for what h2o has let through. */
void refusal_respond(struct http_exchange *exchange, int status);

/* ---- port.c: on the server's loop ---- */
/* Whether there is room for one more client: then the server has a seat for it, until it fills or
 * returns it. Else the server waits in line: `accept_again` runs out once it has a seat. */
bool port_take_seat(struct http_server *server);
/* A client has the seat. */
void port_fill_seat(struct http_server *server);
/* No client came for it, or the listener closes: it waits in line no more either. */
void port_return_seat(struct http_server *server);
/* A client has left. */
void port_leave(struct http_server *server);
/* Whether a failed handshake gets a line in the log; `*left_out`: those without since the last one.
 */
bool port_may_tell(struct http_port *port, int64_t *left_out);

/* ---- connection.c: the end ---- */
/* In the gauge of open connections. */
void connection_gauge(const struct http_server *server, double change);
/* The socket is closed: the connection lingers, or is removed. */
void connection_end(struct connection *connection);
void connection_remove(struct connection *connection);
/* Around a call that may close the socket: the connection is there until it has left. False: the
 * socket was closed, and the connection may be gone. Calls may nest. */
void connection_enter(struct connection *connection);
bool connection_leave(struct connection *connection);
