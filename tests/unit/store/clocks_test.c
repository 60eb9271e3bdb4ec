/* Deadlines, purging, and the start of the store with existing tasks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "taskgate/core/buffer.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"

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

static const struct task_change approve = {.to = TASK_APPROVED, .by = "alice"};
static const struct task_change execute = {.to = TASK_EXECUTING};
static const struct task_change cancel = {.to = TASK_CANCELLED};

/* ---- clocks ---- */

/* The one end that was heard of the task, after its creation. */
static const struct task *heard_end(const struct heard *heard, const char *id)
{
    const struct task *end = NULL;
    unsigned created = 0;
    for (size_t i = 0; i < heard->count; i++) {
        if (strcmp(heard->tasks[i]->id, id) != 0)
            continue;
        created += heard->created[i];
        ck_assert_uint_eq(created, 1);
        if (heard->created[i])
            continue;
        ck_assert_ptr_null(end);
        end = heard->tasks[i];
    }
    ck_assert_ptr_nonnull(end);
    ck_assert_int_eq(end->state, TASK_EXPIRED);
    return end;
}

/* The first may be over before the second is made, or the second before the first. */
START_TEST(deadlines_are_swept_when_they_come)
{
    struct heard heard = {0};
    store_observe(bench.store, bench.loop, hear, &heard);
    struct task *waiting = new_task("anonymous"), *running = new_accelerated("anonymous");
    waiting->decide_by_ms = clock_now_ms() + 60;
    running->execute_by_ms = clock_now_ms() + 30;
    int64_t decide_by_ms = waiting->decide_by_ms;
    waiting = create_task(&bench, waiting);
    running = create_task(&bench, running);
    bench_wait_count(bench.loop, &heard.count, 4);
    const struct task *undecided = heard_end(&heard, waiting->id);
    const struct task *not_run = heard_end(&heard, running->id);
    ck_assert_ptr_nonnull(strstr(undecided->status_message, "timed out"));
    ck_assert_int_ge(undecided->ended_ms, decide_by_ms);
    ck_assert(not_run->accelerated);
    ck_assert_ptr_nonnull(strstr(not_run->status_message, "not run within"));
    ck_assert_int_eq(store_pending_count(bench.store), 0);
    task_unref(waiting);
    task_unref(running);
    heard_finish(&heard);
}
END_TEST

START_TEST(deadlines_hold_on_decisions_and_are_kept)
{
    /* The sweep is asleep as far as this task is concerned: it is put back in time behind its
     * back, while the store is closed. */
    struct task *task = create_task(&bench, new_task("anonymous"));
    bench_close(&bench);
    ck_assert_int_eq(scratch_execute(&scratch, "UPDATE task SET decide_by_ms = created_ms + 1,"
                                               " deadline_ms = 9000000000000"),
                     SQLITE_OK);
    bench_open(&bench, &scratch);
    struct answer answer = {0};
    store_task_change(bench.store, str_from(task->id), &approve, &alice,
                      bench_call(bench.loop, &answer));
    bench_wait(bench.loop, &answer);
    ck_assert_int_eq(answer.status, STORE_CONFLICT);
    ck_assert_int_eq(answer.task->state, TASK_EXPIRED);
    answer_finish(&answer);
    ck_assert_int_eq(scratch_query(&scratch, "SELECT state FROM task"), TASK_EXPIRED);
    audit_of(&bench, task->id, &answer);
    ck_assert_str_eq(answer.audit_text,
                     "create >pending client anonymous \n"
                     "expire pending>expired gateway taskgate Approval timed out after 1 ms\n");
    answer_finish(&answer);
    task_unref(task);
}
END_TEST

START_TEST(deadlines_hold_on_reads_and_lists)
{
    struct task *task = create_task(&bench, new_task("anonymous"));
    bench_close(&bench);
    scratch_execute(&scratch, "UPDATE task SET decide_by_ms = 1, deadline_ms = 9000000000000");
    bench_open(&bench, &scratch);
    struct task *read = get_task(&bench, task->id);
    ck_assert_int_eq(read->state, TASK_EXPIRED);
    task_unref(read);
    task_unref(task);

    /* Passed while the store was closed. */
    task = new_task("anonymous");
    task->decide_by_ms = clock_now_ms() + 5000;
    task_unref(create_task(&bench, task));
    bench_close(&bench);
    scratch_execute(&scratch, "UPDATE task SET decide_by_ms = 1, deadline_ms = 1 WHERE state = 0");
    bench_open(&bench, &scratch);
    ck_assert_uint_eq(count_listed(&bench, (struct store_task_query){.states = 1u << TASK_PENDING}),
                      0);
    ck_assert_uint_eq(count_listed(&bench, (struct store_task_query){.states = 1u << TASK_EXPIRED}),
                      2);
}
END_TEST

START_TEST(a_task_past_its_retention_goes_and_its_audit_stays)
{
    struct task *old = create_task(&bench, new_task("anonymous"));
    struct task *young = create_task(&bench, new_task("anonymous"));
    task_unref(move_task(&bench, old->id, &cancel));
    task_unref(move_task(&bench, young->id, &cancel));
    char sql[128];
    snprintf(sql, sizeof sql, "UPDATE task SET purge_ms = 1 WHERE id = '%s'", old->id);
    bench_close(&bench);
    ck_assert_int_eq(scratch_execute(&scratch, sql), SQLITE_OK);
    bench_open(&bench, &scratch);
    /* The first sweep is the store's first act. */
    struct answer answer = {0};
    store_task_get(bench.store, str_from(old->id), bench_call(bench.loop, &answer));
    bench_wait(bench.loop, &answer);
    ck_assert_int_eq(answer.status, STORE_NOT_FOUND);
    answer_finish(&answer);
    task_unref(get_task(&bench, young->id));
    ck_assert_int_eq(scratch_query(&scratch, "SELECT count(*) FROM task_request"), 1);
    audit_of(&bench, old->id, &answer);
    ck_assert_str_eq(answer.audit_text, "create >pending client anonymous \n"
                                        "cancel pending>cancelled operator alice \n");
    answer_finish(&answer);
    task_unref(old);
    task_unref(young);
}
END_TEST

/* ---- what the first sweep measures ---- */

/* -1: it has none. */
static double gauge(const char *name)
{
    struct buffer out = {0};
    size_t length;
    metrics_write(&out, false);
    char *text = buffer_take(&out, &length);
    const char *line = strstr(text, name);
    double value = line ? strtod(line + strlen(name), NULL) : -1;
    free(text);
    return value;
}

static void set_times(const struct task *task, int64_t created_ms, int64_t decide_by_ms)
{
    char sql[160];
    snprintf(sql, sizeof sql,
             "UPDATE task SET created_ms = %lld, decide_by_ms = %lld WHERE id = '%s'",
             (long long)created_ms, (long long)decide_by_ms, task->id);
    ck_assert_int_eq(scratch_execute(&scratch, sql), SQLITE_OK);
}

#define TIME_USED "\nthoughtgate_tasks_time_used_ratio{workflow=\"\"} "
#define OLDEST "\nthoughtgate_tasks_oldest_pending_seconds{workflow=\"\"} "

/* The younger task has less time left than the older one. */
START_TEST(the_largest_share_of_time_used_need_not_be_that_of_the_oldest_task)
{
    struct task *old = create_task(&bench, new_task("anonymous"));
    struct task *young = create_task(&bench, new_task("anonymous"));
    bench_close(&bench);
    int64_t now_ms = clock_now_ms();
    set_times(old, now_ms - 3600000, now_ms + 32400000);
    set_times(young, now_ms - 1800000, now_ms + 600000);
    bench_open(&bench, &scratch);
    task_unref(get_task(&bench, old->id));
    double used = gauge(TIME_USED), waited_s = gauge(OLDEST);
    ck_assert_msg(used >= 0.749 && used < 0.8, "%f", used);
    ck_assert_msg(waited_s >= 3599 && waited_s < 3720, "%f", waited_s);

    task_unref(move_task(&bench, young->id, &cancel));
    reopen();
    task_unref(get_task(&bench, old->id));
    used = gauge(TIME_USED);
    ck_assert_msg(used >= 0.0999 && used < 0.104, "%f", used);

    task_unref(move_task(&bench, old->id, &cancel));
    reopen();
    task_unref(get_task(&bench, old->id));
    ck_assert_double_eq(gauge(TIME_USED), -1);
    task_unref(old);
    task_unref(young);
    metrics_finish();
}
END_TEST

/* ---- after a crash ---- */

START_TEST(executions_of_a_dead_process_end_unknown)
{
    struct task *running = create_task(&bench, new_task("anonymous"));
    struct task *waiting = create_task(&bench, new_task("anonymous"));
    struct task *approved = create_task(&bench, new_task("anonymous"));
    task_unref(move_task(&bench, running->id, &approve));
    task_unref(move_task(&bench, running->id, &execute));
    task_unref(move_task(&bench, approved->id, &approve));
    reopen();
    struct task *read = get_task(&bench, running->id);
    ck_assert_int_eq(read->state, TASK_FAILED);
    ck_assert_int_eq(read->failure, TASK_FAILURE_OUTCOME_UNKNOWN);
    ck_assert_ptr_nonnull(strstr(read->status_message, "outcome unknown"));
    ck_assert_int_gt(read->ended_ms, 0);
    task_unref(read);
    struct answer answer = {0};
    audit_of(&bench, running->id, &answer);
    ck_assert_ptr_nonnull(
        strstr(answer.audit_text, "fail executing>failed gateway taskgate The gateway stopped"));
    answer_finish(&answer);
    read = get_task(&bench, waiting->id);
    ck_assert_int_eq(read->state, TASK_PENDING);
    task_unref(read);
    read = get_task(&bench, approved->id);
    ck_assert_int_eq(read->state, TASK_APPROVED);
    task_unref(read);
    ck_assert_int_eq(change_status(&bench, waiting->id, &approve), STORE_OK);
    task_unref(running);
    task_unref(waiting);
    task_unref(approved);
}
END_TEST

START_TEST(a_damaged_row_is_left_alone_and_blocks_nobody)
{
    struct task *damaged = create_task(&bench, new_task("anonymous"));
    struct task *whole = create_task(&bench, new_task("anonymous"));
    char sql[160];
    bench_close(&bench);
    snprintf(sql, sizeof sql, "UPDATE task SET ttl_ms = 0, deadline_ms = 1 WHERE id = '%s'",
             damaged->id);
    ck_assert_int_eq(scratch_execute(&scratch, sql), SQLITE_OK);
    snprintf(sql, sizeof sql, "UPDATE task SET decide_by_ms = 2, deadline_ms = 2 WHERE id = '%s'",
             whole->id);
    ck_assert_int_eq(scratch_execute(&scratch, sql), SQLITE_OK);
    bench_open(&bench, &scratch);
    ck_assert_int_eq(change_status(&bench, damaged->id, &approve), STORE_NOT_FOUND);
    struct task *read = get_task(&bench, whole->id);
    ck_assert_int_eq(read->state, TASK_EXPIRED);
    ck_assert(store_is_healthy(bench.store));
    task_unref(read);
    task_unref(damaged);
    task_unref(whole);
}
END_TEST

/* ---- a backlog ---- */

#define MANY 1500

static void count_one(void *context, const struct store_reply *reply)
{
    ck_assert_int_eq(reply->status, STORE_OK);
    ++*(size_t *)context;
}

struct notices {
    size_t created, ended;
};

static void count_notice(void *context, struct task *task, bool created)
{
    struct notices *notices = context;
    notices->created += created;
    notices->ended += task->state == TASK_EXPIRED;
}

/* Answers and notices come in the order in which they took effect. */
START_TEST(calls_come_between_the_batches_of_a_backlog)
{
    size_t created = 0;
    struct notices notices = {0};
    for (int i = 0; i < MANY; i++)
        store_task_create(bench.store, new_task("auth:ab"), &no_limits,
                          (struct store_call){bench.loop, count_one, &created});
    bench_wait_count(bench.loop, &created, MANY);
    bench_close(&bench);
    scratch_execute(&scratch, "UPDATE task SET decide_by_ms = 1, deadline_ms = 1");
    bench_open(&bench, &scratch);
    store_observe(bench.store, bench.loop, count_notice, &notices);
    bench_wait_count(bench.loop, &notices.ended, 1);
    task_unref(create_task(&bench, new_task("auth:cd")));
    ck_assert_uint_lt(notices.ended, MANY / 2);
    while (scratch_query(&scratch, "SELECT count(*) FROM task WHERE deadline_ms = 1") > 0)
        loop_run_once(bench.loop, 100);
    task_unref(create_task(&bench, new_task("auth:cd")));
    bench_wait_count(bench.loop, &notices.created, 2); /* behind it no notice is under way */
    ck_assert_int_eq(scratch_query(&scratch, "SELECT count(*) FROM task WHERE state = 0"), 2);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store clocks");
    TCase *tests = tcase_create("store clocks");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, deadlines_are_swept_when_they_come);
    tcase_add_test(tests, deadlines_hold_on_decisions_and_are_kept);
    tcase_add_test(tests, deadlines_hold_on_reads_and_lists);
    tcase_add_test(tests, a_task_past_its_retention_goes_and_its_audit_stays);
    tcase_add_test(tests, the_largest_share_of_time_used_need_not_be_that_of_the_oldest_task);
    tcase_add_test(tests, executions_of_a_dead_process_end_unknown);
    tcase_add_test(tests, a_damaged_row_is_left_alone_and_blocks_nobody);
    tcase_add_test(tests, calls_come_between_the_batches_of_a_backlog);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
