#include "peer.h"

#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "taskgate/core/clock.h"

#define PATIENCE_MS 10000

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
        ssize_t count = send(peer->fd, bytes.bytes, bytes.length, MSG_NOSIGNAL);
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
        ssize_t count = recv(peer->fd, bytes, sizeof(bytes), 0);
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
