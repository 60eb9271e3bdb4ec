/* The event loop: its rounds, posts between threads, watched descriptors. */
#include <check.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <h2o.h>

#include "loop_scene.h"

/* ---- the clock of a round ---- */

struct reading {
    struct loop_timer timer;
    int64_t now_ms;
    int64_t true_ms;
};

static void read_clock(void *context)
{
    struct reading *reading = context;
    reading->now_ms = loop_now_ms(reading->timer.loop);
    reading->true_ms = clock_monotonic_ms();
}

START_TEST(the_clock_of_a_round_is_the_monotonic_one_as_it_began)
{
    struct loop *loop = create_loop();
    struct reading reading = {.now_ms = 0};
    loop_timer_init(&reading.timer, loop, read_clock, &reading);
    for (int i = 0; i < 3; i++) {
        int64_t before_ms = clock_monotonic_ms();
        reading.now_ms = 0;
        loop_timer_start(&reading.timer, 20);
        while (reading.now_ms == 0)
            loop_run_once(loop, 1000);
        /* A wait of 20 ms lies between: a clock that stood still would be older. */
        ck_assert_int_ge(reading.now_ms, before_ms + 15);
        ck_assert_int_le(reading.now_ms, reading.true_ms);
    }
    loop_destroy(loop);
}
END_TEST

/* ---- the end of a round ---- */

struct ending {
    struct loop_round_end end;
    struct loop_timer timer;
    int count;
    int wanted;
};

static void end_again(void *context)
{
    struct ending *ending = context;
    if (++ending->count < ending->wanted)
        loop_round_end_schedule(&ending->end);
}

static void ask_twice(void *context)
{
    struct ending *ending = context;
    loop_round_end_schedule(&ending->end);
    loop_round_end_schedule(&ending->end);
    ck_assert_int_eq(ending->count, 0);
}

/* One that asks for itself starves nobody, and does not wait for another event. */
START_TEST(an_end_of_a_round_that_asks_for_another_gets_it_without_a_wait)
{
    struct loop *loop = create_loop();
    struct ending ending = {.wanted = 100};
    loop_round_end_init(&ending.end, loop, end_again, &ending);
    loop_timer_init(&ending.timer, loop, ask_twice, &ending);
    loop_timer_start(&ending.timer, 0);
    loop_run_once(loop, 1000);
    ck_assert_int_ge(ending.count, 1);
    ck_assert_int_le(ending.count, 2);
    int64_t before_ms = clock_monotonic_ms();
    for (int i = 0; i < 100; i++) {
        int count = ending.count;
        loop_run_once(loop, count < ending.wanted ? 10000 : 0);
        ck_assert_int_ge(ending.count, count < ending.wanted ? count + 1 : count);
    }
    ck_assert_int_lt(clock_monotonic_ms() - before_ms, 5000);
    ck_assert_int_eq(ending.count, 100);
    loop_destroy(loop);
}
END_TEST

/* ---- posts ---- */

enum { POSTERS = 4, POSTS_EACH = 5000, ALL_POSTS = POSTERS * POSTS_EACH };

struct tally {
    struct loop *loop;
    int next[POSTERS]; /* touched on the loop's thread alone */
    int total;
};

struct post {
    struct tally *tally;
    int poster;
    int number;
};

static void count_post(void *context)
{
    struct post *post = context;
    struct tally *tally = post->tally;
    ck_assert(loop_is_current(tally->loop));
    ck_assert_int_eq(post->number, tally->next[post->poster]);
    tally->next[post->poster]++;
    if (++tally->total == ALL_POSTS)
        loop_stop(tally->loop);
    free(post);
}

struct poster {
    pthread_t thread;
    struct tally *tally;
    int number;
};

static void *post_many(void *context)
{
    struct poster *poster = context;
    for (int i = 0; i < POSTS_EACH; i++) {
        struct post *post = malloc(sizeof(*post));
        if (post == NULL)
            abort();
        *post = (struct post){.tally = poster->tally, .poster = poster->number, .number = i};
        loop_post(poster->tally->loop, count_post, post);
    }
    return NULL;
}

START_TEST(posts_of_many_threads_arrive_once_and_in_each_ones_order)
{
    struct tally tally = {.loop = create_loop()};
    struct poster posters[POSTERS];
    for (int i = 0; i < POSTERS; i++) {
        posters[i] = (struct poster){.tally = &tally, .number = i};
        ck_assert_int_eq(pthread_create(&posters[i].thread, NULL, post_many, &posters[i]), 0);
    }
    loop_run(tally.loop);
    for (int i = 0; i < POSTERS; i++)
        pthread_join(posters[i].thread, NULL);
    ck_assert_int_eq(tally.total, ALL_POSTS);
    loop_destroy(tally.loop);
}
END_TEST

static void *run_loop(void *context)
{
    loop_run(context);
    return NULL;
}

static void set_flag(void *context)
{
    bool *flag = context;
    *flag = true;
}

START_TEST(another_thread_stops_a_waiting_loop)
{
    struct loop *loop = create_loop();
    ck_assert(loop_is_current(loop));
    bool posted = false;
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, run_loop, loop), 0);
    loop_post(loop, set_flag, &posted);
    loop_stop(loop);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    loop_destroy(loop); /* delivers the rest of the messages */
    ck_assert(posted);
}
END_TEST

struct chain {
    struct loop *loop;
    int left;
};

static void post_next(void *context)
{
    struct chain *chain = context;
    if (chain->left-- > 1)
        loop_post(chain->loop, post_next, chain);
}

START_TEST(a_post_from_a_post_waits_for_a_later_round_but_destroy_delivers_all)
{
    struct loop *loop = create_loop();
    struct chain chain = {.loop = loop, .left = 10};
    loop_post(loop, post_next, &chain);
    loop_run_once(loop, 1000);
    ck_assert_int_eq(chain.left, 9);
    loop_run_once(loop, 1000);
    ck_assert_int_eq(chain.left, 8);
    loop_destroy(loop);
    ck_assert_int_eq(chain.left, 0);
}
END_TEST

/* ---- watches ---- */

struct watched {
    struct loop_watch *watch;
    int events;
    bool destroy_in_callback;
};

static void count_event(void *context)
{
    struct watched *watched = context;
    watched->events++;
    if (watched->destroy_in_callback) {
        loop_watch_destroy(watched->watch);
        watched->watch = NULL;
    }
}

START_TEST(a_watch_is_level_triggered_on_a_nested_epoll)
{
    struct loop *loop = create_loop();
    int inner = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN};
    ck_assert_int_eq(epoll_ctl(epoll, EPOLL_CTL_ADD, inner, &event), 0);
    struct watched watched = {.events = 0};
    watched.watch = loop_watch_create(loop, epoll, count_event, &watched);
    ck_assert_ptr_nonnull(watched.watch);

    loop_run_once(loop, 0);
    ck_assert_int_eq(watched.events, 0);
    uint64_t value = 1;
    ck_assert_int_eq(write(inner, &value, sizeof(value)), sizeof(value));
    run_until(loop, &watched.events, 1);
    loop_run_once(loop, 1000); /* still readable: told again */
    ck_assert_int_eq(watched.events, 2);
    ck_assert_int_eq(read(inner, &value, sizeof(value)), sizeof(value));
    loop_run_once(loop, 0);
    ck_assert_int_eq(watched.events, 2);

    loop_watch_destroy(watched.watch);
    ck_assert_int_eq(write(inner, &value, sizeof(value)), sizeof(value)); /* still the caller's */
    loop_run_once(loop, 0);
    ck_assert_int_eq(watched.events, 2);
    close(epoll);
    close(inner);
    loop_destroy(loop);
}
END_TEST

START_TEST(a_watch_may_be_destroyed_in_its_callback)
{
    struct loop *loop = create_loop();
    int fd = eventfd(1, EFD_NONBLOCK | EFD_CLOEXEC);
    struct watched watched = {.destroy_in_callback = true};
    watched.watch = loop_watch_create(loop, fd, count_event, &watched);
    run_until(loop, &watched.events, 1);
    loop_run_once(loop, 0);
    ck_assert_int_eq(watched.events, 1);
    close(fd);
    loop_destroy(loop);
}
END_TEST

/* ---- h2o's sockets ---- */

struct writer {
    struct loop_timer timer;
    h2o_socket_t *socket;
    char bytes[24 * 1024];
    int written;
};

static void on_nothing(h2o_socket_t *socket, const char *error)
{
}

static void on_written(h2o_socket_t *socket, const char *error)
{
    struct writer *writer = socket->data;
    ck_assert_ptr_null(error);
    writer->written++;
}

static void write_from_timer(void *context)
{
    struct writer *writer = context;
    h2o_iovec_t bytes = h2o_iovec_init(writer->bytes, sizeof(writer->bytes));
    h2o_socket_read_start(writer->socket, on_nothing); /* its state is looked at again */
    h2o_socket_write(writer->socket, &bytes, 1, on_written);
}

/* All that is written fits, and then the kernel says that there is no room for more. */
START_TEST(a_timer_writes_to_a_socket_that_is_full_by_that)
{
    struct loop *loop = create_loop();
    struct writer *writer = calloc(1, sizeof(*writer));
    char taken[sizeof(writer->bytes)];
    int ends[2],
        capacity = 32 * 1024; /* the kernel doubles it, and says "full" from a quarter on */
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    ck_assert_int_eq(setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &capacity, sizeof(capacity)), 0);
    writer->socket = h2o_evloop_socket_create(loop_native(loop), ends[0], 0);
    writer->socket->data = writer;
    loop_timer_init(&writer->timer, loop, write_from_timer, writer);
    loop_timer_start(&writer->timer, 0);
    run_until(loop, &writer->written, 1);
    loop_run_once(loop, 0);
    ck_assert_int_eq(read(ends[1], taken, sizeof(taken)), (ssize_t)sizeof(taken));
    loop_run_once(loop, 0); /* there is room all the time */

    write_from_timer(writer); /* the next works, too */
    run_until(loop, &writer->written, 2);
    h2o_socket_close(writer->socket);
    loop_destroy(loop);
    close(ends[1]);
    free(writer);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("loop");
    TCase *tests = tcase_create("loop");
    tcase_set_timeout(tests, 30);
    tcase_add_test(tests, the_clock_of_a_round_is_the_monotonic_one_as_it_began);
    tcase_add_test(tests, an_end_of_a_round_that_asks_for_another_gets_it_without_a_wait);
    tcase_add_test(tests, posts_of_many_threads_arrive_once_and_in_each_ones_order);
    tcase_add_test(tests, another_thread_stops_a_waiting_loop);
    tcase_add_test(tests, a_post_from_a_post_waits_for_a_later_round_but_destroy_delivers_all);
    tcase_add_test(tests, a_watch_is_level_triggered_on_a_nested_epoll);
    tcase_add_test(tests, a_watch_may_be_destroyed_in_its_callback);
    tcase_add_test(tests, a_timer_writes_to_a_socket_that_is_full_by_that);
    suite_add_tcase(suite, tests);
    suite_add_tcase(suite, edges_case());
    suite_add_tcase(suite, timers_case());
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
