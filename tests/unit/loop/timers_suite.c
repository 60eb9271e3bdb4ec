/* The loop's timers: their order, stops and restarts. */
#include <signal.h>
#include <stdlib.h>

#include "loop_scene.h"

struct trace {
    int order[64];
    int count;
};

struct step {
    struct loop_timer timer;
    struct trace *trace;
    int number;
};

static void record_step(void *context)
{
    struct step *step = context;
    step->trace->order[step->trace->count++] = step->number;
}

START_TEST(timers_run_in_the_order_due_then_started)
{
    struct loop *loop = create_loop();
    struct trace trace = {.count = 0};
    static const int delays[] = {30, 10, 20, 10, 0, 30};
    static const int expected[] = {4, 1, 3, 2, 0, 5};
    struct step steps[6];
    int64_t start_ms = clock_monotonic_ms();
    for (int i = 0; i < 6; i++) {
        steps[i] = (struct step){.trace = &trace, .number = i};
        loop_timer_init(&steps[i].timer, loop, record_step, &steps[i]);
        loop_timer_start(&steps[i].timer, delays[i]);
    }
    run_until(loop, &trace.count, 6);
    ck_assert_int_ge(clock_monotonic_ms() - start_ms, 30);
    for (int i = 0; i < 6; i++) {
        ck_assert_int_eq(trace.order[i], expected[i]);
        ck_assert(!loop_timer_is_running(&steps[i].timer));
    }
    loop_destroy(loop);
}
END_TEST

START_TEST(a_stopped_timer_does_not_run_and_a_restarted_one_runs_once)
{
    struct loop *loop = create_loop();
    struct trace trace = {.count = 0};
    struct step stopped = {.trace = &trace, .number = 1};
    struct step restarted = {.trace = &trace, .number = 2};
    struct step last = {.trace = &trace, .number = 3};
    loop_timer_init(&stopped.timer, loop, record_step, &stopped);
    loop_timer_init(&restarted.timer, loop, record_step, &restarted);
    loop_timer_init(&last.timer, loop, record_step, &last);
    loop_timer_stop(&stopped.timer); /* not running: nothing happens */
    loop_timer_start(&stopped.timer, 5);
    loop_timer_start(&restarted.timer, 60000);
    loop_timer_start(&last.timer, 20);
    loop_timer_start(&restarted.timer, 1);
    loop_timer_stop(&stopped.timer);
    ck_assert(!loop_timer_is_running(&stopped.timer));
    ck_assert(loop_timer_is_running(&restarted.timer));
    run_until(loop, &trace.count, 2);
    ck_assert_int_eq(trace.order[0], 2);
    ck_assert_int_eq(trace.order[1], 3);
    loop_destroy(loop);
}
END_TEST

struct many {
    struct loop_timer *timers;
    int64_t last_due_ms;
    int ran;
};

struct one_of_many {
    struct loop_timer timer;
    struct many *all;
    int64_t due_ms;
    bool stopped;
};

static void record_one(void *context)
{
    struct one_of_many *one = context;
    ck_assert(!one->stopped);
    ck_assert_int_ge(one->due_ms, one->all->last_due_ms);
    one->all->last_due_ms = one->due_ms;
    one->all->ran++;
}

START_TEST(a_large_heap_keeps_its_order_under_stops_and_restarts)
{
    enum { COUNT = 5000 };
    struct loop *loop = create_loop();
    struct many all = {.ran = 0};
    struct one_of_many *ones = calloc(COUNT, sizeof(*ones));
    ck_assert_ptr_nonnull(ones);
    unsigned random = 12345;
    for (int i = 0; i < COUNT; i++) {
        ones[i].all = &all;
        loop_timer_init(&ones[i].timer, loop, record_one, &ones[i]);
        loop_timer_start(&ones[i].timer, (random = random * 1103515245u + 12345u) >> 25);
    }
    int expected = COUNT;
    for (int i = 0; i < COUNT; i++) {
        if (i % 3 == 0) {
            loop_timer_stop(&ones[i].timer);
            ones[i].stopped = true;
            expected--;
        } else if (i % 3 == 1) {
            loop_timer_start(&ones[i].timer, (random = random * 1103515245u + 12345u) >> 25);
        }
        ones[i].due_ms = ones[i].timer.due_ms;
    }
    run_until(loop, &all.ran, expected);
    free(ones);
    loop_destroy(loop);
}
END_TEST

struct again {
    struct loop_timer timer;
    int runs;
};

static void start_again(void *context)
{
    struct again *again = context;
    again->runs++;
    loop_timer_start(&again->timer, 0);
}

START_TEST(a_timer_restarted_with_no_delay_waits_for_the_next_round)
{
    struct loop *loop = create_loop();
    struct again again = {.runs = 0};
    loop_timer_init(&again.timer, loop, start_again, &again);
    loop_timer_start(&again.timer, 0);
    for (int round = 1; round <= 10; round++) {
        loop_run_once(loop, 1000);
        ck_assert_int_eq(again.runs, round);
    }
    loop_timer_stop(&again.timer);
    loop_destroy(loop);
}
END_TEST

struct owned {
    struct loop_timer timer;
    int *freed;
};

static void free_owner(void *context)
{
    struct owned *owned = context;
    (*owned->freed)++;
    free(owned);
}

START_TEST(a_timer_may_free_its_owner)
{
    struct loop *loop = create_loop();
    int freed = 0;
    for (int i = 0; i < 3; i++) {
        struct owned *owned = calloc(1, sizeof(*owned));
        ck_assert_ptr_nonnull(owned);
        owned->freed = &freed;
        loop_timer_init(&owned->timer, loop, free_owner, owned);
        loop_timer_start(&owned->timer, 0);
    }
    run_until(loop, &freed, 3);
    loop_destroy(loop);
}
END_TEST

static void record_other(void *context)
{
    struct trace *trace = context;
    trace->order[trace->count++] = -1;
}

START_TEST(a_start_with_another_callback_calls_that_one_alone)
{
    struct loop *loop = create_loop();
    struct trace trace = {.count = 0};
    struct step step = {.trace = &trace, .number = 1};
    loop_timer_init(&step.timer, loop, record_step, &step);
    loop_timer_start(&step.timer, 1);
    loop_timer_start_with(&step.timer, record_other, &trace, 1);
    run_until(loop, &trace.count, 1);
    ck_assert_int_eq(trace.order[0], -1);
    loop_timer_start(&step.timer, 1); /* the last callback stays */
    run_until(loop, &trace.count, 2);
    ck_assert_int_eq(trace.order[1], -1);
    ck_assert(!loop_timer_is_running(&step.timer));
    loop_destroy(loop);
}
END_TEST

START_TEST(a_running_timer_is_not_begun_anew)
{
    struct loop *loop = create_loop();
    struct trace trace = {.count = 0};
    struct step step = {.trace = &trace, .number = 1};
    loop_timer_init(&step.timer, loop, record_step, &step);
    loop_timer_start(&step.timer, 60000);
    loop_timer_init(&step.timer, loop, record_other, &trace);
}
END_TEST

TCase *timers_case(void)
{
    TCase *tests = tcase_create("timers");
    tcase_set_timeout(tests, 30);
    tcase_add_test(tests, timers_run_in_the_order_due_then_started);
    tcase_add_test(tests, a_stopped_timer_does_not_run_and_a_restarted_one_runs_once);
    tcase_add_test(tests, a_large_heap_keeps_its_order_under_stops_and_restarts);
    tcase_add_test(tests, a_timer_restarted_with_no_delay_waits_for_the_next_round);
    tcase_add_test(tests, a_timer_may_free_its_owner);
    tcase_add_test(tests, a_start_with_another_callback_calls_that_one_alone);
    tcase_add_test_raise_signal(tests, a_running_timer_is_not_begun_anew, SIGABRT);
    return tests;
}
