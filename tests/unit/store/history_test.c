/* Reading the audit trail from outside: beside a store in use, after tasks are gone, and files that
 * are none. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "calls.h"
#include "harness.h"
#include "taskgate/core/buffer.h"
#include "taskgate/store/history.h"

static struct scratch scratch;
static struct bench bench;
static struct store_site site; /* as a command reads it */

static void set_up(void)
{
    scratch_init(&scratch);
    site = scratch_site(&scratch);
    bench_open(&bench, &scratch);
}

static void tear_down(void)
{
    bench_close(&bench);
    scratch_finish(&scratch);
}

/* Only a creation is a call; the decision is in the row of the creation alone. */
START_TEST(calls_are_read_beside_the_store_that_writes_them)
{
    struct task *first = calls_create(&bench, "{\"outcome\":\"approve\"}", "{\"a\":1}");
    task_unref(calls_create(&bench, "", "{}"));
    task_unref(
        move_task(&bench, first->id, &(struct task_change){.to = TASK_APPROVED, .by = "alice"}));
    calls_expect(&site, 0, "{\"outcome\":\"approve\"} {\"a\":1}\n {}\n");
    calls_expect(&site, first->created_ms + INT64_C(1000000), "");
    ck_assert_int_eq(scratch_query(&scratch, "SELECT count(*) FROM audit WHERE decision <> ''"), 1);
    struct task *read = get_task(&bench, first->id);
    ck_assert_str_eq(read->decision, "");
    task_unref(read);
    task_unref(first);
}
END_TEST

/* They may decide otherwise without what is hidden. */
START_TEST(redacted_arguments_are_none)
{
    task_unref(calls_create(&bench, "{\"outcome\":\"approve\"}", "{\"a\":1}"));
    ck_assert_int_eq(scratch_execute(&scratch, "UPDATE task_request SET redacted = 1"), SQLITE_OK);
    calls_expect(&site, 0, "{\"outcome\":\"approve\"} -\n");
}
END_TEST

START_TEST(a_decision_outlives_its_task)
{
    task_unref(calls_create(&bench, "{\"outcome\":\"approve\"}", "{\"a\":1}"));
    ck_assert_int_eq(scratch_execute(&scratch, "PRAGMA foreign_keys = ON; DELETE FROM task"),
                     SQLITE_OK);
    calls_expect(&site, 0, "{\"outcome\":\"approve\"} -\n");
}
END_TEST

static bool stop_at_once(void *context, const struct store_history_call *call)
{
    (*(int *)context)++;
    return false;
}

START_TEST(a_reader_may_stop)
{
    int seen = 0;
    task_unref(calls_create(&bench, "{}", "{}"));
    task_unref(calls_create(&bench, "{}", "{}"));
    ck_assert(store_history_read(&site, 0, stop_at_once, &seen, NULL));
    ck_assert_int_eq(seen, 1);
}
END_TEST

static void expect_refused(const char *path, const char *why)
{
    struct error error = {""};
    ck_assert(!store_history_read(&(struct store_site){&store_sqlite, path}, 0, calls_note, NULL,
                                  &error));
    ck_assert_msg(strstr(error.message, why) != NULL, "%s", error.message);
    ck_assert_ptr_nonnull(strstr(error.message, path));
}

START_TEST(a_file_of_another_kind_or_version_is_refused)
{
    expect_refused("/nowhere/taskgate.db", "unable to open database file");
    expect_refused(scratch.folder, "cannot be read as a task store");
    bench_close(&bench);
    scratch_execute(&scratch, "PRAGMA user_version = 2");
    expect_refused(scratch.path, "has schema version 2, and this taskgate reads version");
    ck_assert_int_eq(scratch_query(&scratch, "PRAGMA user_version"), 2);
    scratch_execute(&scratch, "PRAGMA user_version = 99");
    expect_refused(scratch.path, "use the newer taskgate");
    scratch_execute(&scratch, "PRAGMA application_id = 7");
    expect_refused(scratch.path, "is no task store");
    unlink(scratch.path);
    bench_open(&bench, &scratch);
}
END_TEST

/* Files that reading leaves behind could belong to another user than the gateway's. */
START_TEST(reading_leaves_nothing_behind)
{
    char path[128];
    task_unref(calls_create(&bench, "{}", "{}"));
    bench_close(&bench);
    calls_expect(&site, 0, "{} {}\n");
    snprintf(path, sizeof path, "%s/odd 100%%41?x#y.db", scratch.folder);
    ck_assert_int_eq(link(scratch.path, path), 0);
    struct buffer text;
    buffer_init(&text);
    ck_assert(
        store_history_read(&(struct store_site){&store_sqlite, path}, 0, calls_note, &text, NULL));
    ck_assert_uint_gt(text.length, 0);
    buffer_finish(&text);
    unlink(path);
    snprintf(path, sizeof path, "%s-wal", scratch.path);
    ck_assert_int_ne(access(path, F_OK), 0);
    snprintf(path, sizeof path, "%s-shm", scratch.path);
    ck_assert_int_ne(access(path, F_OK), 0);
    bench_open(&bench, &scratch);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store history");
    TCase *tests = tcase_create("store history");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, calls_are_read_beside_the_store_that_writes_them);
    tcase_add_test(tests, redacted_arguments_are_none);
    tcase_add_test(tests, a_decision_outlives_its_task);
    tcase_add_test(tests, a_reader_may_stop);
    tcase_add_test(tests, a_file_of_another_kind_or_version_is_refused);
    tcase_add_test(tests, reading_leaves_nothing_behind);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
