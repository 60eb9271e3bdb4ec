/*
 * The client of the TLS benchmark: N threads, each with one connection at a time that blocks, for
 * so many milliseconds. One line of JSON.
 *
 *     secure PORT THREADS MILLISECONDS FILE handshakes|resumed|requests
 *
 * FILE holds the bytes of one request. `handshakes` and `resumed` ask it once on each connection,
 * and count connections; `requests` asks again and again on one.
 */
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdbool.h>

#include "http.h"
#include "loopback.h"

enum { MOST = 1 << 20 };

static long port;
static char *question;
static size_t question_length;
static bool keeps, resumes;
static int64_t end_ns;
static SSL_CTX *context;

struct client {
    pthread_t thread;
    SSL_SESSION *session;
    long answers, failed, resumed;
    uint32_t *latencies_us;
};

static int keep_session(SSL *ssl, SSL_SESSION *session)
{
    struct client *client = SSL_get_app_data(ssl);
    SSL_SESSION_free(client->session);
    client->session = session;
    return 1;
}

static SSL *connect_secure(struct client *client)
{
    SSL *ssl = SSL_new(context);
    SSL_set_app_data(ssl, client);
    SSL_set_fd(ssl, loopback_connect(port, 0));
    if (resumes && client->session)
        SSL_set_session(ssl, client->session);
    if (SSL_connect(ssl) != 1)
        die("secure: handshake");
    client->resumed += SSL_session_reused(ssl);
    return ssl;
}

static void close_secure(SSL *ssl)
{
    int fd = SSL_get_fd(ssl);
    SSL_shutdown(ssl);
    SSL_free(ssl);
    close(fd);
}

/* Answers here have a length and fit the buffer. */
static bool ask(SSL *ssl)
{
    char answer[16384];
    size_t length = 0, end = 0;
    if (SSL_write(ssl, question, (int)question_length) != (int)question_length)
        die("secure: write");
    while (end == 0 || (long)(length - end) < http_body_length(answer, end)) {
        int count = SSL_read(ssl, answer + length, (int)(sizeof answer - length));
        if (count <= 0)
            die("secure: read");
        length += (size_t)count;
        end = http_head_end(answer, length);
    }
    return strncmp(answer + 9, "20", 2) == 0;
}

static void *run(void *argument)
{
    struct client *client = argument;
    SSL *ssl = keeps ? connect_secure(client) : NULL;
    while (now_ns() < end_ns && client->answers < MOST) {
        int64_t began_ns = now_ns();
        if (!keeps)
            ssl = connect_secure(client);
        client->failed += !ask(ssl);
        client->latencies_us[client->answers++] = (uint32_t)((now_ns() - began_ns) / 1000);
        if (!keeps)
            close_secure(ssl);
    }
    if (keeps)
        close_secure(ssl);
    SSL_SESSION_free(client->session);
    return NULL;
}

static int compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static void report(struct client *clients, long count, int64_t took_ns)
{
    long answers = 0, failed = 0, resumed = 0;
    for (long i = 0; i < count; i++)
        answers += clients[i].answers;
    uint32_t *all = calloc((size_t)answers + 1, sizeof *all);
    if (!all)
        abort();
    size_t length = 0;
    for (long i = 0; i < count; i++) {
        memcpy(all + length, clients[i].latencies_us, (size_t)clients[i].answers * sizeof *all);
        length += (size_t)clients[i].answers;
        failed += clients[i].failed;
        resumed += clients[i].resumed;
    }
    qsort(all, length, sizeof *all, compare);
    printf("{\"answers\":%ld,\"failed\":%ld,\"resumed\":%ld,\"seconds\":%.4f,\"p50_us\":%u,"
           "\"p99_us\":%u}\n",
           answers, failed, resumed, (double)took_ns / 1e9, all[length / 2],
           all[length * 99 / 100]);
    free(all);
}

int main(int argc, char **argv)
{
    if (argc != 6) {
        fprintf(stderr,
                "usage: secure PORT THREADS MILLISECONDS FILE handshakes|resumed|requests\n");
        return 2;
    }
    port = strtol(argv[1], NULL, 10);
    long count = strtol(argv[2], NULL, 10);
    question = read_file(argv[4], &question_length);
    keeps = strcmp(argv[5], "requests") == 0;
    resumes = strcmp(argv[5], "resumed") == 0;
    context = SSL_CTX_new(TLS_client_method());
    struct client *clients = calloc((size_t)count, sizeof *clients);
    if (!context || !clients)
        abort();
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(context, keep_session);
    int64_t began_ns = now_ns();
    end_ns = began_ns + strtol(argv[3], NULL, 10) * 1000000;
    for (long i = 0; i < count; i++) {
        clients[i].latencies_us = calloc(MOST, sizeof(uint32_t));
        if (!clients[i].latencies_us ||
            pthread_create(&clients[i].thread, NULL, run, &clients[i]) != 0)
            abort();
    }
    for (long i = 0; i < count; i++)
        pthread_join(clients[i].thread, NULL);
    report(clients, count, now_ns() - began_ns);
    return 0;
}
