/* Tasks that nobody decides on: accelerated and promoted ones. */
#include <check.h>
#include <string.h>

#include "support.h"

START_TEST(an_accelerated_task_expires_by_its_own_clock)
{
    struct task *task = new_task(TASK_APPROVED);
    task->accelerated = true;
    task->execute_by_ms = NOW + 1500;
    struct task_change change;
    ck_assert(!task_due(task, NOW + 1499, &change));
    ck_assert(task_due(task, NOW + 1500, &change));
    ck_assert(task_transition(task, &change, NOW + 1500, NULL));
    ck_assert_str_eq(task->status_message, "Approved, but not run within 1500 ms");
    task_unref(task);
}
END_TEST

/* ---- promoted ones ---- */

static struct task *new_promoted(void)
{
    struct task *task = task_create_promoted();
    task->created_ms = task->updated_ms = NOW;
    task->ttl_ms = 300000;
    task->retention_ms = 200000;
    task->expired_retention_ms = 60000;
    return task;
}

START_TEST(a_promoted_task_ends_or_expires_and_is_never_given_back)
{
    enum task_state to = (enum task_state)_i;
    struct task *task = new_promoted();
    struct task_change change = {.to = to};
    struct error error = {""};
    ck_assert_msg(task_check(task, &error), "%s", error.message);
    ck_assert_int_eq(task->state, TASK_EXECUTING);
    change.failure = to == TASK_FAILED ? TASK_FAILURE_UPSTREAM : TASK_FAILURE_NONE;
    change.outcome = to == TASK_COMPLETED ? TASK_OUTCOME_RESULT : TASK_OUTCOME_NONE;
    change.outcome_text = STR("{}");
    bool expected = strchr("cfxe", "paecfxre"[to]) != NULL && to >= TASK_COMPLETED;
    ck_assert_int_eq(task_can_change(task, &change), expected);
    ck_assert_int_eq(task_transition(task, &change, NOW + 1000, &error), expected);
    ck_assert_int_eq(task->state, expected ? to : TASK_EXECUTING);
    ck_assert(task_check(task, NULL));
    task_unref(task);
}
END_TEST

START_TEST(a_promoted_task_expires_when_its_ttl_is_over)
{
    struct task *task = new_promoted();
    struct task_change change;
    ck_assert_int_eq(task_next_deadline_ms(task), NOW + 300000);
    ck_assert(!task_due(task, NOW + 299999, &change));
    ck_assert(task_due(task, NOW + 300000, &change));
    ck_assert(task_transition(task, &change, NOW + 300000, NULL));
    ck_assert_int_eq(task->state, TASK_EXPIRED);
    ck_assert_str_eq(task->status_message, "Not completed within its time to live of 300 s");
    ck_assert_int_eq(task_next_deadline_ms(task), INT64_MAX);
    task_unref(task);
}
END_TEST

START_TEST(a_promoted_task_is_kept_for_times_of_its_own)
{
    struct task *task = new_promoted();
    ck_assert_int_eq(task_purge_ms(task), INT64_MAX);
    ck_assert(task_transition(task, &(struct task_change){.to = TASK_CANCELLED}, NOW + 7, NULL));
    ck_assert_int_eq(task_purge_ms(task), NOW + 7 + 200000);
    task_unref(task);
    task = new_promoted();
    ck_assert(task_transition(task, &(struct task_change){.to = TASK_EXPIRED}, NOW + 7, NULL));
    ck_assert_int_eq(task_purge_ms(task), NOW + 7 + 60000);
    task_unref(task);
}
END_TEST

START_TEST(only_what_has_begun_can_be_promoted)
{
    static const enum task_state states[] = {TASK_PENDING, TASK_APPROVED, TASK_REJECTED};
    for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
        struct error error = {""};
        struct task *task = new_promoted();
        task->state = states[i];
        task->decide_by_ms = task->execute_by_ms = task->decided_ms = NOW;
        task->ended_ms = states[i] == TASK_REJECTED ? NOW : 0;
        task->decided_ms = states[i] == TASK_PENDING ? 0 : NOW;
        ck_assert(!task_check(task, &error));
        ck_assert_ptr_nonnull(strstr(error.message, "a promoted task has begun"));
        task_unref(task);
    }
}
END_TEST

START_TEST(kinds_have_names)
{
    struct task *task = new_promoted();
    ck_assert_str_eq(task_kind_name(task), "promoted");
    task->promoted = false;
    ck_assert_str_eq(task_kind_name(task), "approval");
    task->accelerated = true;
    ck_assert_str_eq(task_kind_name(task), "accelerated");
    task_unref(task);
}
END_TEST

TCase *promoted_case(void)
{
    TCase *tests = tcase_create("promoted");
    tcase_add_test(tests, an_accelerated_task_expires_by_its_own_clock);
    tcase_add_loop_test(tests, a_promoted_task_ends_or_expires_and_is_never_given_back, 0,
                        TASK_STATE_COUNT);
    tcase_add_test(tests, a_promoted_task_expires_when_its_ttl_is_over);
    tcase_add_test(tests, a_promoted_task_is_kept_for_times_of_its_own);
    tcase_add_test(tests, only_what_has_begun_can_be_promoted);
    tcase_add_test(tests, kinds_have_names);
    return tests;
}
