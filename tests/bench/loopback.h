/* Connections and time for the measuring programs. A failure ends the program. */
#pragma once

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_SECOND 1000000000

static inline void die(const char *what)
{
    perror(what);
    exit(1);
}

static inline int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * NS_PER_SECOND + now.tv_nsec;
}

/* `receive_bytes`: unread bytes that the kernel may hold, 0 for its own choice. */
static inline int loopback_connect(long port, int receive_bytes)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    /* Before connecting: the window that is announced follows from it. */
    if (receive_bytes > 0)
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof receive_bytes);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
        die("connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

/* On a connection that blocks. */
static inline void write_all(int fd, const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t n = write(fd, bytes, length);
        if (n <= 0)
            die("write");
        bytes += n;
        length -= (size_t)n;
    }
}

/* The whole of a file; the program keeps it. */
static inline char *read_file(const char *path, size_t *length)
{
    const size_t most = 16 << 20;
    FILE *file = fopen(path, "rb");
    char *bytes = malloc(most + 1);
    if (!file || !bytes)
        die(path);
    *length = fread(bytes, 1, most, file);
    bytes[*length] = '\0';
    fclose(file);
    return bytes;
}
