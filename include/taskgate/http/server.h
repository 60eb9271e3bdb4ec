/*
 * The HTTP server side: a request comes in as one exchange, goes out as a response or a
 * stream. Knows nothing of MCP or of paths.
 *
 * Everything here runs on the loop of the server that accepted the connection; an exchange
 * never changes threads. h2o reads the body whole, bounded by `max_body_bytes` (413 above).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "taskgate/core/buffer.h"
#include "taskgate/core/error.h"
#include "taskgate/core/str.h"
#include "taskgate/http/names.h"
#include "taskgate/loop/loop.h"

struct budget;     /* taskgate/core/budget.h */
struct http_port;  /* below */
struct tls_server; /* taskgate/tls/server.h */
struct http_server;
struct http_exchange;

/* Called once per request. The handler must answer, now or later, by exactly one of
 * http_respond() or http_stream_start() … http_stream_end()/http_stream_abort(). One that
 * does not answer before it returns must have set http_on_gone(). */
typedef void (*http_handler)(struct http_exchange *exchange, void *context);

/* The answer to a request that never reaches the handler: a body that is too large (413), broken
 * framing (400), an expectation (417). Appends a JSON text to `body`; if it appends nothing, the
 * server sends a line of plain text. Called once for each, on the loop. */
typedef void (*http_refusal)(int status, struct buffer *body, void *context);

/* The head of a request whose body is not there yet. */
struct http_head {
    struct str method, path; /* the path with its query */
    const struct http_header *headers;
    size_t header_count;
    bool has_certificate; /* the client has shown one that the port's `client_ca` vouches for */
};

/* How many bytes of body are read for this head. Asked once for each request whose body is longer
 * than HTTP_FREE_BODY_BYTES, or of a length that is not told; with more the client is answered
 * 401. */
typedef size_t (*http_body_judge)(const struct http_head *head, void *context);
#define HTTP_FREE_BODY_BYTES ((size_t)64 * 1024)

struct http_server_options {
    struct str address; /* "127.0.0.1", "::1", "0.0.0.0" */
    uint16_t port;      /* 0 lets the system choose */
    bool reuse_port;    /* several servers, one per loop, on the same port */
    bool first_on_port; /* of these the first: none of another process may be there already */
    size_t max_body_bytes;
    int max_connections;           /* above it nothing is accepted until one closes; 0: no limit */
    struct http_port *shared_port; /* its bound holds instead; NULL: the server is alone */
    int reserved_connections;      /* beyond them: see http_is_in_reserve() */
    struct budget *budget;         /* of what its clients make it hold; may be shared; NULL: none */
    http_body_judge judge_body;    /* NULL: every body is read */
    int64_t read_timeout_ms;       /* for a request's headers and body, and idle keep-alive */
    size_t stream_high_water;      /* bytes; see http_stream_write() */
    const char *transport;         /* label of connections_active; NULL: not counted */
    const char *port_name;         /* "proxy": label of tls_handshakes_total */
    struct tls_server *tls;        /* NULL: plain HTTP; the server takes a reference of its own */
    http_handler handler;
    http_refusal refusal; /* NULL: plain text for all */
    void *context;
};

/* Listens at once. NULL on failure (address in use, …), with `error` naming the address. */
struct http_server *http_server_create(struct loop *loop, const struct http_server_options *options,
                                       struct error *error);
uint16_t http_server_port(const struct http_server *server);
/* Changes the cap on request bodies that are read from now on. */
void http_server_set_max_body(struct http_server *server, size_t max_body_bytes);
/* Other certificates, or others who are let in, for what is accepted from here on; NULL: plain
 * HTTP. If the clients that are let in change, connections from before end: idle ones at once, the
 * others after the response under way. Equal settings change nothing. */
void http_server_set_tls(struct http_server *server, struct tls_server *tls);
/* Whether each connection closes with its next response, which says so; idle ones stay. For a
 * process that goes on to serve while its clients look for another. */
void http_server_close_after_answers(struct http_server *server, bool closes);
/* Stops accepting, closes idle connections; those with a request close when it is answered. One
 * whose response has begun serves one more request, for the response may have promised so: `idle`
 * may not come while its client is silent.
 * `idle` runs on the loop once no connection is left (in the next round when there is none)
 * and may destroy the server. */
void http_server_drain(struct http_server *server, loop_callback idle, void *context);
int http_server_connections(const struct http_server *server);
/* Cuts the remaining connections, and calls `gone` of open exchanges. Not from inside a handler,
 * `gone` or `drained`. NULL is allowed. */
void http_server_destroy(struct http_server *server);

/* ---- the request; valid until the exchange ends ---- */
struct str http_method(const struct http_exchange *exchange);
struct str http_path(const struct http_exchange *exchange);      /* without the query, as sent */
struct str http_query(const struct http_exchange *exchange);     /* after '?', or empty */
struct str http_authority(const struct http_exchange *exchange); /* the Host header, or empty */
struct str http_body(const struct http_exchange *exchange);
/*
 * The client is known: `principal` is one whose credentials are good. From here on what the
 * connection holds counts for the principal, no longer for the client's address, and it makes room
 * for others only after those of unknown clients.
 */
void http_vouch(struct http_exchange *exchange, struct str principal);
/* The caller holds so many bytes more for this request until it ends. The client may have to leave
 * for them, later. */
void http_charge(struct http_exchange *exchange, size_t bytes);
/* Whether all ordinary seats were taken: only probes are to be answered. */
bool http_is_in_reserve(const struct http_exchange *exchange);
/* The body is not needed any more: frees its memory, so that http_body() is empty and what was
 * taken of it must not be read. The rest of the request stays. It may do nothing. */
void http_forget_body(struct http_exchange *exchange);
/* Up to `*most` bytes that are there for the request in any case, and that neither it nor a
 * response with a few headers needs; says in `*most` how many. They are aligned for any object and
 * not cleared, and hold until the exchange has ended and `gone`, if it comes, has returned. NULL,
 * and `*most` 0: there are none. */
void *http_take_spare(struct http_exchange *exchange, size_t *most);
/* Whether this connection's local end is on 127.0.0.0/8 or ::1. */
bool http_is_loopback(const struct http_exchange *exchange);
/* The other end's address as text ("127.0.0.1", "::1"), without its port. */
struct str http_peer(const struct http_exchange *exchange);
bool http_is_tls(const struct http_exchange *exchange);
/* The subject of the client's certificate, which the port's `client_ca` vouches for, as RFC 4514
 * writes it ("CN=alice,O=Example"); bytes == NULL without one. */
struct str http_client_certificate(const struct http_exchange *exchange);
/* When that certificate ceases to hold, in milliseconds since 1970; 0 without one. */
int64_t http_client_certificate_until_ms(const struct http_exchange *exchange);
/* First header of that name (lower case), or an empty str with bytes == NULL. Host,
 * Content-Length and the transfer headers are not among them. */
struct str http_header(const struct http_exchange *exchange, const char *name);
/* The same of a name that the table has: nothing is compared. */
struct str http_header_known(const struct http_exchange *exchange, enum http_name name);
/* The first name with HTTP_NAME_SINGLE that is there twice; HTTP_NAME_UNSEEN when there is none. */
enum http_name http_header_repeated(const struct http_exchange *exchange);
bool http_header_is_repeated(const struct http_exchange *exchange, enum http_name name);
size_t http_header_count(const struct http_exchange *exchange);
struct http_header http_header_at(const struct http_exchange *exchange, size_t index);
/* Takes the headers whose name has one of these flags (HTTP_NAME_OF_SESSION …) out of the request,
 * as if the client had not sent them. */
void http_headers_drop(struct http_exchange *exchange, unsigned flags);
int64_t http_received_ms(const struct http_exchange *exchange); /* monotonic */

/* ---- the client goes away ---- */
/* `gone` runs once if the client leaves before the response is complete; nothing may be
 * sent afterwards and the exchange is invalid when it returns. Not called after a complete
 * response. A client that half-closes counts as gone. NULL takes it back. */
void http_on_gone(struct http_exchange *exchange, loop_callback gone, void *context);

/*
 * The server itself writes the headers that frame a response, and leaves them out of `headers`:
 * Connection, Content-Length, Date, Keep-Alive, Trailer, Transfer-Encoding, Upgrade. It also
 * leaves out, and logs, a header with a line break or NUL. It never sends a body in answer to HEAD
 * or with status 204 or 304.
 */

/* ---- a whole response; ends the exchange ---- */
/* Copies headers and body. Sets Content-Length itself; content-type is among `headers`. */
void http_respond(struct http_exchange *exchange, int status, const struct http_header *headers,
                  size_t header_count, struct str body);
/* Convenience: a body with one content type ("application/json"). */
void http_respond_text(struct http_exchange *exchange, int status, const char *content_type,
                       struct str body);

/* ---- a response whose head is known before it is decided how it goes on ---- */
/* Copies status and headers. Any other response may still be sent in its place. */
void http_prepare(struct http_exchange *exchange, int status, const struct http_header *headers,
                  size_t header_count);
/* As http_respond() and http_stream_start(), with what was prepared. Takes over what is in `body`,
 * which is empty afterwards. */
void http_respond_prepared(struct http_exchange *exchange, struct buffer *body);
void http_stream_start_prepared(struct http_exchange *exchange, int64_t content_length);

/* ---- a streamed response ---- */
/* Status and headers are sent with the first bytes, or by http_stream_flush(). Copies the
 * headers. content_length < 0: unknown, chunked (any status; to HTTP/1.0 the end is the end
 * of the connection). Otherwise bytes beyond it are dropped, and an end before it is an abort. */
void http_stream_start(struct http_exchange *exchange, int status,
                       const struct http_header *headers, size_t header_count,
                       int64_t content_length);
/* Sends status and headers now, if they have not been: a client of an event stream that is
 * still silent learns that it is open. */
void http_stream_flush(struct http_exchange *exchange);
/* Copies `bytes` and sends them as soon as the connection takes them, each write flushed.
 * Returns false if more than the high-water mark is waiting: the caller should stop
 * producing until `drained` (http_on_drained) runs. Bytes written meanwhile are kept. */
bool http_stream_write(struct http_exchange *exchange, struct str bytes);
/* Bytes written that the connection has not yet taken, as far as is known. */
size_t http_stream_backlog(const struct http_exchange *exchange);
/* `drained` runs each time the backlog falls below half of the mark after it was above. */
void http_on_drained(struct http_exchange *exchange, loop_callback drained, void *context);
/* Ends the exchange after the waiting bytes have gone out. No `gone` afterwards. */
void http_stream_end(struct http_exchange *exchange);
/* Ends the exchange by cutting the connection, so that the client cannot take a part for the
 * whole. */
void http_stream_abort(struct http_exchange *exchange);

/*
 * The listeners of one port, one on each loop, share the bound on connections and the log of failed
 * handshakes. A listener takes a seat before it accepts, so all together accept no more than the
 * bound. Listeners that found none wait in line, and a seat that is left goes to the first of them.
 * Any thread.
 */
/* 0: no bound. */
struct http_port *http_port_create(int max_connections);
/* After the servers that share it, and after their loops. NULL is allowed. */
void http_port_destroy(struct http_port *port);
