/* Deadlines, retention, how often to ask. */
#include <check.h>

#include "support.h"

START_TEST(the_wall_clock_going_back_keeps_the_order)
{
    struct task *task = new_task(TASK_PENDING);
    ck_assert(task_transition(task, &(struct task_change){.to = TASK_CANCELLED}, NOW - 5000, NULL));
    ck_assert_int_eq(task->updated_ms, NOW);
    ck_assert_int_eq(task->ended_ms, NOW);
    task_unref(task);
}
END_TEST

START_TEST(deadlines_hold_only_before_execution)
{
    for (unsigned s = 0; s < TASK_STATE_COUNT; s++) {
        struct task *task = task_in((enum task_state)s);
        int64_t expected = INT64_MAX;
        if (s == TASK_PENDING)
            expected = NOW + 600000;
        if (s == TASK_APPROVED)
            expected = task->execute_by_ms;
        ck_assert_int_eq(task_next_deadline_ms(task), expected);
        struct task_change change;
        ck_assert_int_eq(task_due(task, NOW + 100000000, &change), s <= TASK_APPROVED);
        if (s <= TASK_APPROVED) {
            ck_assert(!task_due(task, expected - 1, &change));
            ck_assert(task_due(task, expected, &change));
            ck_assert_int_eq(change.to, TASK_EXPIRED);
        }
        task_unref(task);
    }
}
END_TEST

START_TEST(retention_is_the_later_of_ttl_and_an_hour)
{
    struct task *task = new_task(TASK_PENDING);
    ck_assert_int_eq(task_purge_ms(task), INT64_MAX);
    ck_assert(task_transition(task, &(struct task_change){.to = TASK_CANCELLED}, NOW + 7, NULL));
    ck_assert_int_eq(task_purge_ms(task), NOW + 7 + 3600000);
    task->ttl_ms = 86400000;
    ck_assert_int_eq(task_purge_ms(task), NOW + 86400000);
    task->ttl_ms = INT64_MAX;
    ck_assert_int_eq(task_purge_ms(task), INT64_MAX);
    task_unref(task);
}
END_TEST

START_TEST(polling_slows_with_the_time_left)
{
    static const int64_t cases[][2] = {{-5, 2000},      {0, 2000},       {60000, 2000},
                                       {60001, 5000},   {300000, 5000},  {300001, 10000},
                                       {900000, 10000}, {900001, 30000}, {INT64_MAX, 30000}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_int_eq(task_poll_interval_ms(cases[i][0]), cases[i][1]);
}
END_TEST

TCase *clocks_case(void)
{
    TCase *tests = tcase_create("clocks");
    tcase_add_test(tests, the_wall_clock_going_back_keeps_the_order);
    tcase_add_test(tests, deadlines_hold_only_before_execution);
    tcase_add_test(tests, retention_is_the_later_of_ttl_and_an_hour);
    tcase_add_test(tests, polling_slows_with_the_time_left);
    return tests;
}
