/* The outbox: the notices of a change, their due times, and the rest after a restart. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "taskgate/config/config.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/memory.h"

static struct scratch scratch;
static struct bench bench;

static const struct store_outbox_target everything = {"aa", NOTIFY_ALL, false};
static const struct store_outbox_target ends = {"bb", NOTIFY_ENDED, true};
static const struct task_change approve = {.to = TASK_APPROVED, .by = "alice", .reason = "fine"};
static const struct task_change reject = {.to = TASK_REJECTED, .by = "bob", .reason = "no"};
static const struct task_change cancel = {.to = TASK_CANCELLED};
static const struct task_change execute = {.to = TASK_EXECUTING};
static const struct task_change give_back = {.to = TASK_APPROVED};
static const struct task_change complete = {
    .to = TASK_COMPLETED, .outcome = TASK_OUTCOME_RESULT, .outcome_text = {"{}", 2}};

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

/* The answer of an outbox call. */
struct seen {
    bool arrived;
    enum store_status status;
    struct store_delivery deliveries[16];
    size_t count;
    int64_t next_due_ms;
};

static char last_reference[64];

static void keep(void *context, const struct store_reply *reply)
{
    struct seen *seen = context;
    ck_assert_uint_le(reply->delivery_count, 16);
    seen->arrived = true;
    seen->status = reply->status;
    seen->count = reply->delivery_count;
    seen->next_due_ms = reply->next_due_ms;
    for (size_t i = 0; i < seen->count; i++) {
        seen->deliveries[i] = reply->deliveries[i];
        seen->deliveries[i].reference = NULL;
        task_ref(seen->deliveries[i].task);
    }
    if (seen->count > 0)
        snprintf(last_reference, sizeof last_reference, "%s",
                 reply->deliveries[0].reference ? reply->deliveries[0].reference : "");
}

static void wait_for(const struct seen *seen)
{
    while (!seen->arrived)
        loop_run_once(bench.loop, 100);
    ck_assert_int_eq(seen->status, STORE_OK);
}

static struct store_call call_of(struct seen *seen)
{
    return (struct store_call){bench.loop, keep, seen};
}

static void configure(const struct store_outbox_target *targets, size_t count)
{
    struct seen seen = {0};
    store_outbox_configure(bench.store, targets, count, call_of(&seen));
    wait_for(&seen);
}

static void wait_until(const char *sql)
{
    int64_t give_up_ms = clock_monotonic_ms() + 20000;
    while (!scratch_query(&scratch, sql)) {
        ck_assert_msg(clock_monotonic_ms() < give_up_ms, "never: %s", sql);
        loop_run_once(bench.loop, 10);
    }
}

static void look(const char *target, size_t limit, struct seen *seen)
{
    *seen = (struct seen){0};
    store_outbox_due(bench.store, str_from(target), limit, call_of(seen));
    wait_for(seen);
}

static void seen_finish(struct seen *seen)
{
    for (size_t i = 0; i < seen->count; i++)
        task_unref(seen->deliveries[i].task);
}

static void settle(void (*how)(struct store *, int64_t, struct store_call), int64_t sequence)
{
    struct seen seen = {0};
    how(bench.store, sequence, call_of(&seen));
    wait_for(&seen);
}

static void postpone(int64_t sequence, int64_t due_ms)
{
    struct seen seen = {0};
    store_outbox_postpone(bench.store, sequence, due_ms, call_of(&seen));
    wait_for(&seen);
}

/* Everything that is due for `target`, delivered one by one: "created:pending …". The caller
 * frees. */
static char *drain(const char *target)
{
    static const char *const names[] = {[NOTIFY_CREATED] = "created",
                                        [NOTIFY_DECIDED] = "decided",
                                        [NOTIFY_EXPIRED] = "expired",
                                        [NOTIFY_ENDED] = "ended"};
    char *text = memory_copy_text("");
    struct seen seen;
    for (look(target, 1, &seen); seen.count > 0; look(target, 1, &seen)) {
        const struct store_delivery *delivery = &seen.deliveries[0];
        char *longer = memory_format("%s%s%s:%s", text, *text ? " " : "", names[delivery->event],
                                     task_state_name(delivery->task->state));
        free(text);
        text = longer;
        settle(store_outbox_delivered, delivery->sequence);
        seen_finish(&seen);
    }
    return text;
}

static void expect_drained(const char *target, const char *expected)
{
    char *text = drain(target);
    ck_assert_str_eq(text, expected);
    free(text);
}

static void make(const struct task_change *const *changes)
{
    struct task *task = create_task(&bench, new_task("a"));
    for (; *changes; changes++)
        task_unref(move_task(&bench, task->id, *changes));
    task_unref(task);
}

/* ---- notices ---- */

static const struct life {
    const struct task_change *changes[6];
    const char *all, *ends;
} lives[] = {
    {{NULL}, "created:pending", ""},
    {{&approve}, "created:pending decided:approved", ""},
    {{&approve, &execute, &complete},
     "created:pending decided:approved ended:completed",
     "ended:completed"},
    /* One change gives one notice, with the first name that the target wants. */
    {{&reject}, "created:pending decided:rejected", "ended:rejected"},
    {{&cancel}, "created:pending ended:cancelled", "ended:cancelled"},
    {{&approve, &cancel}, "created:pending decided:approved ended:cancelled", "ended:cancelled"},
    /* Given back for other credentials: no second decision. */
    {{&approve, &execute, &give_back}, "created:pending decided:approved", ""},
};

START_TEST(each_target_hears_of_the_events_it_wants)
{
    const struct store_outbox_target targets[] = {everything, ends};
    configure(targets, 2);
    make(lives[_i].changes);
    expect_drained("aa", lives[_i].all);
    expect_drained("bb", lives[_i].ends);
    ck_assert_int_eq(scratch_query(&scratch, "SELECT count(*) FROM outbox_notice"), 0);
}
END_TEST

START_TEST(expiry_is_told)
{
    const struct store_outbox_target targets[] = {everything, ends};
    configure(targets, 2);
    struct task *task = new_task("a");
    task->decide_by_ms = task->created_ms + 1;
    task_unref(create_task(&bench, task));
    struct heard heard = {0};
    store_observe(bench.store, bench.loop, hear, &heard);
    task = new_accelerated("a");
    task->execute_by_ms = clock_now_ms() + 20;
    task_unref(create_task(&bench, task));
    while (heard.count == 0 || heard.tasks[heard.count - 1]->state != TASK_EXPIRED ||
           !heard.tasks[heard.count - 1]->accelerated)
        loop_run_once(bench.loop, 100);
    heard_finish(&heard);
    expect_drained("bb", "ended:expired ended:expired");
    char *text = drain("aa");
    ck_assert_ptr_nonnull(strstr(text, "created:approved"));
    ck_assert_ptr_nonnull(strstr(strstr(text, "expired:expired") + 1, "expired:expired"));
    ck_assert_ptr_null(strstr(text, "ended"));
    free(text);
}
END_TEST

/* Of the one delivery that is due, told anew with `reference`, or just delivered. */
static void expect_reference(const char *expected, const char *reference)
{
    struct seen seen, done = {0};
    look("aa", 1, &seen);
    ck_assert_uint_eq(seen.count, 1);
    ck_assert_str_eq(last_reference, expected);
    if (reference)
        store_outbox_posted(bench.store, seen.deliveries[0].sequence, reference, call_of(&done));
    else
        store_outbox_delivered(bench.store, seen.deliveries[0].sequence, call_of(&done));
    wait_for(&done);
    seen_finish(&seen);
}

START_TEST(a_reference_is_kept_for_the_task_until_it_has_ended)
{
    configure(&everything, 1);
    struct task *task = create_task(&bench, new_task("a"));
    expect_reference("", "C1 1.2");
    task_unref(move_task(&bench, task->id, &approve));
    reopen();
    configure(&everything, 1);
    expect_reference("C1 1.2", NULL);
    struct task *other = create_task(&bench, new_task("b"));
    expect_reference("", "C1 9.9"); /* another task's */
    task_unref(move_task(&bench, task->id, &(struct task_change){.to = TASK_CANCELLED}));
    expect_reference("C1 1.2", "C1 1.2");
    ck_assert_int_eq(scratch_query(&scratch, "SELECT count(*) FROM outbox_thread"), 1);
    configure(NULL, 0);
    wait_until("SELECT count(*) = 0 FROM outbox_thread");
    task_unref(other);
    task_unref(task);
}
END_TEST

START_TEST(a_delivery_shows_the_task_as_it_was)
{
    configure(&everything, 1);
    struct task *task = new_task("a");
    task_set_text(&task->workflow, STR("ops"));
    task_set_text(&task->principal, STR("agent (1a2b)"));
    memset(task->arguments_digest, 'd', 64);
    task = create_task(&bench, task);
    int64_t before_ms = clock_now_ms();
    task_unref(move_task(&bench, task->id, &approve));
    struct seen seen;
    look("aa", 16, &seen);
    ck_assert_uint_eq(seen.count, 1); /* the second waits for the first */
    ck_assert_int_eq(seen.deliveries[0].event, NOTIFY_CREATED);
    ck_assert_int_eq(seen.deliveries[0].task->decided_ms, 0);
    ck_assert_str_eq(seen.deliveries[0].task->decided_by, "");
    settle(store_outbox_delivered, seen.deliveries[0].sequence);
    seen_finish(&seen);
    look("aa", 16, &seen);
    const struct task *told = seen.deliveries[0].task;
    ck_assert_str_eq(told->id, task->id);
    ck_assert_int_eq(told->state, TASK_APPROVED);
    ck_assert_str_eq(told->source, "files");
    ck_assert_str_eq(told->tool, "delete_database");
    ck_assert_str_eq(told->workflow, "ops");
    ck_assert_str_eq(told->principal, "agent (1a2b)");
    ck_assert_str_eq(told->arguments_digest, task->arguments_digest);
    ck_assert_str_eq(told->decided_by, "alice");
    ck_assert_str_eq(told->reason, "fine");
    ck_assert_int_eq(told->created_ms, task->created_ms);
    ck_assert_int_eq(told->decide_by_ms, task->decide_by_ms);
    ck_assert_int_ge(told->decided_ms, before_ms);
    ck_assert_int_ge(seen.deliveries[0].at_ms, before_ms);
    ck_assert_str_eq(told->arguments, ""); /* no target wants them */
    ck_assert_uint_eq(strlen(seen.deliveries[0].id), 32);
    seen_finish(&seen);
    task_unref(task);
}
END_TEST

START_TEST(arguments_are_kept_only_for_who_wants_them)
{
    const struct store_outbox_target targets[] = {everything, ends};
    configure(targets, 2);
    make((const struct task_change *const[]){&cancel, NULL});
    ck_assert_int_eq(
        scratch_query(&scratch, "SELECT count(*) FROM outbox_notice WHERE arguments = ''"), 1);
    struct seen seen;
    look("bb", 16, &seen);
    ck_assert_str_eq(seen.deliveries[0].task->arguments, "{\"name\":\"prod\"}");
    seen_finish(&seen);
}
END_TEST

START_TEST(without_targets_nothing_is_noted)
{
    make((const struct task_change *const[]){&reject, NULL});
    ck_assert_int_eq(scratch_query(&scratch, "SELECT count(*) FROM outbox_notice"), 0);
}
END_TEST

/* ---- one transaction ---- */

START_TEST(a_change_that_cannot_be_noted_does_not_happen)
{
    configure(&everything, 1);
    struct task *task = create_task(&bench, new_task("a"));
    scratch_refuse_deliveries(&scratch);
    ck_assert_int_eq(create_status(&bench, new_task("b"), &no_limits), STORE_FAILED);
    ck_assert_int_eq(change_status(&bench, task->id, &approve), STORE_FAILED);
    ck_assert_int_eq(scratch_query(&scratch, "SELECT count(*) FROM task"), 1);
    ck_assert_int_eq(scratch_query(&scratch, "SELECT state FROM task"), TASK_PENDING);
    ck_assert_int_eq(scratch_query(&scratch, "SELECT count(*) FROM outbox_notice"), 1);
    ck_assert_int_eq(scratch_query(&scratch, "SELECT count(*) FROM audit"), 1);
    ck_assert_int_eq(store_pending_count(bench.store), 1);
    scratch_accept_deliveries(&scratch);
    ck_assert_int_eq(change_status(&bench, task->id, &approve), STORE_OK);
    task_unref(task);
    expect_drained("aa", "created:pending decided:approved");
}
END_TEST

START_TEST(a_change_that_fails_is_not_noted)
{
    configure(&everything, 1);
    struct task *task = create_task(&bench, new_task("a"));
    scratch_refuse_deliveries(&scratch);
    ck_assert_int_eq(change_status(&bench, task->id, &reject), STORE_FAILED);
    ck_assert_int_eq(change_status(&bench, task->id, &complete), STORE_CONFLICT);
    task_unref(task);
    expect_drained("aa", "created:pending");
}
END_TEST

/* ---- when ---- */

START_TEST(a_failed_attempt_is_due_again_when_it_was_put_off_to)
{
    configure(&everything, 1);
    make((const struct task_change *const[]){NULL});
    make((const struct task_change *const[]){NULL});
    struct seen seen;
    look("aa", 16, &seen);
    ck_assert_uint_eq(seen.count, 2);
    ck_assert_int_eq(seen.deliveries[0].attempts, 0);
    ck_assert_int_eq(seen.next_due_ms, INT64_MAX);
    ck_assert_str_ne(seen.deliveries[0].id, seen.deliveries[1].id);
    char id[33];
    memcpy(id, seen.deliveries[0].id, sizeof id);
    int64_t first = seen.deliveries[0].sequence, second = seen.deliveries[1].sequence;
    int64_t later_ms = clock_now_ms() + 3600000;
    seen_finish(&seen);

    postpone(first, later_ms);
    look("aa", 16, &seen);
    ck_assert_uint_eq(seen.count, 1);
    ck_assert_int_eq(seen.deliveries[0].sequence, second);
    ck_assert_int_eq(seen.next_due_ms, later_ms);
    seen_finish(&seen);

    postpone(first, 1); /* long due, so it comes first */
    look("aa", 16, &seen);
    ck_assert_uint_eq(seen.count, 2);
    ck_assert_int_eq(seen.deliveries[0].sequence, first);
    ck_assert_int_eq(seen.deliveries[0].attempts, 2);
    ck_assert_str_eq(seen.deliveries[0].id, id);
    seen_finish(&seen);
    look("aa", 1, &seen);
    ck_assert_uint_eq(seen.count, 1);
    seen_finish(&seen);
    look("bb", 16, &seen);
    ck_assert_uint_eq(seen.count, 0);
}
END_TEST

START_TEST(a_target_hears_of_each_task_in_order)
{
    const struct store_outbox_target targets[] = {everything, {"cc", NOTIFY_ALL, false}};
    configure(targets, 2);
    make((const struct task_change *const[]){&approve, &cancel, NULL});
    make((const struct task_change *const[]){NULL});
    struct seen seen;
    look("aa", 16, &seen);
    ck_assert_uint_eq(seen.count, 2); /* the first of either task */
    int64_t first = seen.deliveries[0].sequence;
    seen_finish(&seen);
    postpone(first, clock_now_ms() + 3600000);
    look("aa", 16, &seen);
    ck_assert_uint_eq(seen.count, 1); /* later deliveries wait with the delayed one */
    settle(store_outbox_delivered, seen.deliveries[0].sequence);
    seen_finish(&seen);
    look("aa", 16, &seen);
    ck_assert_uint_eq(seen.count, 0);
    /* No target waits for another one. */
    expect_drained("cc", "created:pending decided:approved ended:cancelled created:pending");
    postpone(first, 1);
    expect_drained("aa", "created:pending decided:approved ended:cancelled");
}
END_TEST

/* ---- restarts and reloads ---- */

START_TEST(a_waiting_delivery_survives_a_restart)
{
    configure(&everything, 1);
    make((const struct task_change *const[]){&approve, NULL});
    struct seen seen;
    look("aa", 16, &seen);
    char id[33];
    memcpy(id, seen.deliveries[0].id, sizeof id);
    postpone(seen.deliveries[0].sequence, 1);
    seen_finish(&seen);
    reopen();
    look("aa", 16, &seen);
    ck_assert_uint_eq(seen.count, 1);
    ck_assert_str_eq(seen.deliveries[0].id, id);
    ck_assert_int_eq(seen.deliveries[0].attempts, 1);
    seen_finish(&seen);
    expect_drained("aa", "created:pending decided:approved");
    /* Targets are remembered: changes before they are named again are noted. */
    make((const struct task_change *const[]){NULL});
    expect_drained("aa", "created:pending");
}
END_TEST

START_TEST(an_end_by_a_crash_is_told)
{
    configure(&everything, 1);
    make((const struct task_change *const[]){&approve, &execute, NULL});
    reopen();
    expect_drained("aa", "created:pending decided:approved ended:failed");
}
END_TEST

START_TEST(deliveries_to_a_removed_target_are_dropped)
{
    const struct store_outbox_target targets[] = {everything, ends};
    configure(targets, 2);
    make((const struct task_change *const[]){&cancel, NULL});
    configure(targets, 2);
    ck_assert_int_eq(scratch_query(&scratch, "SELECT count(*) FROM outbox_delivery"), 3);
    configure(&ends, 1);
    wait_until("SELECT count(*) = 1 FROM outbox_delivery");
    ck_assert_int_eq(scratch_query(&scratch, "SELECT count(*) FROM outbox_notice"), 1);
    struct seen seen;
    look("bb", 1, &seen);
    configure(NULL, 0);
    wait_until("SELECT count(*) = 0 FROM outbox_delivery");
    ck_assert_int_eq(scratch_query(&scratch, "SELECT count(*) FROM outbox_notice"), 0);
    /* An attempt that was under way meanwhile has nothing to note. */
    settle(store_outbox_delivered, seen.deliveries[0].sequence);
    postpone(seen.deliveries[0].sequence, 1);
    seen_finish(&seen);
}
END_TEST

/* The row of a notice that waits for an earlier one of its task is in no range of what is due. */
START_TEST(a_notice_that_waits_for_an_earlier_one_is_not_due)
{
    static const char due[] =
        "SELECT count(*) FROM outbox_delivery WHERE due_ms < 9000000000000000";
    configure(&everything, 1);
    make((const struct task_change *const[]){&approve, &execute, NULL});
    ck_assert_int_gt(scratch_query(&scratch, "SELECT count(*) FROM outbox_delivery"), 1);
    ck_assert_int_eq(scratch_query(&scratch, due), 1);
    expect_drained("aa", "created:pending decided:approved");
}
END_TEST

START_TEST(a_notice_expires_without_an_attempt)
{
    configure(&everything, 1);
    struct task *task = create_task(&bench, new_task("a"));
    task_unref(move_task(&bench, task->id, &reject));
    bench_close(&bench);
    ck_assert_int_eq(
        scratch_execute(&scratch, scratch_is_postgres()
                                      ? "UPDATE taskgate_outbox_notice SET at_ms = at_ms - 90000000"
                                      : "UPDATE outbox_notice SET at_ms = at_ms - 90000000"),
        0);
    bench_open(&bench, &scratch);
    wait_until("SELECT count(*) = 0 FROM outbox_delivery");
    struct answer answer = {0};
    audit_of(&bench, task->id, &answer);
    ck_assert_ptr_nonnull(strstr(answer.audit_text,
                                 "notification_given_up rejected>rejected gateway"
                                 " taskgate its endpoint did not take it in time"));
    answer_finish(&answer);
    task_unref(task);
}
END_TEST

START_TEST(an_abandoned_delivery_stands_in_the_audit_trail)
{
    configure(&everything, 1);
    struct task *task = create_task(&bench, new_task("a"));
    task_unref(move_task(&bench, task->id, &reject));
    struct seen seen, done = {0};
    look("aa", 1, &seen);
    for (unsigned i = 0; i < 2; i++) { /* the second time it is gone */
        done = (struct seen){0};
        store_outbox_give_up(bench.store, seen.deliveries[0].sequence, "24 h", call_of(&done));
        wait_for(&done);
    }
    seen_finish(&seen);
    struct answer answer = {0};
    audit_of(&bench, task->id, &answer);
    ck_assert_str_eq(answer.audit_text, "create >pending client a \n"
                                        "reject pending>rejected operator alice no\n"
                                        "notification_given_up pending>pending gateway taskgate "
                                        "24 h\n");
    answer_finish(&answer);
    task_unref(task);
    expect_drained("aa", "decided:rejected");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store outbox");
    TCase *tests = tcase_create("outbox");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, each_target_hears_of_the_events_it_wants, 0,
                        sizeof lives / sizeof *lives);
    tcase_add_test(tests, expiry_is_told);
    tcase_add_test(tests, a_reference_is_kept_for_the_task_until_it_has_ended);
    tcase_add_test(tests, a_delivery_shows_the_task_as_it_was);
    tcase_add_test(tests, arguments_are_kept_only_for_who_wants_them);
    tcase_add_test(tests, without_targets_nothing_is_noted);
    tcase_add_test(tests, a_change_that_cannot_be_noted_does_not_happen);
    tcase_add_test(tests, a_change_that_fails_is_not_noted);
    tcase_add_test(tests, a_failed_attempt_is_due_again_when_it_was_put_off_to);
    tcase_add_test(tests, a_target_hears_of_each_task_in_order);
    tcase_add_test(tests, a_waiting_delivery_survives_a_restart);
    tcase_add_test(tests, an_end_by_a_crash_is_told);
    tcase_add_test(tests, deliveries_to_a_removed_target_are_dropped);
    tcase_add_test(tests, a_notice_that_waits_for_an_earlier_one_is_not_due);
    tcase_add_test(tests, a_notice_expires_without_an_attempt);
    tcase_add_test(tests, an_abandoned_delivery_stands_in_the_audit_trail);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
