#include "origin.h"

#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "taskgate/core/clock.h"

void origin_listen(struct origin *origin, struct loop *loop)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(address);
    *origin = (struct origin){.loop = loop};
    origin->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(origin->fd, (struct sockaddr *)&address, length), 0);
    ck_assert_int_eq(listen(origin->fd, 64), 0);
    ck_assert_int_eq(getsockname(origin->fd, (struct sockaddr *)&address, &length), 0);
    origin->port = ntohs(address.sin_port);
}

bool origin_has_client(const struct origin *origin)
{
    struct pollfd poll_fd = {.fd = origin->fd, .events = POLLIN};
    return poll(&poll_fd, 1, 0) == 1;
}

void origin_accept(struct origin *origin, struct peer *peer)
{
    int64_t give_up_ms = clock_monotonic_ms() + 10000;
    while (!origin_has_client(origin)) {
        ck_assert_msg(clock_monotonic_ms() < give_up_ms, "no client has come");
        loop_run_once(origin->loop, 5);
    }
    *peer = (struct peer){.loop = origin->loop};
    buffer_init(&peer->received);
    peer->fd = accept4(origin->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    ck_assert_int_ge(peer->fd, 0);
}

void origin_fill(const struct origin *origin, struct peer *peer)
{
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_port = htons(origin->port),
                                        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    *peer = (struct peer){.loop = origin->loop};
    peer->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(peer->fd, 0);
    int result = connect(peer->fd, (const struct sockaddr *)&address, sizeof(address));
    ck_assert(result == 0 || errno == EINPROGRESS);
}

void origin_close(struct origin *origin)
{
    close(origin->fd);
    origin->fd = -1;
}
