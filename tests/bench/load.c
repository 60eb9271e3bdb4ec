/*
 * The client of the benchmark: N connections. Each sends the same request again as soon as it has
 * the answer, until a number of requests or milliseconds is reached. One line of JSON.
 *
 *     load PORT CONNECTIONS REQUESTS MILLISECONDS FILE [hold|refused]
 *
 * FILE holds the bytes of one request. Its first "########" becomes the request's number, if there
 * is one, so that each request differs. With `hold` each connection sends one request and keeps the
 * answer open until the end (idle streams); it prints "ready" once all heads have come.
 *
 * An answer with another HTTP status than 20x counts as failed. One that refuses the request in
 * its body counts among `errors`. Either ends the program with 3; `refused` ends it with 3 unless
 * each answer is an error.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/epoll.h>

#include "http.h"
#include "loopback.h"
#include "refusal.h"

struct connection {
    int fd;
    size_t sent;      /* of the question */
    char head[16384]; /* of the answer, as far as it is there */
    size_t head_length;
    long left; /* bytes of the body to come; -1: none is awaited, -2: chunked */
    char tail[8];
    char body[2048]; /* the beginning, with a NUL: a refusal is short */
    size_t body_length;
    int64_t asked_ns;
};

static char *question;
static size_t question_length;
static char *question_number; /* eight bytes of it; NULL: each request is the same */
static int epoll;
static long asked, answered, failed, errors, most, opened;
static bool hold, refused;
static uint32_t *latencies_us;

static void ask_on(struct connection *c)
{
    while (c->sent < question_length) {
        ssize_t n = write(c->fd, question + c->sent, question_length - c->sent);
        if (n < 0 && errno == EAGAIN)
            break;
        if (n < 0)
            die("load: write");
        c->sent += (size_t)n;
    }
    struct epoll_event event = {.events = c->sent < question_length ? EPOLLIN | EPOLLOUT : EPOLLIN,
                                .data.ptr = c};
    if (epoll_ctl(epoll, EPOLL_CTL_MOD, c->fd, &event) != 0)
        die("load: epoll");
}

static void ask(struct connection *c)
{
    if (asked >= most)
        return;
    asked++;
    for (long rest = asked, digit = 7; question_number && digit >= 0; digit--, rest /= 10)
        question_number[digit] = (char)('0' + rest % 10);
    c->sent = c->head_length = c->body_length = 0;
    c->left = -1;
    c->asked_ns = now_ns();
    ask_on(c);
}

static void note_answer(struct connection *c)
{
    latencies_us[answered++] = (uint32_t)((now_ns() - c->asked_ns) / 1000);
    if (refusal_is(c->body, c->body_length) && errors++ == 0 && !refused)
        fprintf(stderr, "load: the first error: %s\n", c->body);
    ask(c);
}

/* A chunked body ends with an empty chunk; the questions here get no chunk that looks like it. */
static bool chunks_end(struct connection *c, const char *bytes, size_t length)
{
    char last[16];
    size_t keep = length < 5 ? length : 5;
    memcpy(last, c->tail, 5);
    memmove(last, last + keep, 5 - keep);
    memcpy(last + 5 - keep, bytes + length - keep, keep);
    memcpy(c->tail, last, 5);
    return memcmp(last, "0\r\n\r\n", 5) == 0;
}

static void take_body(struct connection *c, const char *bytes, size_t length)
{
    if (hold || length == 0)
        return;
    size_t room = sizeof c->body - 1 - c->body_length, kept = length < room ? length : room;
    memcpy(c->body + c->body_length, bytes, kept);
    c->body[c->body_length += kept] = '\0';
    if (c->left == -2) {
        if (chunks_end(c, bytes, length))
            note_answer(c);
        return;
    }
    c->left -= (long)length;
    if (c->left <= 0)
        note_answer(c);
}

static void take_head(struct connection *c)
{
    size_t end = http_head_end(c->head, c->head_length);
    if (end == 0)
        return;
    if (strncmp(c->head + 9, "20", 2) != 0)
        failed++;
    opened++;
    long length = http_body_length(c->head, end);
    c->left = length < 0 ? -2 : length;
    if (length == 0 && !hold)
        note_answer(c);
    else
        take_body(c, c->head + end, c->head_length - end);
}

static void on_readable(struct connection *c)
{
    static char bytes[262144];
    bool in_head = c->left == -1;
    ssize_t n = in_head ? read(c->fd, c->head + c->head_length, sizeof c->head - c->head_length)
                        : read(c->fd, bytes, sizeof bytes);
    if (n < 0 && errno == EAGAIN)
        return;
    if (n <= 0) {
        fprintf(stderr, "load: the connection was closed after %ld answers\n", answered);
        exit(1);
    }
    if (in_head) {
        c->head_length += (size_t)n;
        take_head(c);
    } else {
        take_body(c, bytes, (size_t)n);
    }
}

static struct connection *open_connection(long port)
{
    struct connection *c = calloc(1, sizeof *c);
    if (!c)
        abort();
    c->fd = loopback_connect(port, 0);
    if (fcntl(c->fd, F_SETFL, O_NONBLOCK) != 0)
        die("load: fcntl");
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
    epoll_ctl(epoll, EPOLL_CTL_ADD, c->fd, &event);
    return c;
}

static int compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static void report(int64_t took_ns)
{
    qsort(latencies_us, (size_t)answered, sizeof *latencies_us, compare);
    uint32_t p50 = answered ? latencies_us[answered / 2] : 0;
    uint32_t p99 = answered ? latencies_us[answered * 99 / 100] : 0;
    printf("{\"answers\":%ld,\"failed\":%ld,\"errors\":%ld,\"seconds\":%.4f,\"p50_us\":%u,"
           "\"p99_us\":%u}\n",
           answered, failed, errors, (double)took_ns / 1e9, p50, p99);
    fflush(stdout);
}

static void run(int64_t end_ns, long connections)
{
    struct epoll_event events[256];
    bool said = false;
    while (answered < most && now_ns() < end_ns) {
        int count = epoll_wait(epoll, events, 256, 50);
        for (int i = 0; i < count; i++) {
            struct connection *c = events[i].data.ptr;
            if (c->sent < question_length && (events[i].events & EPOLLOUT))
                ask_on(c);
            if (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR))
                on_readable(c);
        }
        if (hold && !said && opened == connections) {
            said = true;
            puts("ready");
            fflush(stdout);
        }
    }
}

int main(int argc, char **argv)
{
    if (argc < 6) {
        fprintf(stderr, "usage: load PORT CONNECTIONS REQUESTS MILLISECONDS FILE [hold|refused]\n");
        return 2;
    }
    long port = strtol(argv[1], NULL, 10);
    long connections = strtol(argv[2], NULL, 10);
    most = strtol(argv[3], NULL, 10);
    hold = argc > 6 && strcmp(argv[6], "hold") == 0;
    refused = argc > 6 && strcmp(argv[6], "refused") == 0;
    latencies_us = calloc((size_t)most + 1, sizeof *latencies_us);
    signal(SIGPIPE, SIG_IGN);
    question = read_file(argv[5], &question_length);
    question_number = memmem(question, question_length, "########", 8);
    epoll = epoll_create1(0);
    struct connection **all = calloc((size_t)connections, sizeof *all);
    if (!all || !latencies_us)
        abort();
    for (long i = 0; i < connections; i++)
        all[i] = open_connection(port);
    int64_t began = now_ns();
    for (long i = 0; i < connections; i++)
        ask(all[i]);
    run(began + strtol(argv[4], NULL, 10) * 1000000, connections);
    report(now_ns() - began);
    if (refused)
        return answered > 0 && errors == answered ? 0 : 3;
    return failed + errors > 0 && !hold ? 3 : 0;
}
