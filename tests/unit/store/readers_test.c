/* Commands beside the store that writes: the trail, the calls, a backup, of both kinds of database.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "calls.h"
#include "harness.h"
#include "taskgate/core/buffer.h"
#include "taskgate/core/memory.h"
#include "taskgate/store/history.h"
#include "taskgate/store/maintenance.h"
#include "taskgate/store/trail.h"

#define MANY 1003 /* more than a page */

static struct scratch scratch;
static struct bench bench;
static struct store_site site;
static char target[128];

static void set_up(void)
{
    scratch_init(&scratch);
    site = scratch_site(&scratch);
    snprintf(target, sizeof target, "%s/copy.db", scratch.folder);
    bench_open(&bench, &scratch);
}

static void tear_down(void)
{
    bench_close(&bench);
    scratch_finish(&scratch);
}

static void execute(const char *sql)
{
    ck_assert_msg(scratch_execute(&scratch, sql) == SQLITE_OK, "%s", sql);
}

/* As somebody could who has the database. */
static void tamper(const char *sqlite, const char *postgres)
{
    execute(scratch_is_postgres() ? "ALTER TABLE taskgate_audit DISABLE TRIGGER USER"
                                  : "DROP TRIGGER IF EXISTS audit_is_not_deleted;"
                                    "DROP TRIGGER IF EXISTS audit_is_not_updated");
    execute(scratch_is_postgres() ? postgres : sqlite);
}

static struct store_trail_report verify(const struct store_site *where)
{
    struct store_trail_report report;
    struct error error = {""};
    ck_assert_msg(store_trail_verify(where, NULL, NULL, &report, &error), "%s", error.message);
    return report;
}

static void count_one(void *context, const struct store_reply *reply)
{
    ck_assert_int_eq(reply->status, STORE_OK);
    ++*(size_t *)context;
}

static void create_many(size_t count)
{
    size_t done = 0;
    for (size_t i = 0; i < count; i++)
        store_task_create(bench.store, new_task("auth:ab"), &no_limits,
                          (struct store_call){bench.loop, count_one, &done});
    bench_wait_count(bench.loop, &done, count);
}

/* ---- rows and calls ---- */

static bool count_row(void *context, struct str row)
{
    ck_assert(str_starts_with(row, STR("{")));
    ++*(size_t *)context;
    return true;
}

static bool stop_at_second(void *context, struct str row)
{
    (void)row;
    return ++*(size_t *)context < 2;
}

static bool count_call(void *context, const struct store_history_call *call)
{
    ck_assert_uint_gt(call->task_id.length, 0);
    *(size_t *)context += call->has_arguments;
    return true;
}

START_TEST(pages_join_without_a_gap)
{
    struct error error = {""};
    size_t rows = 0, stopped = 0, later = 0, calls = 0;
    create_many(MANY);
    ck_assert(store_trail_read(&site, INT64_MIN, count_row, &rows, &error));
    ck_assert_uint_eq(rows, MANY);
    ck_assert(store_trail_read(&site, INT64_MIN, stop_at_second, &stopped, &error));
    ck_assert_uint_eq(stopped, 2);
    ck_assert(store_trail_read(&site, INT64_MAX, count_row, &later, &error));
    ck_assert_uint_eq(later, 0);
    ck_assert(store_history_read(&site, 0, count_call, &calls, &error));
    ck_assert_uint_eq(calls, MANY);
    ck_assert_int_eq(verify(&site).rows, MANY);
    ck_assert(verify(&site).is_good);
}
END_TEST

START_TEST(a_call_has_its_decision_and_arguments_that_nobody_hid)
{
    struct task *first = calls_create(&bench, "{\"outcome\":\"approve\"}", "{\"a\":1}");
    task_unref(calls_create(&bench, "", "{\"b\":2}"));
    task_unref(
        move_task(&bench, first->id, &(struct task_change){.to = TASK_APPROVED, .by = "alice"}));
    calls_expect(&site, 0, "{\"outcome\":\"approve\"} {\"a\":1}\n {\"b\":2}\n");
    calls_expect(&site, first->created_ms + INT64_C(1000000), "");
    execute(scratch_is_postgres() ? "UPDATE taskgate_task SET is_redacted = 1"
                                  : "UPDATE task_request SET redacted = 1");
    calls_expect(&site, 0, "{\"outcome\":\"approve\"} -\n -\n");
    execute(scratch_is_postgres() ? "DELETE FROM taskgate_task"
                                  : "PRAGMA foreign_keys = ON; DELETE FROM task");
    calls_expect(&site, 0, "{\"outcome\":\"approve\"} -\n -\n");
    task_unref(first);
}
END_TEST

/* ---- the chain ---- */

static void expect_finding(const char *finding)
{
    struct store_trail_report report = verify(&site);
    ck_assert(!report.is_good);
    ck_assert_str_eq(report.finding.message, finding);
}

START_TEST(a_changed_row_is_found)
{
    create_many(3);
    ck_assert(verify(&site).is_good);
    tamper("UPDATE audit SET tool = 'other' WHERE sequence = 2",
           "UPDATE taskgate_audit SET tool = 'other' WHERE sequence = 2");
    expect_finding("row 2 was changed: its hash is not that of its content");
}
END_TEST

START_TEST(an_end_that_an_anchor_names_is_missed)
{
    create_many(3);
    execute(scratch_is_postgres()
                ? "INSERT INTO taskgate_audit_anchor VALUES (3, repeat('a', 64), 1, '', 0)"
                : "INSERT INTO audit_anchor (sequence, hash, at_ms, signature, is_start)"
                  " VALUES (3, 'a', 1, '', 0); UPDATE sqlite_sequence SET seq = 0");
    ck_assert(verify(&site).is_good);
    tamper("DELETE FROM audit WHERE sequence > 1; UPDATE sqlite_sequence SET seq = 0",
           "DELETE FROM taskgate_audit WHERE sequence > 1");
    expect_finding("row 2 is missing, and all behind it");
}
END_TEST

START_TEST(kept_arguments_are_read_and_checked)
{
    struct error error = {""};
    char *arguments = NULL;
    store_audit_configure(bench.store,
                          &(struct store_audit_settings){.keep_arguments_ms = 3600000});
    create_many(2);
    ck_assert(store_trail_arguments(&site, 1, &arguments, &error));
    ck_assert_str_eq(arguments, "{\"name\":\"prod\"}");
    free(arguments);
    ck_assert(!store_trail_arguments(&site, 9, &arguments, &error));
    ck_assert_str_eq(error.message, "");
    ck_assert(verify(&site).is_good);
    execute(scratch_is_postgres() ? "UPDATE taskgate_audit_kept SET arguments = '{}'"
                                    " WHERE sequence = 2"
                                  : "UPDATE audit_kept SET arguments = '{}' WHERE sequence = 2");
    expect_finding("row 2: its kept arguments were changed");
}
END_TEST

/* ---- a backup ---- */

START_TEST(a_backup_has_one_moment_and_replaces_nothing)
{
    struct error error = {""};
    struct stat status;
    const struct store_site copy = {&store_sqlite, target};
    struct task *task = calls_create(&bench, "{}", "{\"a\":1}");
    create_many(MANY);
    ck_assert_msg(store_backup(&site, &copy, &error), "%s", error.message);
    create_many(2);
    ck_assert_int_eq(verify(&copy).rows, MANY + 1);
    ck_assert(verify(&copy).is_good);
    ck_assert_int_eq(verify(&site).rows, MANY + 3);
    ck_assert_int_eq(stat(target, &status), 0);
    ck_assert_int_eq(status.st_mode & 0777, 0600);
    char *log = memory_format("%s-wal", target);
    ck_assert_int_ne(access(log, F_OK), 0);
    free(log);

    ck_assert(!store_backup(&site, &copy, &error));
    ck_assert_ptr_nonnull(strstr(error.message, "File exists"));
    ck_assert_int_eq(verify(&copy).rows, MANY + 1);

    struct scratch other = {.backend = &store_sqlite};
    snprintf(other.place, sizeof other.place, "%s", target);
    struct bench served;
    bench_open(&served, &other);
    struct task *read = get_task(&served, task->id);
    ck_assert_str_eq(read->arguments, "{\"a\":1}");
    ck_assert_int_eq(read->state, TASK_PENDING);
    task_unref(read);
    bench_close(&served);
    task_unref(task);
}
END_TEST

START_TEST(an_unreadable_store_leaves_no_copy)
{
    struct error error = {""};
    const struct store_site copy = {&store_sqlite, target};
    const struct store_site nowhere = {site.backend, scratch_is_postgres()
                                                         ? "postgres://a:secret@127.0.0.1:1/b"
                                                         : "/nowhere/taskgate.db"};
    ck_assert(!store_backup(&nowhere, &copy, &error));
    ck_assert_ptr_null(strstr(error.message, "secret"));
    ck_assert_str_ne(error.message, "");
    ck_assert_int_ne(access(target, F_OK), 0);
}
END_TEST

START_TEST(another_version_of_the_schema_is_refused)
{
    struct error error = {""};
    struct store_trail_report report;
    execute(scratch_is_postgres() ? "UPDATE taskgate_schema SET version = 1, serves = 1"
                                  : "PRAGMA user_version = 2");
    ck_assert(!store_trail_verify(&site, NULL, NULL, &report, &error));
    ck_assert_ptr_nonnull(strstr(error.message, "and this taskgate reads version"));
    execute(scratch_is_postgres() ? "UPDATE taskgate_schema SET version = 99, serves = 99"
                                  : "PRAGMA user_version = 99");
    ck_assert(!store_trail_verify(&site, NULL, NULL, &report, &error));
    ck_assert_ptr_nonnull(strstr(error.message, "the newer taskgate that wrote it"));
    if (scratch_is_postgres()) {
        execute("DROP TABLE taskgate_schema CASCADE");
        ck_assert(!store_trail_verify(&site, NULL, NULL, &report, &error));
        ck_assert_ptr_nonnull(strstr(error.message, "has no task store"));
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store readers");
    TCase *tests = tcase_create("store readers");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, pages_join_without_a_gap);
    tcase_add_test(tests, a_call_has_its_decision_and_arguments_that_nobody_hid);
    tcase_add_test(tests, a_changed_row_is_found);
    tcase_add_test(tests, an_end_that_an_anchor_names_is_missed);
    tcase_add_test(tests, kept_arguments_are_read_and_checked);
    tcase_add_test(tests, a_backup_has_one_moment_and_replaces_nothing);
    tcase_add_test(tests, an_unreadable_store_leaves_no_copy);
    tcase_add_test(tests, another_version_of_the_schema_is_refused);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
