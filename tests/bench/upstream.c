/*
 * The server behind what is measured: one thread, epoll, one fixed reply a question, so that it
 * is never the limit. It speaks both eras of the protocol. The question names the answer:
 * `server/discover` lists the modern version, `initialize` opens a session, for a client named
 * "churn" one of its own, `tools/list` has as many tools as the second argument says and, asked
 * with "fresh", other bytes each time; a call that names "bytes-N" gets N bytes, one that names
 * "quiet" an event stream without events; a GET an event stream, and `subscriptions/listen` one
 * that begins with its acknowledgement.
 *
 *     upstream PORT TOOLS
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http.h"

#define SESSION "bench-session"

struct connection {
    int fd;
    char *in, *out;
    size_t in_length, in_capacity, out_length, out_capacity, sent;
};

static char *tools_list;
static size_t tools_length;

static void grow(char **bytes, size_t *capacity, size_t needed)
{
    if (needed <= *capacity)
        return;
    while (*capacity < needed)
        *capacity = *capacity ? *capacity * 2 : 4096;
    *bytes = realloc(*bytes, *capacity);
    if (!*bytes)
        abort();
}

static void append(struct connection *c, const char *bytes, size_t length)
{
    grow(&c->out, &c->out_capacity, c->out_length + length);
    memcpy(c->out + c->out_length, bytes, length);
    c->out_length += length;
}

static void reply(struct connection *c, const char *more, const char *before, size_t before_length,
                  const char *body, size_t length)
{
    char head[512];
    int n = snprintf(head, sizeof head,
                     "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n%sContent-Length: "
                     "%zu\r\n\r\n",
                     more, before_length + length);
    append(c, head, (size_t)n);
    append(c, before, before_length);
    append(c, body, length);
}

/* {"jsonrpc":"2.0","id":<the question's>,"result": */
static size_t write_start(char *out, size_t size, const char *body, size_t length)
{
    const char *id = memmem(body, length, "\"id\":", 5);
    size_t id_length = 0;
    if (id) {
        id += 5;
        bool quoted = *id == '"';
        while (id + id_length < body + length &&
               (id_length == 0 || (quoted ? id[id_length - 1] != '"' || id_length == 1
                                          : id[id_length] != ',' && id[id_length] != '}')))
            id_length++;
    }
    int n = snprintf(out, size, "{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"result\":", (int)id_length,
                     id ? id : "");
    return (size_t)n;
}

static bool has(const char *body, size_t length, const char *text)
{
    return memmem(body, length, text, strlen(text)) != NULL;
}

static void reply_bytes(struct connection *c, const char *start, size_t start_length, size_t bytes)
{
    static char *filler;
    static size_t filler_length;
    if (filler_length != bytes + 40) {
        filler_length = bytes + 40;
        filler = realloc(filler, filler_length + 1);
        if (!filler)
            abort();
        int n = snprintf(filler, 40, "{\"content\":[{\"type\":\"text\",\"text\":\"");
        memset(filler + n, 'x', filler_length - (size_t)n - 5);
        memcpy(filler + filler_length - 5, "\"}]}}", 5);
    }
    reply(c, "", start, start_length, filler, filler_length);
}

/* The stream of a listener, whose id is a number here. */
static void reply_listening(struct connection *c)
{
    static const char acknowledged[] =
        "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/acknowledged\","
        "\"params\":{\"notifications\":{\"toolsListChanged\":true},"
        "\"_meta\":{\"io.modelcontextprotocol/subscriptionId\":1}}}\n\n";
    char head[200];
    int n = snprintf(head, sizeof head,
                     "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                     "Transfer-Encoding: chunked\r\n\r\n%zx\r\n",
                     sizeof acknowledged - 1);
    append(c, head, (size_t)n);
    append(c, acknowledged, sizeof acknowledged - 1);
    append(c, "\r\n", 2);
}

static void answer(struct connection *c, const char *head, const char *body, size_t length)
{
    static const char initialize[] =
        "{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"tools\":{}},"
        "\"serverInfo\":{\"name\":\"bench\",\"version\":\"1\"}}}";
    static const char discovered[] =
        "{\"resultType\":\"complete\",\"supportedVersions\":[\"2026-07-28\"],"
        "\"capabilities\":{\"tools\":{\"listChanged\":true}},\"ttlMs\":0,\"cacheScope\":"
        "\"private\"}}";
    static const char quiet[] =
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        "3\r\n:\n\n\r\n";
    static const char accepted[] = "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n";
    /* 300 bytes with its head of the message. */
    static const char result[] =
        "{\"content\":[{\"type\":\"text\",\"text\":\"0123456789012345678901234567890123456789012345"
        "6789012345678901234567890123456789012345678901234567890123456789012345678901234567890123"
        "4567890123456789012345678901234567890123456789012345678901234567890123456789012345678\"}]"
        "}}";
    char start[256];
    size_t start_length = write_start(start, sizeof start, body, length);
    const char *bytes = memmem(body, length < 400 ? length : 400, "\"bytes-", 7);
    if (head[0] == 'G' || has(body, length < 400 ? length : 400, "\"quiet\"")) {
        append(c, quiet, sizeof quiet - 1);
    } else if (has(body, length < 200 ? length : 200, "\"subscriptions/listen\"")) {
        reply_listening(c);
    } else if (head[0] == 'D' || !has(body, length, "\"id\":")) {
        append(c, accepted, sizeof accepted - 1);
    } else if (has(body, length < 200 ? length : 200, "\"initialize\"")) {
        static unsigned sessions;
        char session[80];
        snprintf(session, sizeof session, "Mcp-Session-Id: " SESSION "%.0u\r\n",
                 has(body, length, "\"churn\"") ? ++sessions : 0);
        reply(c, session, start, start_length, initialize, sizeof initialize - 1);
    } else if (has(body, length < 200 ? length : 200, "\"server/discover\"")) {
        reply(c, "", start, start_length, discovered, sizeof discovered - 1);
    } else if (has(body, length < 200 ? length : 200, "\"tools/list\"")) {
        static unsigned lists;
        if (has(body, length < 200 ? length : 200, "\"fresh\""))
            start_length += (size_t)snprintf(start + start_length, sizeof start - start_length,
                                             "{\"_meta\":{\"n\":%u},", ++lists);
        size_t brace = start[start_length - 1] == ',' ? 1 : 0;
        reply(c, "", start, start_length, tools_list + brace, tools_length - brace);
    } else if (bytes) {
        reply_bytes(c, start, start_length, (size_t)strtol(bytes + 7, NULL, 10));
    } else {
        reply(c, "", start, start_length, result, sizeof result - 1);
    }
}

/* Takes whole requests off the input. */
static void take_requests(struct connection *c)
{
    size_t at = 0;
    for (;;) {
        size_t head = http_head_end(c->in + at, c->in_length - at);
        if (head == 0)
            break;
        long body = http_body_length(c->in + at, head);
        if (body < 0 || c->in_length - at < head + (size_t)body)
            break;
        answer(c, c->in + at, c->in + at + head, (size_t)body);
        at += head + (size_t)body;
    }
    memmove(c->in, c->in + at, c->in_length - at);
    c->in_length -= at;
}

static void forget(struct connection *c)
{
    close(c->fd);
    free(c->in);
    free(c->out);
    free(c);
}

static bool flush(int epoll, struct connection *c)
{
    while (c->sent < c->out_length) {
        ssize_t n = write(c->fd, c->out + c->sent, c->out_length - c->sent);
        if (n < 0 && errno != EAGAIN)
            return false;
        if (n < 0)
            break;
        c->sent += (size_t)n;
    }
    bool is_done = c->sent == c->out_length;
    struct epoll_event event = {.events = is_done ? EPOLLIN : EPOLLIN | EPOLLOUT, .data.ptr = c};
    if (is_done)
        c->sent = c->out_length = 0;
    return epoll_ctl(epoll, EPOLL_CTL_MOD, c->fd, &event) == 0;
}

static bool serve(int epoll, struct connection *c, unsigned events)
{
    if (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
        grow(&c->in, &c->in_capacity, c->in_length + 65536);
        ssize_t n = read(c->fd, c->in + c->in_length, 65536);
        if (n == 0 || (n < 0 && errno != EAGAIN))
            return false;
        c->in_length += n > 0 ? (size_t)n : 0;
        take_requests(c);
    }
    return c->out_length == 0 || flush(epoll, c);
}

static void make_tools(int count)
{
    FILE *out = open_memstream(&tools_list, &tools_length);
    fprintf(out, "{\"tools\":[");
    for (int i = 0; i < count; i++)
        fprintf(out,
                "%s{\"name\":\"tool_%d\",\"description\":\"Does what number %d does\","
                "\"inputSchema\":{\"type\":\"object\",\"properties\":{\"path\":{\"type\":"
                "\"string\"}},\"required\":[\"path\"]}}",
                i ? "," : "", i, i);
    fprintf(out, "]}}");
    fclose(out);
}

static int listen_on(int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || listen(fd, 4096) != 0) {
        perror("upstream: cannot listen");
        exit(1);
    }
    return fd;
}

static void accept_all(int epoll, int listener)
{
    for (;;) {
        int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK), on = 1;
        if (fd < 0)
            return;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        struct connection *c = calloc(1, sizeof *c);
        if (!c)
            abort();
        c->fd = fd;
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
        epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
    }
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: upstream PORT TOOLS\n");
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    make_tools((int)strtol(argv[2], NULL, 10));
    int listener = listen_on((int)strtol(argv[1], NULL, 10)), epoll = epoll_create1(0);
    struct epoll_event events[256], event = {.events = EPOLLIN, .data.ptr = NULL};
    epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event);
    for (;;) {
        int count = epoll_wait(epoll, events, 256, -1);
        for (int i = 0; i < count; i++) {
            if (!events[i].data.ptr)
                accept_all(epoll, listener);
            else if (!serve(epoll, events[i].data.ptr, events[i].events))
                forget(events[i].data.ptr);
        }
    }
}
