/* Several loops in threads of their own, one port, and answers that cross threads. */
#include <arpa/inet.h>
#include <check.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "taskgate/http/server.h"

enum { WORKERS = 3, CLIENTS = 4, CONNECTIONS_EACH = 40, REQUESTS_EACH = 3 };
enum { ALL_REQUESTS = CLIENTS * CONNECTIONS_EACH * REQUESTS_EACH };

/* Plays the store thread for the workers: it gets each request and answers by message. */
struct clerk {
    struct loop *loop;
    pthread_t thread;
};

struct worker {
    struct loop *loop;
    struct http_server *server;
    struct clerk *clerk;
    pthread_t thread;
    atomic_int answered;
};

/* A request on its way to the clerk and back. It belongs to its worker's thread but for the
 * clerk's part; the last to see it frees it. */
struct errand {
    struct worker *worker;
    struct http_exchange *exchange; /* NULL when the client is gone */
};

static void on_gone(void *context)
{
    struct errand *errand = context;
    errand->exchange = NULL;
}

static void come_back(void *context)
{
    struct errand *errand = context;
    if (errand->exchange != NULL) {
        http_respond_text(errand->exchange, 200, "text/plain", STR("ok"));
        atomic_fetch_add(&errand->worker->answered, 1);
    }
    free(errand);
}

static void see_clerk(void *context)
{
    struct errand *errand = context;
    loop_post(errand->worker->loop, come_back, errand);
}

static void on_request(struct http_exchange *exchange, void *context)
{
    struct worker *worker = context;
    struct errand *errand = malloc(sizeof(*errand));
    if (errand == NULL)
        abort();
    *errand = (struct errand){.worker = worker, .exchange = exchange};
    http_on_gone(exchange, on_gone, errand);
    loop_post(worker->clerk->loop, see_clerk, errand);
}

static void *run_clerk(void *context)
{
    struct clerk *clerk = context;
    loop_run(clerk->loop);
    return NULL;
}

static void *run_worker(void *context)
{
    struct worker *worker = context;
    loop_run(worker->loop);
    http_server_destroy(worker->server);
    return NULL;
}

static void stop_worker(void *context)
{
    struct worker *worker = context;
    loop_stop(worker->loop);
}

static void drain_worker(void *context)
{
    struct worker *worker = context;
    http_server_drain(worker->server, stop_worker, worker);
}

static bool ask(int fd)
{
    static const char request[] = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
    char answer[1024];
    size_t length = 0;
    if (send(fd, request, sizeof(request) - 1, MSG_NOSIGNAL) != (ssize_t)sizeof(request) - 1)
        return false;
    while (length < sizeof(answer)) {
        ssize_t count = recv(fd, answer + length, sizeof(answer) - length, 0);
        if (count <= 0)
            return false;
        length += (size_t)count;
        if (memmem(answer, length, "\r\n\r\nok", 6) != NULL)
            return true;
    }
    return false;
}

/* Returns how many of its requests were answered; every fifth connection leaves without
 * waiting for the last answer. */
static void *run_client(void *context)
{
    const struct sockaddr_in *address = context;
    intptr_t answered = 0;
    for (int i = 0; i < CONNECTIONS_EACH; i++) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0) {
            for (int j = 0; j < REQUESTS_EACH; j++)
                answered += ask(fd);
            if (i % 5 == 0)
                (void)send(fd, "GET / HTTP/1.1\r\n\r\n", 18, MSG_NOSIGNAL);
        }
        close(fd);
    }
    return (void *)answered;
}

START_TEST(workers_share_a_port_and_answer_across_threads)
{
    struct error error = {""};
    struct clerk clerk = {.loop = loop_create(&error)};
    struct worker workers[WORKERS];
    pthread_t clients[CLIENTS];
    struct http_server_options options = {.address = STR("127.0.0.1"),
                                          .reuse_port = true,
                                          .max_body_bytes = 1000,
                                          .read_timeout_ms = 20000,
                                          .stream_high_water = 65536,
                                          .handler = on_request};
    ck_assert_ptr_nonnull(clerk.loop);
    for (int i = 0; i < WORKERS; i++) {
        workers[i] = (struct worker){.loop = loop_create(&error), .clerk = &clerk};
        options.context = &workers[i];
        workers[i].server = http_server_create(workers[i].loop, &options, &error);
        ck_assert_msg(workers[i].server != NULL, "%s", error.message);
        options.port = http_server_port(workers[i].server);
    }
    ck_assert_int_eq(pthread_create(&clerk.thread, NULL, run_clerk, &clerk), 0);
    for (int i = 0; i < WORKERS; i++)
        ck_assert_int_eq(pthread_create(&workers[i].thread, NULL, run_worker, &workers[i]), 0);

    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(options.port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    for (int i = 0; i < CLIENTS; i++)
        ck_assert_int_eq(pthread_create(&clients[i], NULL, run_client, &address), 0);
    intptr_t answered = 0;
    for (int i = 0; i < CLIENTS; i++) {
        void *result;
        pthread_join(clients[i], &result);
        answered += (intptr_t)result;
    }
    ck_assert_int_eq(answered, ALL_REQUESTS);

    int counted = 0;
    for (int i = 0; i < WORKERS; i++) {
        loop_post(workers[i].loop, drain_worker, &workers[i]);
        pthread_join(workers[i].thread, NULL);
        counted += atomic_load(&workers[i].answered);
    }
    ck_assert_int_ge(counted, ALL_REQUESTS);
    loop_stop(clerk.loop);
    pthread_join(clerk.thread, NULL);
    loop_destroy(clerk.loop); /* errands still there come back … */
    for (int i = 0; i < WORKERS; i++)
        loop_destroy(workers[i].loop); /* … and are freed */
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("http_threads");
    TCase *tests = tcase_create("http_threads");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, workers_share_a_port_and_answer_across_threads);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
