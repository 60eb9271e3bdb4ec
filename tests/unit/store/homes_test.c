/* The homes of sessions, of two stores on one database as two processes have them, and the adoption
 * of sessions. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

#include "backend.h"
#include "harness.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/memory.h"
#include "taskgate/store/homes.h"
#include "taskgate/store/replicas.h"

/* In the place of the C library's: both stores may open the file. */
int flock(int fd, int operation)
{
    (void)fd, (void)operation;
    return 0;
}

static struct store_backend shared;
static struct scratch scratch;
static struct bench one, two;

static struct bench join_as(const char *id)
{
    struct error error = {""};
    struct bench bench = {.scratch = &scratch, .loop = loop_create(&error)};
    bench.store = store_open(&shared, scratch.path, id, NULL, &error);
    ck_assert_msg(bench.store != NULL, "%s", error.message);
    return bench;
}

static void set_up(void)
{
    shared = store_sqlite;
    shared.is_shared = true;
    scratch_init(&scratch);
    one = join_as("one");
    two = join_as("two");
}

static void tear_down(void)
{
    bench_close(&two);
    bench_close(&one);
    scratch_finish(&scratch);
}

struct settled {
    bool has_come, is_known, is_here, is_adopted, is_reached;
    char replica[16], lost[4][TASK_ID_BYTES];
    size_t lost_count;
};

static void on_settled(void *context, const struct store_reply *reply)
{
    struct settled *settled = context;
    settled->has_come = true;
    settled->is_known = reply->status == STORE_OK;
    if (!settled->is_known) {
        ck_assert_int_eq(reply->status, STORE_NOT_FOUND);
        return;
    }
    settled->is_here = reply->home->is_here;
    settled->is_reached = strcmp(reply->home->address, "http://one.example:1") == 0;
    settled->is_adopted = reply->home->is_adopted;
    snprintf(settled->replica, sizeof settled->replica, "%s", reply->home->replica);
    for (settled->lost_count = 0; settled->lost_count < reply->task_count; settled->lost_count++)
        snprintf(settled->lost[settled->lost_count], TASK_ID_BYTES, "%s",
                 reply->tasks[settled->lost_count]->id);
}

static struct settled settle(struct bench *bench, const char *session)
{
    struct settled settled = {.has_come = false};
    store_session_settle(bench->store, STR("files"), str_from(session),
                         (struct store_call){bench->loop, on_settled, &settled});
    while (!settled.has_come)
        loop_run_once(bench->loop, 100);
    return settled;
}

/* A client opens it there. */
static void open_session(struct bench *bench, const char *session)
{
    struct store_session value = {
        .source = "files", .id_digest = (char *)(uintptr_t)session, .seen_ms = clock_now_ms()};
    store_session_put(bench->store, &value, (struct store_call){bench->loop, NULL, NULL});
    settle(bench, session); /* behind it in the queue */
}

static void expect_home(struct bench *bench, const char *session, const char *replica)
{
    struct settled settled = settle(bench, session);
    ck_assert_str_eq(settled.replica, replica);
    ck_assert_int_eq(settled.is_here, bench == (strcmp(replica, "one") == 0 ? &one : &two));
    ck_assert(!settled.is_adopted);
}

START_TEST(a_session_lives_where_it_was_opened)
{
    ck_assert(!settle(&two, "s").is_known);
    open_session(&one, "s");
    open_session(&two, "t");
    expect_home(&two, "s", "one");
    expect_home(&two, "t", "two");
    expect_home(&one, "t", "two");
    expect_home(&one, "s", "one");
    open_session(&two, "s"); /* it is stored anew */
    expect_home(&two, "s", "one");
}
END_TEST

START_TEST(a_home_tells_where_it_is_reached)
{
    open_session(&one, "s");
    store_announce(one.store, "http://one.example:1");
    while (!settle(&two, "s").is_reached)
        loop_run_once(two.loop, 10);
}
END_TEST

START_TEST(a_session_is_adopted_once_when_its_home_is_gone_and_never_goes_back)
{
    open_session(&two, "s");
    expect_home(&two, "s", "two");
    bench_close(&two); /* it says goodbye */
    struct settled settled = settle(&one, "s");
    ck_assert(settled.is_here && settled.is_adopted);
    ck_assert_uint_eq(settled.lost_count, 0);
    expect_home(&one, "s", "one");
    two = join_as("two");
    expect_home(&two, "s", "one");
}
END_TEST

START_TEST(a_replica_that_has_started_again_adopts_its_own)
{
    open_session(&two, "s");
    bench_close(&two);
    two = join_as("two");
    ck_assert(settle(&two, "s").is_adopted);
    expect_home(&one, "s", "two");
}
END_TEST

START_TEST(a_session_that_has_ended_lives_nowhere)
{
    open_session(&two, "s");
    store_session_delete(two.store, STR("files"), STR("s"),
                         (struct store_call){two.loop, NULL, NULL});
    ck_assert(!settle(&two, "s").is_known);
    ck_assert(!settle(&one, "s").is_known);
    open_session(&one, "s");
    expect_home(&two, "s", "one");
}
END_TEST

static char *begin_execution(struct bench *bench, const char *session)
{
    static const struct task_change approve = {.to = TASK_APPROVED, .by = "alice"};
    static const struct task_change execute = {.to = TASK_EXECUTING};
    struct task *made = new_task("a");
    task_set_text(&made->session, str_from(session));
    struct task *task = create_task(bench, made);
    char *id = memory_copy_text(task->id);
    task_unref(task);
    task_unref(move_task(bench, id, &approve));
    task_unref(move_task(bench, id, &execute));
    return id;
}

START_TEST(adoption_tells_the_tasks_that_were_lost_with_the_home)
{
    static const struct task_change fail = {.to = TASK_FAILED,
                                            .failure = TASK_FAILURE_OUTCOME_UNKNOWN,
                                            .status_message = "the server was silent"};
    char *failed_before = begin_execution(&one, "s"), *lost = begin_execution(&one, "s");
    char *of_another_session = begin_execution(&one, "t");
    ck_assert_int_eq(change_status(&one, failed_before, &fail), STORE_OK);
    open_session(&one, "s");
    bench_close(&one);
    bench_close(&two); /* a replica that joins ends the lost ones */
    two = join_as("two");
    struct settled settled = settle(&two, "s");
    ck_assert(settled.is_adopted);
    ck_assert_uint_eq(settled.lost_count, 1);
    ck_assert_str_eq(settled.lost[0], lost);
    ck_assert_uint_eq(settle(&two, "s").lost_count, 0);
    free(failed_before);
    free(lost);
    free(of_another_session);
    one = join_as("one");
}
END_TEST

/* ---- tasks ---- */

static struct settled settle_task_for(struct bench *bench, const char *id,
                                      const struct store_heir *heir)
{
    struct settled settled = {.has_come = false};
    store_task_settle(bench->store, str_from(id), heir,
                      (struct store_call){bench->loop, on_settled, &settled});
    while (!settled.has_come)
        loop_run_once(bench->loop, 100);
    return settled;
}

static struct settled settle_task(struct bench *bench, const char *id)
{
    return settle_task_for(bench, id, NULL);
}

static void expect_task_home(struct bench *bench, const char *id, const char *replica)
{
    struct settled settled = settle_task(bench, id);
    ck_assert(settled.is_known && !settled.is_adopted);
    ck_assert_str_eq(settled.replica, replica);
    ck_assert_int_eq(settled.is_here, bench == (strcmp(replica, "one") == 0 ? &one : &two));
}

static char *create_at(struct bench *bench)
{
    struct task *task = create_task(bench, new_task("a"));
    char *id = memory_copy_text(task->id);
    task_unref(task);
    return id;
}

START_TEST(a_task_lives_where_it_was_created_and_then_where_it_runs_until_it_has_ended)
{
    static const struct task_change approve = {.to = TASK_APPROVED, .by = "alice"};
    static const struct task_change execute = {.to = TASK_EXECUTING};
    static const struct task_change cancel = {.to = TASK_CANCELLED, .by = "client"};
    char *id = create_at(&one);
    expect_task_home(&one, id, "one");
    expect_task_home(&two, id, "one");
    task_unref(move_task(&two, id, &approve));
    expect_task_home(&two, id, "one");
    task_unref(move_task(&two, id, &execute));
    expect_task_home(&one, id, "two");
    expect_task_home(&two, id, "two");
    task_unref(move_task(&one, id, &cancel));
    ck_assert(!settle_task(&one, id).is_known);
    ck_assert(!settle_task(&two, "tg_unknown").is_known);
    free(id);
}
END_TEST

START_TEST(an_undecided_task_is_adopted_once_when_its_home_is_gone)
{
    char *id = create_at(&two);
    bench_close(&two);
    struct settled settled = settle_task(&one, id);
    ck_assert(settled.is_known && settled.is_here && settled.is_adopted);
    expect_task_home(&one, id, "one");
    two = join_as("two");
    expect_task_home(&two, id, "one");
    free(id);
}
END_TEST

START_TEST(an_undecided_task_goes_to_the_heir_that_is_named)
{
    char *id = create_at(&two);
    bench_close(&two);
    struct bench three = join_as("three");
    const struct store_heir heir = {"three", store_replica_epoch(three.store)};
    struct settled settled = settle_task_for(&one, id, &heir);
    ck_assert(settled.is_known && settled.is_adopted && !settled.is_here);
    ck_assert_str_eq(settled.replica, "three");
    settled = settle_task_for(&three, id, &(struct store_heir){"one", heir.epoch});
    ck_assert(settled.is_known && settled.is_here && !settled.is_adopted);
    bench_close(&three);
    two = join_as("two");
    free(id);
}
END_TEST

START_TEST(a_request_for_an_execution_of_a_lost_home_ends_it)
{
    char *id = begin_execution(&two, "s");
    bench_close(&two);
    ck_assert(!settle_task(&one, id).is_known);
    struct task *task = get_task(&one, id);
    ck_assert_int_eq(task->state, TASK_FAILED);
    ck_assert_int_eq(task->failure, TASK_FAILURE_OUTCOME_UNKNOWN);
    task_unref(task);
    free(id);
    two = join_as("two");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("homes");
    TCase *tests = tcase_create("homes");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, a_session_lives_where_it_was_opened);
    tcase_add_test(tests, a_home_tells_where_it_is_reached);
    tcase_add_test(tests, a_session_is_adopted_once_when_its_home_is_gone_and_never_goes_back);
    tcase_add_test(tests, a_replica_that_has_started_again_adopts_its_own);
    tcase_add_test(tests, a_session_that_has_ended_lives_nowhere);
    tcase_add_test(tests,
                   a_task_lives_where_it_was_created_and_then_where_it_runs_until_it_has_ended);
    tcase_add_test(tests, an_undecided_task_is_adopted_once_when_its_home_is_gone);
    tcase_add_test(tests, an_undecided_task_goes_to_the_heir_that_is_named);
    tcase_add_test(tests, a_request_for_an_execution_of_a_lost_home_ends_it);
    tcase_add_test(tests, adoption_tells_the_tasks_that_were_lost_with_the_home);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
