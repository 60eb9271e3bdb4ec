/* Sockets that the loop tells of once. */
#include <check.h>
#include <sys/socket.h>
#include <unistd.h>

#include "loop_scene.h"
#include "taskgate/loop/loop.h"

struct end {
    struct loop_edge edge;
    int fds[2]; /* ours, and the other's */
    int told;
    struct end *stops; /* another that the callback takes out */
};

static void on_told(void *context)
{
    struct end *end = context;
    end->told++;
    if (end->stops != NULL) {
        loop_edge_stop(&end->stops->edge);
        close(end->stops->fds[0]);
    }
}

/* It begins with the news that there is room to write. */
static void start_end(struct end *end, struct loop *loop)
{
    *end = (struct end){.told = 0};
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, end->fds), 0);
    ck_assert(loop_edge_start(&end->edge, loop, end->fds[0], on_told, end));
    run_until(loop, &end->told, 1);
    ck_assert_uint_eq(end->edge.events, EPOLLOUT);
}

static void say(struct end *end)
{
    ck_assert_int_eq(write(end->fds[1], "x", 1), 1);
}

static void finish_end(struct end *end)
{
    loop_edge_stop(&end->edge);
    close(end->fds[0]);
    close(end->fds[1]);
}

START_TEST(unread_bytes_are_told_once_and_new_ones_again)
{
    struct loop *loop = create_loop();
    struct end end;
    start_end(&end, loop);
    say(&end);
    run_until(loop, &end.told, 2);
    ck_assert_uint_eq(end.edge.events, EPOLLIN | EPOLLOUT);
    loop_run_once(loop, 0);
    loop_run_once(loop, 0);
    ck_assert_int_eq(end.told, 2);
    end.edge.events = 0;
    say(&end);
    run_until(loop, &end.told, 3);
    ck_assert_uint_eq(end.edge.events & EPOLLIN, EPOLLIN);
    finish_end(&end);
    loop_destroy(loop);
}
END_TEST

START_TEST(the_end_of_the_other_side_is_told)
{
    struct loop *loop = create_loop();
    struct end end;
    start_end(&end, loop);
    ck_assert_int_eq(shutdown(end.fds[1], SHUT_WR), 0);
    run_until(loop, &end.told, 2);
    ck_assert_uint_eq(end.edge.events & LOOP_EDGE_HANGS_UP, EPOLLRDHUP);
    finish_end(&end);
    loop_destroy(loop);
}
END_TEST

START_TEST(a_look_is_up_to_date_and_runs_nothing)
{
    enum { MANY = 130 }; /* more than one system call tells */
    struct loop *loop = create_loop();
    static struct end ends[MANY];
    for (int i = 0; i < MANY; i++)
        start_end(&ends[i], loop);
    for (int i = 0; i < MANY; i++)
        say(&ends[i]);
    loop_edges_look(loop);
    for (int i = 0; i < MANY; i++) {
        ck_assert_int_eq(ends[i].told, 1);
        ck_assert_uint_eq(ends[i].edge.events & EPOLLIN, EPOLLIN);
    }
    loop_run_once(loop, 10000);
    for (int i = 0; i < MANY; i++) {
        ck_assert_int_eq(ends[i].told, 2);
        finish_end(&ends[i]);
    }
    loop_destroy(loop);
}
END_TEST

START_TEST(one_asked_for_again_comes_without_an_event_and_without_a_wait)
{
    struct loop *loop = create_loop();
    struct end end;
    start_end(&end, loop);
    loop_edge_again(&end.edge);
    loop_edge_again(&end.edge);
    int64_t before_ms = clock_monotonic_ms();
    loop_run_once(loop, 10000);
    ck_assert_int_lt(clock_monotonic_ms() - before_ms, 5000);
    ck_assert_int_eq(end.told, 2);
    loop_run_once(loop, 0);
    ck_assert_int_eq(end.told, 2);
    finish_end(&end);
    loop_destroy(loop);
}
END_TEST

START_TEST(one_that_is_stopped_by_another_is_not_told_any_more)
{
    struct loop *loop = create_loop();
    struct end first, second;
    start_end(&first, loop);
    start_end(&second, loop);
    first.stops = &second;
    say(&first);
    say(&second);
    run_until(loop, &first.told, 2);
    loop_run_once(loop, 0);
    ck_assert_int_eq(second.told, 1);
    close(second.fds[1]);
    finish_end(&first);
    loop_destroy(loop);
}
END_TEST

TCase *edges_case(void)
{
    TCase *edges = tcase_create("edges");
    tcase_add_test(edges, unread_bytes_are_told_once_and_new_ones_again);
    tcase_add_test(edges, the_end_of_the_other_side_is_told);
    tcase_add_test(edges, a_look_is_up_to_date_and_runs_nothing);
    tcase_add_test(edges, one_asked_for_again_comes_without_an_event_and_without_a_wait);
    tcase_add_test(edges, one_that_is_stopped_by_another_is_not_told_any_more);
    return edges;
}
