/* The cases of PostgreSQL alone: being refused, losing the server, and lost answers. */
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

#define CALLS 40

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

START_TEST(a_refusal_gives_its_reason_without_the_password)
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

/* PgBouncer's two modes; not where it is not installed. */
START_TEST(a_pooler_is_used_in_session_mode_and_refused_in_transaction_mode)
{
    static const char form[] = "postgres://postgres:secret@/%s?host=%s&port=6432";
    const char *folder = getenv("TASKGATE_TEST_POOLER");
    struct error error = {""};
    if (!folder)
        return;
    char *by_session = memory_format(form, "by_session", folder);
    struct database *database = store_postgres.open(by_session, &error);
    ck_assert_msg(database && store_postgres.is_in_place(database, &error), "%s", error.message);
    store_postgres.close(database);
    free(by_session);
    expect_refusal(memory_format(form, "by_transaction", folder), "a pooler in transaction mode");
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

/* Every change that was answered as stored is there, and no other is. */
START_TEST(a_server_that_dies_in_the_middle_of_commits_keeps_what_was_answered)
{
    enum { ROUNDS = 3 };
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

/* ---- a commit whose answer is lost ---- */

/* A connection of the test's own, which waits for no standby. */
static PGconn *connect_aside(void)
{
    PGconn *handle = PQconnectdb(getenv("TASKGATE_TEST_POSTGRES"));
    PQclear(PQexec(handle, "SET synchronous_commit = local"));
    ck_assert_int_eq(PQstatus(handle), CONNECTION_OK);
    return handle;
}

static bool run_aside(PGconn *handle, const char *sql)
{
    PGresult *result = PQexec(handle, sql);
    bool is_good = PQresultStatus(result) == PGRES_COMMAND_OK ||
                   (PQresultStatus(result) == PGRES_TUPLES_OK && PQntuples(result) > 0);
    PQclear(result);
    return is_good;
}

static void wait_aside(PGconn *handle, const char *sql)
{
    int64_t give_up_ms = clock_monotonic_ms() + 20000;
    while (!run_aside(handle, sql)) {
        ck_assert_msg(clock_monotonic_ms() < give_up_ms, "%s", sql);
        loop_run_once(bench.loop, 10);
    }
}

#define WAITS_FOR(event)                                                                           \
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"                                       \
    " WHERE application_name LIKE 'taskgate%' AND wait_event = '" event "'"

/* Ends the connection whose commit, of a task, waits for a standby. Other commits of the store,
 * such as a heartbeat, need not wait. */
static void end_waiting_create(PGconn *aside)
{
    char of_task[256], end[512], go_on[512];
    snprintf(of_task, sizeof of_task,
             "EXISTS (SELECT 1 FROM pg_locks WHERE pg_locks.pid = pg_stat_activity.pid"
             " AND mode = 'RowExclusiveLock' AND relation = '%s.taskgate_task'::regclass)",
             scratch.schema);
    snprintf(end, sizeof end, "%s AND %s", WAITS_FOR("SyncRep"), of_task);
    snprintf(go_on, sizeof go_on,
             "SELECT pg_cancel_backend(pid) FROM pg_stat_activity"
             " WHERE application_name LIKE 'taskgate%%' AND wait_event = 'SyncRep' AND NOT %s",
             of_task);
    int64_t give_up_ms = clock_monotonic_ms() + 20000;
    while (!run_aside(aside, end)) {
        ck_assert_msg(clock_monotonic_ms() < give_up_ms, "%s", end);
        run_aside(aside, go_on);
        loop_run_once(bench.loop, 10);
    }
}

/* The commit waits for a standby that there is not: it is stored, but not answered. */
START_TEST(a_commit_whose_answer_is_lost_is_looked_up)
{
    PGconn *aside = connect_aside();
    struct answer answer = {0};
    task_unref(create_task(&bench, new_task("a"))); /* behind the store's own first commits */
    ck_assert(run_aside(aside, "ALTER SYSTEM SET synchronous_standby_names = 'nobody'"));
    ck_assert(run_aside(aside, "SELECT pg_reload_conf()"));
    wait_aside(aside, "SELECT 1 WHERE current_setting('synchronous_standby_names') = 'nobody'");
    store_task_create(bench.store, new_task("a"), &no_limits, bench_call(bench.loop, &answer));
    end_waiting_create(aside);
    ck_assert(run_aside(aside, "ALTER SYSTEM RESET synchronous_standby_names"));
    ck_assert(run_aside(aside, "SELECT pg_reload_conf()"));
    bench_wait(bench.loop, &answer);
    ck_assert_int_eq(answer.status, STORE_OK);
    ck_assert_int_eq(scratch_query(&scratch, "SELECT count(*) FROM task"), 2);
    answer_finish(&answer);
    PQfinish(aside);
}
END_TEST

START_TEST(a_write_lost_before_the_commit_is_not_stored)
{
    PGconn *aside = connect_aside();
    struct answer answer = {0};
    char sql[256];
    snprintf(sql, sizeof sql,
             "BEGIN; SELECT pg_advisory_xact_lock(hashtext('taskgate'), hashtext('%s'))",
             scratch.schema);
    ck_assert(run_aside(aside, sql));
    store_task_create(bench.store, new_task("a"), &no_limits, bench_call(bench.loop, &answer));
    wait_aside(aside, WAITS_FOR("advisory"));
    ck_assert(run_aside(aside, "ROLLBACK"));
    bench_wait(bench.loop, &answer);
    ck_assert_int_eq(answer.status, STORE_FAILED);
    ck_assert_int_eq(scratch_query(&scratch, "SELECT count(*) FROM task"), 0);
    answer_finish(&answer);
    wait_until_healthy(true);
    task_unref(create_task(&bench, new_task("a")));
    PQfinish(aside);
}
END_TEST

/* ---- two replicas at once ---- */

static struct bench other;

static void join_other(void)
{
    struct error error = {""};
    other = (struct bench){.scratch = &scratch, .loop = loop_create(&error)};
    other.store = store_open(&store_postgres, scratch.place, "other", NULL, &error);
    ck_assert_msg(other.store != NULL, "%s", error.message);
}

/* The answers of both, of whom each has asked CALLS times. */
static int64_t count_both(struct answer answers[2][CALLS], enum store_status status)
{
    int64_t count = 0;
    for (int i = 0; i < 2 * CALLS; i++) {
        struct answer *answer = &answers[i / CALLS][i % CALLS];
        bench_wait(i < CALLS ? bench.loop : other.loop, answer);
        count += answer->status == status;
        answer_finish(answer);
    }
    return count;
}

START_TEST(two_who_create_at_once_stay_within_the_limit)
{
    static struct answer answers[2][CALLS];
    const struct store_limits limits = {CALLS / 2, INT64_MAX, INT64_MAX, INT64_MAX};
    join_other();
    for (int i = 0; i < CALLS; i++) {
        store_task_create(bench.store, new_task("a"), &limits,
                          bench_call(bench.loop, &answers[0][i]));
        store_task_create(other.store, new_task("a"), &limits,
                          bench_call(other.loop, &answers[1][i]));
    }
    ck_assert_int_eq(count_both(answers, STORE_OK), CALLS / 2);
    ck_assert_int_eq(scratch_query(&scratch, "SELECT count(*) FROM task"), CALLS / 2);
    bench_close(&other);
}
END_TEST

START_TEST(two_who_decide_at_once_decide_once)
{
    static struct answer answers[2][CALLS];
    static const struct task_change changes[] = {{.to = TASK_APPROVED, .by = "a"},
                                                 {.to = TASK_REJECTED, .by = "b"}};
    join_other();
    for (int i = 0; i < CALLS; i++) {
        struct task *task = create_task(&bench, new_task("a"));
        store_task_change(bench.store, str_from(task->id), &changes[0], &alice,
                          bench_call(bench.loop, &answers[0][i]));
        store_task_change(other.store, str_from(task->id), &changes[1], &alice,
                          bench_call(other.loop, &answers[1][i]));
        task_unref(task);
    }
    ck_assert_int_eq(count_both(answers, STORE_OK), CALLS);
    ck_assert_int_eq(
        scratch_query(&scratch, "SELECT count(*) FROM audit WHERE event IN ('approve', 'reject')"),
        CALLS);
    bench_close(&other);
}
END_TEST

/* Numbers of the feed rise with the commits, also where both write all the time. */
START_TEST(each_hears_of_all_that_the_other_commits_once)
{
    static struct answer answers[2][CALLS];
    struct heard heard[2] = {{.count = 0}, {.count = 0}};
    enum { EACH = 30 };
    join_other();
    store_observe(bench.store, bench.loop, hear, &heard[0]);
    store_observe(other.store, other.loop, hear, &heard[1]);
    for (int i = 0; i < EACH; i++) {
        store_task_create(bench.store, new_task("a"), &no_limits,
                          bench_call(bench.loop, &answers[0][i]));
        store_task_create(other.store, new_task("b"), &no_limits,
                          bench_call(other.loop, &answers[1][i]));
    }
    bench_wait_count(bench.loop, &heard[0].count, 2 * EACH);
    bench_wait_count(other.loop, &heard[1].count, 2 * EACH);
    for (int i = 0; i < 2 * EACH; i++)
        ck_assert_str_eq(heard[0].tasks[i]->id, heard[1].tasks[i]->id);
    for (int i = 0; i < 2 * EACH; i++)
        answer_finish(&answers[i / EACH][i % EACH]);
    heard_finish(&heard[0]);
    heard_finish(&heard[1]);
    bench_close(&other);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store postgres");
    TCase *tests = tcase_create("postgres");
    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, a_refusal_gives_its_reason_without_the_password);
    tcase_add_test(tests, a_database_that_cannot_be_reached_is_tried_again);
    tcase_add_test(tests, sessions_are_set_up_so_that_nobody_waits_for_ever);
    tcase_add_test(tests, a_pooler_is_used_in_session_mode_and_refused_in_transaction_mode);
    tcase_add_test(tests, after_the_migration_the_right_to_rows_is_enough);
    tcase_add_test(tests, a_version_serves_beside_the_next_one);
    tcase_add_test(tests, a_server_that_comes_back_is_used_again_and_nothing_is_lost);
    tcase_add_test(tests, a_server_that_dies_in_the_middle_of_commits_keeps_what_was_answered);
    tcase_add_test(tests, a_commit_whose_answer_is_lost_is_looked_up);
    tcase_add_test(tests, a_write_lost_before_the_commit_is_not_stored);
    tcase_add_test(tests, two_who_create_at_once_stay_within_the_limit);
    tcase_add_test(tests, two_who_decide_at_once_decide_once);
    tcase_add_test(tests, each_hears_of_all_that_the_other_commits_once);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
