/* What only PostgreSQL has: being refused, losing the server, and lost answers. */
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend.h"
#include "connection.h"
#include "harness.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/memory.h"

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

/* ---- places ---- */

/* Why a URL is refused; none of these may tell the password. */
static const char *refusal(const char *url)
{
    static struct error error;
    error.message[0] = '\0';
    struct database *database = store_postgres.open(url, &error);
    ck_assert_msg(database == NULL, "%s was opened", url);
    ck_assert_ptr_null(strstr(error.message, "secret"));
    return error.message;
}

static char *url_with(const char *user, const char *database)
{
    return memory_format("postgres://%s:secret@/%s?host=%s", user, database,
                         getenv("TASKGATE_TEST_POSTGRES_FOLDER"));
}

static void expect_refusal(char *url, const char *words)
{
    const char *message = refusal(url);
    ck_assert_msg(strstr(message, words) != NULL, "%s", message);
    free(url);
}

START_TEST(whoever_is_refused_is_told_why_without_the_password)
{
    expect_refusal(url_with("nobody-knows", "postgres"), "role \"nobody-knows\" does not exist");
    expect_refusal(url_with("postgres", "nowhere"), "database \"nowhere\" does not exist");
    expect_refusal(memory_copy_text("mysql://a:secret@host/b"), "postgres://USER");
    expect_refusal(memory_copy_text("postgres://a:se/secret@host/b"), "postgres://USER");
    expect_refusal(memory_copy_text("postgres://a:b@secret@host/b"), "postgres://USER");
    expect_refusal(memory_copy_text("postgres://a@host/b?secret=1"), "postgres://USER");
    expect_refusal(memory_copy_text("host=localhost password=secret"), "postgres://USER");
}
END_TEST

START_TEST(a_database_that_cannot_be_reached_is_tried_again)
{
    struct error error = {""};
    struct database *database = store_postgres.open("postgres://a:secret@127.0.0.1:1/b", &error);
    ck_assert_ptr_nonnull(database);
    ck_assert(!store_postgres.is_in_place(database, &error));
    ck_assert_ptr_null(strstr(error.message, "secret"));
    ck_assert(!store_postgres.begin(database, true));
    store_postgres.close(database);
}
END_TEST

START_TEST(sessions_are_set_up_so_that_nobody_waits_for_ever)
{
    struct error error;
    struct database *database = store_postgres.open(scratch.place, &error);
    static const char *const wanted[] = {
        "current_setting('application_name') LIKE 'taskgate%'",
        "current_setting('idle_in_transaction_session_timeout') = '5s'",
        "current_setting('lock_timeout') = '10s'",
        "current_setting('statement_timeout') = '15s'",
        "current_setting('tcp_user_timeout') IN ('10s', '0')", /* of a Unix socket there is none */
        "current_setting('synchronous_commit') = 'on'",
    };
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        char sql[128];
        int64_t is_so;
        snprintf(sql, sizeof sql, "SELECT %s", wanted[i]);
        ck_assert(rows_take_number(connection_read_text(database, sql, NO_VALUES), &is_so));
        ck_assert_msg(is_so == 1, "%s", wanted[i]);
    }
    store_postgres.close(database);
}
END_TEST

START_TEST(after_the_migration_the_right_to_rows_is_enough)
{
    ck_assert_int_eq(
        scratch_execute(&scratch,
                        "DROP ROLE IF EXISTS taskgate_rows; CREATE ROLE taskgate_rows LOGIN;"),
        SQLITE_OK);
    char sql[512];
    snprintf(sql, sizeof sql,
             "GRANT USAGE ON SCHEMA %s TO taskgate_rows;"
             "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA %s TO taskgate_rows",
             scratch.schema, scratch.schema);
    ck_assert_int_eq(scratch_execute(&scratch, sql), SQLITE_OK);
    struct scratch own = scratch;
    bench_close(&bench);
    snprintf(scratch.place, sizeof scratch.place,
             "postgres://taskgate_rows@/postgres?host=%s&options=-csearch_path%%3D%s",
             getenv("TASKGATE_TEST_POSTGRES_FOLDER"), scratch.schema);
    bench_open(&bench, &scratch);
    struct task *task = create_task(&bench, new_task("a"));
    task_unref(move_task(&bench, task->id, &(struct task_change){.to = TASK_REJECTED, .by = "b"}));
    task_unref(task);
    bench_close(&bench);
    scratch = own;
    snprintf(sql, sizeof sql, "DROP OWNED BY taskgate_rows; DROP ROLE taskgate_rows");
    ck_assert_int_eq(scratch_execute(&scratch, sql), SQLITE_OK);
    bench_open(&bench, &scratch);
}
END_TEST

START_TEST(a_version_serves_beside_the_next_one)
{
    ck_assert_int_eq(scratch_execute(&scratch, "UPDATE schema SET version = version + 1;"
                                               "ALTER TABLE taskgate_task ADD COLUMN later"
                                               " TEXT NOT NULL DEFAULT ''"),
                     SQLITE_OK);
    bench_close(&bench);
    bench_open(&bench, &scratch);
    struct task *task = create_task(&bench, new_task("a"));
    task_unref(move_task(&bench, task->id, &(struct task_change){.to = TASK_REJECTED, .by = "b"}));
    task_unref(task);
    ck_assert_int_eq(scratch_execute(&scratch, "UPDATE schema SET serves = version"), SQLITE_OK);
    ck_assert_ptr_nonnull(strstr(refusal(scratch.place), "run the newer taskgate"));
}
END_TEST

/* ---- losing the server ---- */

static void server(const char *what)
{
    char *command = memory_format("'%s' %s '%s'", getenv("TASKGATE_TEST_POSTGRES_SCRIPT"), what,
                                  getenv("TASKGATE_TEST_POSTGRES_FOLDER"));
    ck_assert_int_eq(system(command), 0);
    free(command);
}

static void wait_until_healthy(bool wanted)
{
    int64_t give_up_ms = clock_monotonic_ms() + 20000;
    while (store_is_healthy(bench.store) != wanted) {
        ck_assert_msg(clock_monotonic_ms() < give_up_ms, "healthy %d", !wanted);
        loop_run_once(bench.loop, 20);
    }
}

START_TEST(a_server_that_comes_back_is_used_again_and_nothing_is_lost)
{
    struct task *before = create_task(&bench, new_task("a"));
    server("kill");
    wait_until_healthy(false);
    ck_assert_int_eq(create_status(&bench, new_task("a"), &no_limits), STORE_FAILED);
    server("start");
    wait_until_healthy(true);
    task_unref(get_task(&bench, before->id));
    task_unref(create_task(&bench, new_task("a")));
    ck_assert_int_eq(scratch_query(&scratch, "SELECT count(*) FROM task"), 2);
    task_unref(before);
}
END_TEST

/* Whatever was answered as stored is there, and what was not is not. */
START_TEST(a_server_that_dies_in_the_middle_of_commits_keeps_what_was_answered)
{
    enum { ROUNDS = 3, CALLS = 40 };
    static struct answer answers[CALLS];
    for (int round = 0; round < ROUNDS; round++) {
        memset(answers, 0, sizeof answers);
        for (int i = 0; i < CALLS; i++)
            store_task_create(bench.store, new_task("a"), &no_limits,
                              bench_call(bench.loop, &answers[i]));
        server("kill");
        server("start");
        int64_t stored = 0;
        for (int i = 0; i < CALLS; i++) {
            bench_wait(bench.loop, &answers[i]);
            char sql[128] = "";
            if (answers[i].status == STORE_OK) {
                stored++;
                snprintf(sql, sizeof sql, "SELECT count(*) FROM task WHERE id = '%s'",
                         answers[i].task->id);
                ck_assert_int_eq(scratch_query(&scratch, sql), 1);
            }
            answer_finish(&answers[i]);
        }
        ck_assert_int_eq(scratch_query(&scratch, "SELECT count(*) FROM task"), stored);
        wait_until_healthy(true);
        ck_assert_int_eq(scratch_execute(&scratch, "DELETE FROM task; UPDATE totals SET tasks = 0"),
                         SQLITE_OK);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store postgres");
    TCase *tests = tcase_create("postgres");
    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, whoever_is_refused_is_told_why_without_the_password);
    tcase_add_test(tests, a_database_that_cannot_be_reached_is_tried_again);
    tcase_add_test(tests, sessions_are_set_up_so_that_nobody_waits_for_ever);
    tcase_add_test(tests, after_the_migration_the_right_to_rows_is_enough);
    tcase_add_test(tests, a_version_serves_beside_the_next_one);
    tcase_add_test(tests, a_server_that_comes_back_is_used_again_and_nothing_is_lost);
    tcase_add_test(tests, a_server_that_dies_in_the_middle_of_commits_keeps_what_was_answered);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
