/*
 * The addresses at both ends of a socket.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "http_internal.h"

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_storage space;
};

static bool read_local(int fd, union address *address)
{
    socklen_t length = sizeof(*address);
    *address = (union address){.space = {0}};
    return getsockname(fd, &address->any, &length) == 0;
}

bool address_is_loopback(int fd)
{
    union address address;
    if (!read_local(fd, &address))
        return false;
    if (address.any.sa_family == AF_INET)
        return ntohl(address.v4.sin_addr.s_addr) >> 24 == 127;
    if (address.any.sa_family != AF_INET6)
        return false;
    const struct in6_addr *v6 = &address.v6.sin6_addr;
    return IN6_IS_ADDR_LOOPBACK(v6) || (IN6_IS_ADDR_V4MAPPED(v6) && v6->s6_addr[12] == 127);
}

uint16_t address_port(int fd)
{
    union address address;
    if (!read_local(fd, &address))
        return 0;
    return ntohs(address.any.sa_family == AF_INET6 ? address.v6.sin6_port : address.v4.sin_port);
}

void address_write_peer(int fd, char text[INET6_ADDRSTRLEN])
{
    union address address = {.space = {0}};
    socklen_t length = sizeof(address);
    if (getpeername(fd, &address.any, &length) != 0)
        return;
    bool is_v4 = address.any.sa_family == AF_INET;
    const void *bytes =
        is_v4 ? (const void *)&address.v4.sin_addr : (const void *)&address.v6.sin6_addr;
    inet_ntop(address.any.sa_family, bytes, text, INET6_ADDRSTRLEN);
}
