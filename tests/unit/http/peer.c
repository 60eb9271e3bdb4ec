#include "peer.h"

#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "taskgate/core/clock.h"

#define PATIENCE_MS 10000
#ifndef PEER_SPEAKS_TLS
#define PEER_SPEAKS_TLS false
#endif

const bool peer_speaks_tls = PEER_SPEAKS_TLS;

/* With its own context, which goes with it. */
static SSL *speak_tls(int fd)
{
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    SSL *ssl = SSL_new(context);
    SSL_CTX_free(context);
    SSL_set_mode(ssl, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_set_connect_state(ssl);
    ck_assert_int_eq(SSL_set_fd(ssl, fd), 1);
    return ssl;
}

/* As send() or recv() would have it; a farewell is the end. */
static ssize_t result_of(struct peer *peer, int count)
{
    if (count > 0)
        return count;
    int reason = errno;
    int code = SSL_get_error(peer->ssl, count);
    peer->is_told = peer->is_told || code == SSL_ERROR_ZERO_RETURN;
    ERR_clear_error();
    errno = code == SSL_ERROR_WANT_READ || code == SSL_ERROR_WANT_WRITE ? EAGAIN : reason;
    return code == SSL_ERROR_ZERO_RETURN || code == SSL_ERROR_SSL ||
                   (code == SSL_ERROR_SYSCALL && reason == 0)
               ? 0
               : -1;
}

static ssize_t send_some(struct peer *peer, struct str bytes)
{
    if (!peer->ssl)
        return send(peer->fd, bytes.bytes, bytes.length, MSG_NOSIGNAL);
    ERR_clear_error();
    errno = 0;
    return result_of(peer, SSL_write(peer->ssl, bytes.bytes, (int)bytes.length));
}

static ssize_t receive_some(struct peer *peer, char *bytes, size_t size)
{
    if (!peer->ssl)
        return recv(peer->fd, bytes, size, 0);
    ERR_clear_error();
    errno = 0;
    return result_of(peer, SSL_read(peer->ssl, bytes, (int)size));
}

static void connect_with(struct peer *peer, struct loop *loop, uint16_t port, int receive_bytes)
{
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    *peer = (struct peer){.loop = loop};
    buffer_init(&peer->received);
    peer->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(peer->fd, 0);
    if (receive_bytes > 0)
        ck_assert_int_eq(
            setsockopt(peer->fd, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof(receive_bytes)), 0);
    ck_assert_int_eq(connect(peer->fd, (const struct sockaddr *)&address, sizeof(address)), 0);
    ck_assert_int_eq(fcntl(peer->fd, F_SETFL, O_NONBLOCK), 0);
    peer->ssl = peer_speaks_tls ? speak_tls(peer->fd) : NULL;
}

void peer_connect(struct peer *peer, struct loop *loop, uint16_t port)
{
    connect_with(peer, loop, port, 0);
}

void peer_connect_narrow(struct peer *peer, struct loop *loop, uint16_t port)
{
    connect_with(peer, loop, port, 4096);
}

void peer_send(struct peer *peer, struct str bytes)
{
    int64_t give_up_ms = clock_monotonic_ms() + PATIENCE_MS;
    while (bytes.length > 0) {
        ssize_t count = send_some(peer, bytes);
        if (count > 0) {
            bytes.bytes += count;
            bytes.length -= (size_t)count;
            continue;
        }
        ck_assert_msg(count == -1 && errno == EAGAIN, "send: %s", strerror(errno));
        ck_assert_msg(clock_monotonic_ms() < give_up_ms, "the other side takes nothing");
        loop_run_once(peer->loop, 5);
    }
}

void peer_send_text(struct peer *peer, const char *text)
{
    peer_send(peer, str_from(text));
}

void peer_receive(struct peer *peer)
{
    char bytes[65536];
    for (;;) {
        ssize_t count = receive_some(peer, bytes, sizeof(bytes));
        if (count > 0) {
            buffer_append(&peer->received, str_slice(bytes, (size_t)count));
            continue;
        }
        if (count == 0)
            peer->is_closed = true;
        else if (errno == ECONNRESET)
            peer->is_closed = peer->is_reset = true;
        else
            ck_assert_int_eq(errno, EAGAIN);
        return;
    }
}

bool peer_has(const struct peer *peer, const char *text)
{
    return peer->received.length > 0 &&
           memmem(peer->received.bytes, peer->received.length, text, strlen(text)) != NULL;
}

static void wait_a_little(struct peer *peer, int64_t give_up_ms, const char *what)
{
    ck_assert_msg(clock_monotonic_ms() < give_up_ms, "waited in vain for %s; received: %.*s", what,
                  (int)(peer->received.length < 2000 ? peer->received.length : 2000),
                  peer->received.length ? peer->received.bytes : "");
    loop_run_once(peer->loop, 5);
    peer_receive(peer);
}

void peer_await(struct peer *peer, const char *text)
{
    int64_t give_up_ms = clock_monotonic_ms() + PATIENCE_MS;
    peer_receive(peer);
    while (!peer_has(peer, text)) {
        ck_assert_msg(!peer->is_closed, "closed before \"%s\"; received: %.*s", text,
                      STR_ARGS(buffer_str(&peer->received)));
        wait_a_little(peer, give_up_ms, text);
    }
}

void peer_await_bytes(struct peer *peer, size_t count)
{
    int64_t give_up_ms = clock_monotonic_ms() + PATIENCE_MS;
    while (peer->received.length < count)
        wait_a_little(peer, give_up_ms, "bytes");
}

void peer_await_close(struct peer *peer)
{
    int64_t give_up_ms = clock_monotonic_ms() + PATIENCE_MS;
    while (!peer->is_closed)
        wait_a_little(peer, give_up_ms, "the end of the connection");
}

void peer_expect(const struct peer *peer, const char *text)
{
    ck_assert_msg(peer_has(peer, text), "no \"%s\" in: %.*s", text,
                  STR_ARGS(buffer_str(&peer->received)));
}

void peer_clear(struct peer *peer)
{
    buffer_clear(&peer->received);
}

void peer_close(struct peer *peer)
{
    SSL_free(peer->ssl);
    peer->ssl = NULL;
    if (peer->fd != -1)
        close(peer->fd);
    peer->fd = -1;
    buffer_finish(&peer->received);
}

void peer_reset(struct peer *peer)
{
    const struct linger reset = {.l_onoff = 1, .l_linger = 0};
    setsockopt(peer->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
    peer_close(peer);
}

void run_until(struct loop *loop, const int *count, int wanted)
{
    int64_t give_up_ms = clock_monotonic_ms() + PATIENCE_MS;
    while (*count < wanted && clock_monotonic_ms() < give_up_ms)
        loop_run_once(loop, 5);
    ck_assert_int_eq(*count, wanted);
}

void run_idle(struct loop *loop)
{
    for (int i = 0; i < 20; i++)
        loop_run_once(loop, 1);
}
