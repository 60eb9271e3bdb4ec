/*
 * A raw TCP client for tests, in the same thread as the loop that serves it. A wait for the other
 * side runs the loop. Every wait has a deadline and then fails the test.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "taskgate/core/buffer.h"
#include "taskgate/loop/loop.h"

/* Whether peers speak TLS, and servers of scene.h with them. */
extern const bool peer_speaks_tls;

struct peer {
    struct loop *loop;
    int fd;
    struct ssl_st *ssl; /* NULL without TLS; the handshake goes with the first bytes */
    struct buffer received;
    bool is_closed; /* the other side has closed */
    bool is_reset;  /* by a reset */
    bool is_told;   /* by a farewell of TLS */
};

void peer_connect(struct peer *peer, struct loop *loop, uint16_t port);
/* As peer_connect(), with a receive buffer so small that the sender soon has to wait. */
void peer_connect_narrow(struct peer *peer, struct loop *loop, uint16_t port);
/* Sends it all, running the loop while the connection takes nothing. */
void peer_send(struct peer *peer, struct str bytes);
void peer_send_text(struct peer *peer, const char *text);
/* Reads the available bytes. */
void peer_receive(struct peer *peer);
bool peer_has(const struct peer *peer, const char *text);
/* Until `text` has been received. */
void peer_await(struct peer *peer, const char *text);
/* Until `count` bytes have been received. */
void peer_await_bytes(struct peer *peer, size_t count);
/* Until the other side closes. */
void peer_await_close(struct peer *peer);
void peer_expect(const struct peer *peer, const char *text);
/* Forgets the received bytes. */
void peer_clear(struct peer *peer);
void peer_close(struct peer *peer);
/* Closes by a reset. */
void peer_reset(struct peer *peer);

/* Runs the loop until *count is `wanted`. */
void run_until(struct loop *loop, const int *count, int wanted);
/* Runs the loop for a moment, to see that nothing more happens. */
void run_idle(struct loop *loop);
