/* Reminders and escalations: each once, in one transaction with its notice, and over restarts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "taskgate/config/config.h"

static struct scratch scratch;
static struct bench bench;
static size_t told; /* commits with notices */

static const struct store_outbox_target desk = {"aa", NOTIFY_CREATED | NOTIFY_REMINDED, false};
static const struct task_change reject = {.to = TASK_REJECTED, .by = "bob", .reason = "no"};

static void note_telling(void *context)
{
    (void)context;
    told++;
}

static void open_store(void)
{
    bench_open(&bench, &scratch);
    told = 0;
    store_outbox_observe(bench.store, bench.loop, note_telling, NULL);
}

static void note_configured(void *context, const struct store_reply *reply)
{
    bool *is_configured = context;
    *is_configured = reply->status == STORE_OK;
}

static void set_up(void)
{
    bool is_configured = false;
    scratch_init(&scratch);
    open_store();
    store_outbox_configure(bench.store, &desk, 1,
                           (struct store_call){bench.loop, note_configured, &is_configured});
    while (!is_configured)
        loop_run_once(bench.loop, 100);
}

static void tear_down(void)
{
    bench_close(&bench);
    scratch_finish(&scratch);
}

static int64_t count_of(const char *table)
{
    char sql[80];
    snprintf(sql, sizeof sql, "SELECT count(*) FROM %s", table);
    return scratch_query(&scratch, sql);
}

#define NOTICES "outbox_delivery WHERE event = 16"

static struct task *make(int64_t remind_after_ms, int64_t escalate_after_ms)
{
    struct task *task = new_task("a");
    task->remind_after_ms = remind_after_ms;
    task->escalate_after_ms = escalate_after_ms;
    return create_task(&bench, task);
}

static void wait_for_notices(size_t count)
{
    while (told < count)
        loop_run_once(bench.loop, 100);
}

/* The first sweep of a store may be over before anything observes it. */
static void wait_for_reminder(void)
{
    while (count_of(NOTICES) == 0)
        loop_run_once(bench.loop, 10);
}

START_TEST(a_reminder_comes_once_and_by_itself)
{
    struct task *task = make(30, 60000);
    wait_for_notices(2);
    ck_assert_int_eq(count_of(NOTICES), 1);
    ck_assert_int_eq(count_of("reminder"), 1);
    ck_assert_int_eq(count_of("audit WHERE event = 'remind'"), 1);
    struct answer answer = {0};
    audit_of(&bench, task->id, &answer);
    ck_assert_ptr_nonnull(strstr(answer.audit_text, "remind pending>pending gateway"));
    answer_finish(&answer);
    task_unref(task);
}
END_TEST

START_TEST(a_reminder_due_meanwhile_comes_after_the_restart_once)
{
    struct task *task = make(60000, 0);
    scratch_execute(&scratch, "UPDATE reminder SET due_ms = 1");
    bench_close(&bench);
    open_store();
    wait_for_reminder();
    ck_assert_int_eq(count_of(NOTICES), 1);
    bench_close(&bench);
    open_store();
    task_unref(get_task(&bench, task->id)); /* after the first sweep */
    ck_assert_int_eq(count_of(NOTICES), 1);
    ck_assert_int_eq(count_of("reminder"), 0);
    task_unref(task);
}
END_TEST

START_TEST(a_decided_task_has_no_reminder)
{
    struct task *decided = make(60000, 0), *waiting = make(60000, 0);
    task_unref(move_task(&bench, decided->id, &reject));
    scratch_execute(&scratch, "UPDATE reminder SET due_ms = 1");
    bench_close(&bench);
    open_store();
    wait_for_reminder();
    ck_assert_int_eq(count_of(NOTICES), 1);
    ck_assert_int_eq(count_of("reminder"), 0);
    task_unref(decided);
    task_unref(waiting);
}
END_TEST

START_TEST(a_reminder_that_cannot_be_noted_stays)
{
    struct task *task = make(60000, 0);
    scratch_execute(&scratch, "UPDATE reminder SET due_ms = 1");
    scratch_refuse_deliveries(&scratch);
    bench_close(&bench);
    open_store();
    task_unref(get_task(&bench, task->id)); /* after the first sweep */
    ck_assert_int_eq(count_of("reminder"), 1);
    ck_assert_int_eq(count_of("audit WHERE event = 'remind'"), 0);
    scratch_accept_deliveries(&scratch);
    bench_close(&bench);
    open_store();
    wait_for_reminder();
    ck_assert_int_eq(count_of(NOTICES), 1);
    ck_assert_int_eq(count_of("audit WHERE event = 'remind'"), 1);
    task_unref(task);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store reminders");
    TCase *tests = tcase_create("reminders");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, a_reminder_comes_once_and_by_itself);
    tcase_add_test(tests, a_reminder_due_meanwhile_comes_after_the_restart_once);
    tcase_add_test(tests, a_decided_task_has_no_reminder);
    tcase_add_test(tests, a_reminder_that_cannot_be_noted_stays);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
