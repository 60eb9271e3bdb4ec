/* Calls that became tasks while they ran: kept as any task, but by clocks of their own. */
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "taskgate/core/clock.h"

static struct scratch scratch;
static struct bench bench;

static void set_up(void)
{
    scratch_init(&scratch);
    bench_open(&bench, &scratch);
}

static void tear_down(void)
{
    bench_close(&bench);
    scratch_finish(&scratch);
}

static void reopen(void)
{
    bench_close(&bench);
    bench_open(&bench, &scratch);
}

static struct task *new_promoted(const char *owner)
{
    struct task *task = task_create_promoted();
    task_set_text(&task->source, STR("files"));
    task_set_text(&task->owner, str_from(owner));
    task_set_text(&task->tool, STR("slow"));
    task_set_text(&task->arguments, STR("{\"n\":1}"));
    task->created_ms = task->updated_ms = clock_now_ms();
    task->ttl_ms = 300000;
    task->retention_ms = 200000;
    task->expired_retention_ms = 60000;
    return task;
}

static const struct task_change complete = {
    .to = TASK_COMPLETED, .outcome = TASK_OUTCOME_RESULT, .outcome_text = STR("{\"content\":[]}")};

START_TEST(they_come_back_as_they_were)
{
    struct task *task = create_task(&bench, new_promoted("session:5e55"));
    task_unref(move_task(&bench, task->id, &complete));
    reopen();
    struct task *read = get_task(&bench, task->id);
    ck_assert(read->promoted);
    ck_assert_int_eq(read->state, TASK_COMPLETED);
    ck_assert_int_eq(read->retention_ms, 200000);
    ck_assert_int_eq(read->expired_retention_ms, 60000);
    ck_assert_str_eq(read->arguments, "{\"n\":1}");
    ck_assert_uint_eq(read->request_length, 0);
    ck_assert_str_eq(read->outcome_text, "{\"content\":[]}");
    struct answer answer = {0};
    audit_of(&bench, task->id, &answer);
    ck_assert_str_eq(answer.audit_text, "create >executing client session:5e55 \n"
                                        "complete executing>completed operator alice \n");
    answer_finish(&answer);
    task_unref(read);
    task_unref(task);
}
END_TEST

START_TEST(they_expire_while_they_run_and_go_soon_after)
{
    struct heard heard = {0};
    store_observe(bench.store, bench.loop, hear, &heard);
    struct task *task = new_promoted("session:5e55");
    task->ttl_ms = 50;
    task->expired_retention_ms = 30000;
    task = create_task(&bench, task);
    bench_wait_count(bench.loop, &heard.count, 2);
    ck_assert_int_eq(heard.tasks[1]->state, TASK_EXPIRED);
    ck_assert_int_ge(heard.tasks[1]->ended_ms, task->created_ms + 50);
    ck_assert_int_eq(task_purge_ms(heard.tasks[1]), heard.tasks[1]->ended_ms + 30000);
    ck_assert_int_eq(scratch_query(&scratch, "SELECT purge_ms - ended_ms FROM task"), 30000);
    /* A later answer of upstream comes too late. */
    ck_assert_int_eq(change_status(&bench, task->id, &complete), STORE_CONFLICT);
    bench_close(&bench);
    ck_assert_int_eq(scratch_execute(&scratch, "UPDATE task SET purge_ms = 1"), SQLITE_OK);
    bench_open(&bench, &scratch);
    struct answer answer = {0};
    store_task_get(bench.store, str_from(task->id), bench_call(bench.loop, &answer));
    bench_wait(bench.loop, &answer);
    ck_assert_int_eq(answer.status, STORE_NOT_FOUND);
    answer_finish(&answer);
    task_unref(task);
    heard_finish(&heard);
}
END_TEST

START_TEST(they_fail_when_the_process_has_ended)
{
    struct task *task = create_task(&bench, new_promoted("session:5e55"));
    reopen();
    struct task *read = get_task(&bench, task->id);
    ck_assert_int_eq(read->state, TASK_FAILED);
    ck_assert_int_eq(read->failure, TASK_FAILURE_OUTCOME_UNKNOWN);
    ck_assert_str_eq(read->status_message, "upstream connection lost");
    task_unref(read);
    task_unref(task);
}
END_TEST

START_TEST(they_wait_for_nobody_and_count_while_they_run)
{
    const struct store_limits limits = {2, 3, INT64_MAX, INT64_MAX};
    struct task *task = create_task(&bench, new_promoted("a"));
    ck_assert_int_eq(create_status(&bench, new_task("a"), &limits), STORE_OK);
    ck_assert_int_eq(store_pending_count(bench.store), 1);
    ck_assert_int_eq(create_status(&bench, new_promoted("a"), &limits), STORE_LIMIT_PRINCIPAL);
    ck_assert_int_eq(create_status(&bench, new_task("a"), &limits), STORE_LIMIT_PRINCIPAL);
    ck_assert_int_eq(create_status(&bench, new_promoted("b"), &limits), STORE_OK);
    ck_assert_int_eq(create_status(&bench, new_promoted("c"), &limits), STORE_LIMIT_TOTAL);
    const struct task_change cancel = {.to = TASK_CANCELLED};
    task_unref(move_task(&bench, task->id, &cancel));
    ck_assert_int_eq(create_status(&bench, new_promoted("a"), &limits), STORE_OK);
    task_unref(task);
}
END_TEST

START_TEST(nobody_can_approve_or_give_them_back)
{
    struct task *task = create_task(&bench, new_promoted("a"));
    const struct task_change approve = {.to = TASK_APPROVED, .by = "alice"},
                             give_back = {.to = TASK_APPROVED}, reject = {.to = TASK_REJECTED};
    ck_assert_int_eq(change_status(&bench, task->id, &approve), STORE_CONFLICT);
    ck_assert_int_eq(change_status(&bench, task->id, &give_back), STORE_CONFLICT);
    ck_assert_int_eq(change_status(&bench, task->id, &reject), STORE_CONFLICT);
    ck_assert_int_eq(change_status(&bench, task->id, &(struct task_change){.to = TASK_CANCELLED}),
                     STORE_OK);
    task_unref(task);
}
END_TEST

START_TEST(lists_can_leave_them_out)
{
    task_unref(create_task(&bench, new_promoted("a")));
    task_unref(create_task(&bench, new_task("a")));
    ck_assert_uint_eq(count_listed(&bench, (struct store_task_query){.owner = STR("a")}), 2);
    ck_assert_uint_eq(count_listed(&bench, (struct store_task_query){.owner = STR("a"),
                                                                     .without_promoted = true}),
                      1);
    ck_assert_uint_eq(count_listed(&bench, (struct store_task_query){.without_promoted = true}), 1);
}
END_TEST

static void write_reach(struct store *store, const struct task *task,
                        void (*write)(struct store *store, struct str id, struct store_call call),
                        enum store_status expected)
{
    struct answer answer = {0};
    write(store, str_from(task->id), bench_call(bench.loop, &answer));
    bench_wait(bench.loop, &answer);
    ck_assert_int_eq(answer.status, expected);
    answer_finish(&answer);
}

START_TEST(the_end_of_their_session_cancels_them)
{
    struct task *own = create_task(&bench, new_promoted("session:5e55"));
    struct task *promised = create_task(&bench, new_promoted("session:5e55"));
    write_reach(bench.store, promised, store_task_promise, STORE_OK);
    struct task *of_token = new_promoted("auth:70ce");
    task_set_text(&of_token->session, STR("5e55"));
    of_token = create_task(&bench, of_token);
    struct answer answer = {0};
    store_task_cancel_session(bench.store, STR("files"), STR("5e55"), STR("anonymous"),
                              bench_call(bench.loop, &answer));
    bench_wait(bench.loop, &answer);
    answer_finish(&answer);
    struct task *read = get_task(&bench, own->id);
    ck_assert_int_eq(read->state, TASK_CANCELLED);
    task_unref(read);
    read = get_task(&bench, of_token->id);
    ck_assert_int_eq(read->state, TASK_EXECUTING);
    ck_assert_str_eq(read->owner, "auth:70ce");
    task_unref(read);
    read = get_task(&bench, promised->id);
    ck_assert_int_eq(read->state, TASK_EXECUTING);
    ck_assert_str_eq(read->owner, "anonymous");
    const struct task_change cancel = {.to = TASK_CANCELLED, .unless_promised = true};
    ck_assert_int_eq(change_status(&bench, promised->id, &cancel), STORE_CONFLICT);
    task_unref(read);
    task_unref(promised);
    task_unref(own);
    task_unref(of_token);
}
END_TEST

static void check_reach(const struct task *task, const char *owner, enum task_state state,
                        bool on_result)
{
    struct task *read = get_task(&bench, task->id);
    ck_assert_str_eq(read->owner, owner);
    ck_assert_int_eq(read->state, state);
    ck_assert_int_eq(read->on_result, on_result);
    task_unref(read);
}

static const struct task_change approve = {.to = TASK_APPROVED, .by = "alice"};
static const struct task_change execute = {.to = TASK_EXECUTING};

/* Promised: one that waits, one that runs and one that has ended, with the owner's count. */
START_TEST(the_end_of_a_session_hands_over_what_is_promised)
{
    const struct store_limits one = {1, 10, INT64_MAX, INT64_MAX};
    struct task *tasks[4];
    for (size_t i = 0; i < 4; i++) {
        tasks[i] = create_task(&bench, new_task("session:5e55"));
        write_reach(bench.store, tasks[i], store_task_promise, STORE_OK);
    }
    task_unref(move_task(&bench, tasks[1]->id, &approve));
    task_unref(move_task(&bench, tasks[1]->id, &execute));
    task_unref(move_task(&bench, tasks[2]->id, &(struct task_change){.to = TASK_REJECTED}));
    task_unref(move_task(&bench, tasks[3]->id, &approve));
    struct answer answer = {0};
    store_task_cancel_session(bench.store, STR("files"), STR("5e55"), STR("anonymous"),
                              bench_call(bench.loop, &answer));
    bench_wait(bench.loop, &answer);
    ck_assert_int_eq(answer.status, STORE_OK);
    ck_assert(answer.has_promised);
    answer_finish(&answer);
    check_reach(tasks[0], "anonymous", TASK_PENDING, true);
    check_reach(tasks[1], "anonymous", TASK_EXECUTING, false);
    check_reach(tasks[2], "anonymous", TASK_REJECTED, false);
    check_reach(tasks[3], "anonymous", TASK_APPROVED, true);
    ck_assert_int_eq(create_status(&bench, new_task("session:5e55"), &one), STORE_OK);
    ck_assert_int_eq(create_status(&bench, new_task("anonymous"), &one), STORE_LIMIT_PRINCIPAL);
    for (size_t i = 0; i < 4; i++)
        task_unref(tasks[i]);
}
END_TEST

START_TEST(a_task_that_is_left_runs_for_its_owner_alone)
{
    struct task *task = create_task(&bench, new_task("auth:70ce"));
    write_reach(bench.store, task, store_task_leave, STORE_OK);
    check_reach(task, "auth:70ce", TASK_PENDING, true);
    task_unref(move_task(&bench, task->id, &approve));
    write_reach(bench.store, task, store_task_leave, STORE_CONFLICT);
    task_unref(task);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store promoted");
    TCase *tests = tcase_create("store promoted");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, they_come_back_as_they_were);
    tcase_add_test(tests, they_expire_while_they_run_and_go_soon_after);
    tcase_add_test(tests, they_fail_when_the_process_has_ended);
    tcase_add_test(tests, they_wait_for_nobody_and_count_while_they_run);
    tcase_add_test(tests, nobody_can_approve_or_give_them_back);
    tcase_add_test(tests, lists_can_leave_them_out);
    tcase_add_test(tests, the_end_of_their_session_cancels_them);
    tcase_add_test(tests, the_end_of_a_session_hands_over_what_is_promised);
    tcase_add_test(tests, a_task_that_is_left_runs_for_its_owner_alone);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
