/*
 * A raw HTTP server for tests, in the same thread as the client: a listening socket. Its
 * connections are peers that the test scripts by hand.
 */
#pragma once

#include <stdint.h>

#include "peer.h"

struct origin {
    struct loop *loop;
    int fd;
    uint16_t port;
};

void origin_listen(struct origin *origin, struct loop *loop);
/* Until a client connects. */
void origin_accept(struct origin *origin, struct peer *peer);
/* Whether a client waits to be accepted. */
bool origin_has_client(const struct origin *origin);
/* Connects to it, and does not wait for that: takes a place in the queue. */
void origin_fill(const struct origin *origin, struct peer *peer);
void origin_close(struct origin *origin);

/* A TLS server with a self-signed certificate, in its own thread, for one connection: it reads
 * once and says nothing. */
struct tls_origin;
struct tls_origin *tls_origin_start(void);
/* For so many connections, one after the other. Each request gets `answer`; `afterwards` (may be
 * NULL) follows the first. */
struct tls_origin *tls_origin_start_answering(const char *answer, const char *afterwards,
                                              int connections);
/* How many answers have been said. Any thread. */
int tls_origin_answers(const struct tls_origin *origin);
uint16_t tls_origin_port(const struct tls_origin *origin);
/* Joins the thread. Returns how many bytes of a request were received. */
int tls_origin_stop(struct tls_origin *origin);
