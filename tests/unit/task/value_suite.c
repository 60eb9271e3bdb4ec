/* The task as a value: what it holds, ids, copies, references. */
#include <check.h>
#include <pthread.h>
#include <string.h>

#include "support.h"

START_TEST(incomplete_changes_are_refused_and_leave_the_task)
{
    static const struct task_change cases[] = {
        {.to = TASK_FAILED},
        {.to = TASK_COMPLETED},
        {.to = TASK_COMPLETED, .outcome = TASK_OUTCOME_ERROR},
        {.to = TASK_CANCELLED, .failure = TASK_FAILURE_GATEWAY},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct task *task = task_in(TASK_EXECUTING);
        struct error error = {""};
        ck_assert(!task_transition(task, &cases[i], NOW + 100, &error));
        ck_assert_str_ne(error.message, "");
        ck_assert_int_eq(task->state, TASK_EXECUTING);
        ck_assert_int_eq(task->ended_ms, 0);
        task_unref(task);
    }
}
END_TEST

START_TEST(outcomes_are_kept_byte_for_byte)
{
    struct task *task = task_in(TASK_EXECUTING);
    struct task_change change = {.to = TASK_FAILED,
                                 .failure = TASK_FAILURE_UPSTREAM,
                                 .outcome = TASK_OUTCOME_ERROR,
                                 .outcome_text = STR("{\"a\":\0 1}"),
                                 .upstream_task = "up-1"};
    ck_assert(task_transition(task, &change, NOW + 1, NULL));
    struct task *copy = task_copy(task);
    task_unref(task);
    ck_assert_uint_eq(copy->outcome_length, 9);
    ck_assert_int_eq(memcmp(copy->outcome_text, "{\"a\":\0 1}", 10), 0);
    ck_assert_int_eq(copy->failure, TASK_FAILURE_UPSTREAM);
    ck_assert_str_eq(copy->upstream_task, "up-1");
    task_unref(copy);
}
END_TEST

START_TEST(unsound_tasks_are_named)
{
    static const enum task_state states[] = {TASK_PENDING, TASK_APPROVED, TASK_COMPLETED,
                                             TASK_FAILED, TASK_REJECTED};
    struct error error = {""};
    for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
        struct task *task = task_create(states[i]);
        ck_assert(!task_check(task, NULL)); /* nothing is set */
        task->created_ms = task->updated_ms = task->ttl_ms = 1;
        ck_assert(!task_check(task, &error)); /* a value that its state needs is missing */
        ck_assert_ptr_nonnull(strstr(error.message, task_state_name(states[i])));
        task_unref(task);
    }
}
END_TEST

START_TEST(ids_are_ours_and_differ)
{
    struct task *a = task_create(TASK_PENDING), *b = task_create(TASK_PENDING);
    ck_assert_uint_eq(strlen(a->id), TASK_ID_BYTES - 1);
    ck_assert(task_id_is_ours(str_from(a->id)));
    ck_assert_str_ne(a->id, b->id);
    ck_assert(!task_id_is_ours(STR("tg-1")));
    ck_assert(!task_id_is_ours(STR("TG_1")));
    ck_assert(!task_id_is_ours(STR("tg")));
    struct task *promoted = task_create_promoted();
    ck_assert(task_id_is_ulid(str_from(promoted->id)));
    ck_assert(!task_id_is_ours(str_from(promoted->id)));
    ck_assert(!task_id_is_ulid(str_from(a->id)));
    ck_assert(task_id_is_ulid(STR("01ARZ3NDEKTSV4RRFFQ69G5FAV")));
    ck_assert(!task_id_is_ulid(STR("01ARZ3NDEKTSV4RRFFQ69G5FA")));
    ck_assert(!task_id_is_ulid(STR("01ARZ3NDEKTSV4RRFFQ69G5FAVX")));
    ck_assert(!task_id_is_ulid(STR("01ARZ3NDEKTSV4RRFFQ69G5FAU")));
    ck_assert(!task_id_is_ulid(STR("01ARZ3NDEKTSV4RRFFQ69G5FA\0")));
    task_unref(promoted);
    task_unref(a);
    task_unref(b);
}
END_TEST

START_TEST(copies_are_deep)
{
    struct task *task = new_task(TASK_PENDING);
    task_set_text(&task->tool, STR("delete_database"));
    task_set_request(task, STR("{\"id\":\0"
                               "1}"));
    struct task *copy = task_copy(task);
    task_set_text(&task->tool, STR("other"));
    task->request[2] = 'X';
    ck_assert_str_eq(copy->tool, "delete_database");
    ck_assert_uint_eq(copy->request_length, 9);
    ck_assert_int_eq(memcmp(copy->request,
                            "{\"id\":\0"
                            "1}",
                            9),
                     0);
    ck_assert_ptr_null(copy->outcome_text);
    task_unref(task);
    task_unref(copy);
    task_unref(NULL);
}
END_TEST

static void *share(void *context)
{
    for (unsigned i = 0; i < 20000; i++) {
        struct task *task = task_ref(context);
        ck_assert_int_eq(task->state, TASK_PENDING);
        task_unref(task);
    }
    task_unref(context);
    return NULL;
}

START_TEST(references_are_counted_across_threads)
{
    struct task *task = new_task(TASK_PENDING);
    pthread_t threads[4];
    for (unsigned i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, share, task_ref(task)), 0);
    task_unref(task);
    for (unsigned i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
}
END_TEST

TCase *value_case(void)
{
    TCase *tests = tcase_create("value");
    tcase_add_test(tests, incomplete_changes_are_refused_and_leave_the_task);
    tcase_add_test(tests, outcomes_are_kept_byte_for_byte);
    tcase_add_test(tests, unsound_tasks_are_named);
    tcase_add_test(tests, ids_are_ours_and_differ);
    tcase_add_test(tests, copies_are_deep);
    tcase_add_test(tests, references_are_counted_across_threads);
    return tests;
}
