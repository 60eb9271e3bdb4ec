/* The database as files: mode, lock, versions, and a process that is killed. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"
#include "sqlite/migrations.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/memory.h"

static struct scratch scratch;

static void set_up(void)
{
    scratch_init(&scratch);
}

static void tear_down(void)
{
    scratch_finish(&scratch);
}

static void expect_refused(const char *path, const char *said)
{
    struct error error = {""};
    ck_assert_ptr_null(store_open(&store_sqlite, path, NULL, NULL, &error));
    ck_assert_msg(strstr(error.message, said) != NULL, "\"%s\" lacks \"%s\"", error.message, said);
    ck_assert_msg(strstr(error.message, path) != NULL, "\"%s\" lacks the path", error.message);
}

/* ---- mode ---- */

static unsigned mode_of(const char *suffix)
{
    char path[128];
    struct stat status;
    snprintf(path, sizeof path, "%s%s", scratch.path, suffix);
    ck_assert_msg(stat(path, &status) == 0, "%s: %s", path, strerror(errno));
    return status.st_mode & 0777;
}

START_TEST(every_file_is_private_whatever_the_umask)
{
    struct bench bench;
    umask(0);
    bench_open(&bench, &scratch);
    task_unref(create_task(&bench, new_task("a")));
    static const char *const suffixes[] = {"", "-wal", "-shm"};
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++)
        ck_assert_uint_eq(mode_of(suffixes[i]), 0600);
    bench_close(&bench);
    ck_assert_int_eq(access(scratch.path, F_OK), 0);

    ck_assert_int_eq(chmod(scratch.path, 0644), 0); /* somebody was careless */
    bench_open(&bench, &scratch);
    ck_assert_uint_eq(mode_of(""), 0600);
    bench_close(&bench);
}
END_TEST

START_TEST(a_closed_database_is_one_file)
{
    struct bench bench;
    bench_open(&bench, &scratch);
    task_unref(create_task(&bench, new_task("a")));
    bench_close(&bench);
    char path[128];
    snprintf(path, sizeof path, "%s-wal", scratch.path);
    ck_assert_int_ne(access(path, F_OK), 0);
    ck_assert_int_eq(scratch_query(&scratch, "SELECT count(*) FROM task"), 1);
}
END_TEST

START_TEST(an_idle_moment_empties_the_log)
{
    enum { COUNT = 100, BYTES = 16384 };
    struct bench bench;
    bench_open(&bench, &scratch);
    char *body = memory_alloc(BYTES);
    for (unsigned i = 0; i < COUNT; i++) {
        struct task *task = new_task("a");
        task_set_request(task, str_slice(body, BYTES));
        task_unref(create_task(&bench, task));
    }
    free(body);
    int64_t give_up_ms = clock_monotonic_ms() + 10000;
    struct stat status = {0};
    while (status.st_size < (off_t)COUNT * BYTES) {
        ck_assert_msg(clock_monotonic_ms() < give_up_ms, "the log was not moved into the file");
        loop_run_once(bench.loop, 10);
        ck_assert_int_eq(stat(scratch.path, &status), 0);
    }
    bench_close(&bench);
}
END_TEST

START_TEST(an_open_that_fails_gives_its_reason)
{
    char path[128];
    snprintf(path, sizeof path, "%s/none/taskgate.db", scratch.folder);
    expect_refused(path, "No such file");
    expect_refused(scratch.folder, "directory");

    FILE *file = fopen(scratch.path, "w");
    ck_assert_ptr_nonnull(file);
    for (unsigned i = 0; i < 1000; i++)
        fputs("this is not a database\n", file);
    fclose(file);
    expect_refused(scratch.path, "not a database");
}
END_TEST

START_TEST(a_broken_table_is_said_with_the_file)
{
    struct bench bench;
    bench_open(&bench, &scratch);
    bench_close(&bench);
    ck_assert_int_eq(scratch_execute(&scratch, "PRAGMA foreign_keys = OFF; DROP TABLE task"), 0);
    expect_refused(scratch.path, "no such table");
}
END_TEST

/* ---- the lock ---- */

/* Opens the database once `go` can be read; exit status 0: it was refused with `said`. Forked
 * while this process has one thread: a lock that another thread held would stay locked. */
static pid_t fork_second_opener(int go, const char *said)
{
    pid_t child = fork();
    if (child != 0)
        return child;
    char byte;
    struct error error = {""};
    bool refused = read(go, &byte, 1) == 1 &&
                   !store_open(&store_sqlite, scratch.path, NULL, NULL, &error) &&
                   strstr(error.message, said);
    _exit(refused ? 0 : 1);
}

START_TEST(a_second_process_is_told_who_has_the_database)
{
    char said[64];
    snprintf(said, sizeof said, "in use by another taskgate process with id %ld", (long)getpid());
    int go[2];
    ck_assert_int_eq(pipe(go), 0);
    pid_t child = fork_second_opener(go[0], said);

    struct bench bench;
    bench_open(&bench, &scratch);
    expect_refused(scratch.path, said); /* two openers in one process are no better */
    char link_path[128];
    snprintf(link_path, sizeof link_path, "%s/link.db", scratch.folder);
    ck_assert_int_eq(symlink(scratch.path, link_path), 0);
    expect_refused(link_path, said);

    int status;
    ck_assert_int_eq(write(go[1], "", 1), 1);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    close(go[0]);
    close(go[1]);
    /* The refused ones have not cost us our locks. */
    task_unref(create_task(&bench, new_task("a")));
    bench_close(&bench);
    bench_open(&bench, &scratch);
    bench_close(&bench);
}
END_TEST

/* No file beside the database holds the lock, so none can be removed to get in. */
START_TEST(the_lock_is_on_the_database_itself)
{
    struct bench bench;
    bench_open(&bench, &scratch);
    char path[128];
    snprintf(path, sizeof path, "%s.lock", scratch.path);
    unlink(path);
    expect_refused(scratch.path, "in use by another taskgate process");
    /* Readers do not meet it. */
    task_unref(create_task(&bench, new_task("a")));
    ck_assert_int_eq(scratch_query(&scratch, "SELECT count(*) FROM task"), 1);
    bench_close(&bench);
}
END_TEST

/* ---- files that go while they are in use ---- */

static void move_file(const char *from_suffix, const char *to_suffix)
{
    char from[128], to[128];
    snprintf(from, sizeof from, "%s%s", scratch.path, from_suffix);
    snprintf(to, sizeof to, "%s%s", scratch.path, to_suffix);
    ck_assert_int_eq(rename(from, to), 0);
}

static void write_file(const char *suffix, const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s%s", scratch.path, suffix);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

static void expect_file(const char *suffix, const char *text)
{
    char path[128], found[64] = "";
    snprintf(path, sizeof path, "%s%s", scratch.path, suffix);
    FILE *file = fopen(path, "r");
    ck_assert_msg(file != NULL, "%s is gone", path);
    found[fread(found, 1, sizeof found - 1, file)] = '\0';
    fclose(file);
    ck_assert_str_eq(found, text);
}

static void wait_for_health(const struct bench *bench, bool healthy)
{
    int64_t give_up_ms = clock_monotonic_ms() + 10000;
    while (store_is_healthy(bench->store) != healthy) {
        ck_assert_msg(clock_monotonic_ms() < give_up_ms, "the store did not notice");
        loop_run_once(bench->loop, 10);
    }
}

static const char *const parts[] = {"", "-wal"};

START_TEST(a_file_that_is_gone_takes_nothing_until_it_is_back)
{
    struct bench bench;
    bench_open(&bench, &scratch);
    task_unref(create_task(&bench, new_task("a")));
    move_file(parts[_i], ".aside");
    ck_assert_int_eq(create_status(&bench, new_task("lost"), &no_limits), STORE_FAILED);
    ck_assert(!store_is_healthy(bench.store));
    move_file(".aside", parts[_i]);
    wait_for_health(&bench, true);
    task_unref(create_task(&bench, new_task("a")));
    bench_close(&bench);
    ck_assert_int_eq(scratch_query(&scratch, "SELECT count(*) FROM task"), 2);
}
END_TEST

START_TEST(an_idle_store_notices_that_its_file_is_gone)
{
    struct bench bench;
    bench_open(&bench, &scratch);
    move_file(parts[_i], ".aside");
    wait_for_health(&bench, false);
    bench_close(&bench);
}
END_TEST

/* The present files belong to another program. */
START_TEST(files_that_took_their_place_are_left_alone)
{
    struct bench bench;
    bench_open(&bench, &scratch);
    task_unref(create_task(&bench, new_task("a")));
    move_file("", ".aside");
    move_file("-wal", ".aside-wal");
    write_file("", "another");
    write_file("-wal", "its log");
    ck_assert_int_eq(create_status(&bench, new_task("lost"), &no_limits), STORE_FAILED);
    bench_close(&bench);
    expect_file("", "another");
    expect_file("-wal", "its log");
}
END_TEST

/* ---- versions ---- */

static void make_version(int version)
{
    sqlite3 *handle = NULL;
    ck_assert_int_eq(sqlite3_open(scratch.path, &handle), SQLITE_OK);
    for (int i = 0; i < version; i++)
        ck_assert_int_eq(sqlite3_exec(handle, migration_scripts[i], NULL, NULL, NULL), SQLITE_OK);
    char sql[128];
    snprintf(sql, sizeof sql, "PRAGMA user_version = %d; PRAGMA application_id = %d", version,
             version > 0 ? MIGRATIONS_APPLICATION_ID : 0);
    ck_assert_int_eq(sqlite3_exec(handle, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(handle);
}

START_TEST(every_older_version_is_brought_up)
{
    make_version(_i);
    struct bench bench;
    bench_open(&bench, &scratch);
    struct task *task = create_task(&bench, new_task("a"));
    struct answer answer = {0};
    audit_of(&bench, task->id, &answer);
    ck_assert_str_eq(answer.audit_text, "create >pending client a \n");
    answer_finish(&answer);
    store_pair_put(bench.store, STR("s"), STR("1"), STR("2"), 5, bench_call(bench.loop, &answer));
    bench_wait(bench.loop, &answer);
    ck_assert_int_eq(answer.status, STORE_OK);
    answer_finish(&answer);
    bench_close(&bench);
    ck_assert_int_eq(scratch_query(&scratch, "PRAGMA user_version"), migration_count);
    ck_assert_int_eq(scratch_query(&scratch, "PRAGMA application_id"), 0x74676462);
    task_unref(task);
}
END_TEST

START_TEST(tasks_of_an_older_version_are_kept)
{
    struct bench bench;
    bench_open(&bench, &scratch);
    struct task *task = new_task("a");
    task_set_request(task, STR("{\"method\":\"tools/call\",\"params\":{\"name\":\"x\",\"task\":{},"
                               "\"_meta\":{\"progressToken\":1,\"n\":1.50},\"force\":[1]}}"));
    task = create_task(&bench, task);
    bench_close(&bench);
    /* As version 2 left it: without sessions, outbox and sign-ins. */
    ck_assert_int_eq(
        scratch_execute(&scratch, SCRATCH_WITHOUT_REPLICAS SCRATCH_BACK_TO_18
                        "DROP TABLE session; DROP TABLE pair; DROP TABLE outbox_target;"
                        "DROP TABLE sign_in; DROP TABLE outbox_thread;"
                        "DROP TABLE outbox_delivery; DROP TABLE outbox_notice;"
                        "ALTER TABLE task DROP COLUMN client_name;"
                        "ALTER TABLE task DROP COLUMN client_version;"
                        "ALTER TABLE task DROP COLUMN promoted;"
                        "ALTER TABLE task DROP COLUMN retention_ms;"
                        "ALTER TABLE task DROP COLUMN expired_retention_ms;"
                        "ALTER TABLE task DROP COLUMN terms;"
                        "ALTER TABLE task DROP COLUMN votes;"
                        "ALTER TABLE task DROP COLUMN rule;"
                        "ALTER TABLE task DROP COLUMN policy_digest;"
                        "ALTER TABLE task DROP COLUMN owner_email;"
                        "ALTER TABLE task DROP COLUMN maker;"
                        "ALTER TABLE task DROP COLUMN started_ms;"
                        "ALTER TABLE task DROP COLUMN brief;"
                        "ALTER TABLE task DROP COLUMN promised;"
                        "DROP TABLE audit; DROP TABLE audit_kept;"
                        "DROP TABLE audit_anchor;"
                        "ALTER TABLE task DROP COLUMN request_digest;"
                        "ALTER TABLE task DROP COLUMN headers_digest;"
                        "ALTER TABLE task DROP COLUMN refused_credentials;"
                        "ALTER TABLE task_request DROP COLUMN meta;"
                        "ALTER TABLE task_request DROP COLUMN other_params;"
                        "ALTER TABLE task_request DROP COLUMN redacted;"
                        "ALTER TABLE task_request DROP COLUMN mirrored_headers;"
                        "PRAGMA user_version = 2"),
        SQLITE_OK);
    ck_assert_int_eq(scratch_execute(&scratch, migration_scripts[1]), SQLITE_OK); /* the trail */
    bench_open(&bench, &scratch);
    struct task *read = get_task(&bench, task->id);
    ck_assert_str_eq(read->request, task->request);
    ck_assert_str_eq(read->client_name, "");
    ck_assert_str_eq(read->request_digest, "");
    ck_assert_str_eq(read->owner_email, "");
    ck_assert_str_eq(read->maker, "");
    ck_assert_str_eq(read->shown, "");
    ck_assert_str_eq(read->trace, "");
    ck_assert_str_eq(read->meta, "{\"n\":1.50}");
    ck_assert_str_eq(read->other_params, "{\"force\":[1]}");
    ck_assert(!read->promoted);
    bench_close(&bench);
    task_unref(read);
    task_unref(task);
}
END_TEST

START_TEST(a_failed_migration_leaves_the_old_version)
{
    make_version(2);
    ck_assert_int_eq(scratch_execute(&scratch, "CREATE TABLE pair (x)"), SQLITE_OK);
    expect_refused(scratch.path, "from version 2 to 3");
    ck_assert_int_eq(scratch_query(&scratch, "PRAGMA user_version"), 2);
    ck_assert_int_eq(
        scratch_query(&scratch, "SELECT count(*) FROM sqlite_schema WHERE name = 'session'"), 0);
}
END_TEST

START_TEST(newer_and_foreign_databases_are_left_alone)
{
    struct bench bench;
    bench_open(&bench, &scratch);
    bench_close(&bench);
    scratch_execute(&scratch, "PRAGMA user_version = 99");
    expect_refused(scratch.path, "schema version 99");
    ck_assert_int_eq(scratch_query(&scratch, "PRAGMA user_version"), 99);

    unlink(scratch.path);
    scratch_execute(&scratch, "CREATE TABLE contacts (name)");
    expect_refused(scratch.path, "another program");
    ck_assert_int_eq(scratch_query(&scratch, "SELECT count(*) FROM sqlite_schema"), 1);
}
END_TEST

/* ---- killed in the middle ---- */

#define IN_FLIGHT 40

static int acknowledgements;

/* The child's report of a create: the id, once it is answered. */
static void acknowledge(void *context, const struct store_reply *reply)
{
    size_t *answered = context;
    if (reply->status == STORE_OK &&
        write(acknowledgements, reply->task->id, TASK_ID_BYTES) != TASK_ID_BYTES)
        _exit(2);
    ++*answered;
}

static void create_for_ever(void)
{
    struct bench bench;
    size_t asked = 0, answered = 0;
    bench_open(&bench, &scratch);
    for (;;) {
        while (asked - answered < IN_FLIGHT) {
            store_task_create(bench.store, new_task("a"), &no_limits,
                              (struct store_call){bench.loop, acknowledge, &answered});
            asked++;
        }
        loop_run_once(bench.loop, 1000);
    }
}

static bool is_stored(struct bench *bench, const char *id)
{
    struct answer answer = {0};
    store_task_get(bench->store, str_from(id), bench_call(bench->loop, &answer));
    bench_wait(bench->loop, &answer);
    bool stored = answer.status == STORE_OK && answer.task->state == TASK_PENDING;
    answer_finish(&answer);
    return stored;
}

START_TEST(acknowledged_tasks_survive_kill_9)
{
    const unsigned enough = 300 + 211 * (unsigned)_i; /* killed at different moments */
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        acknowledgements = ends[1];
        create_for_ever();
    }
    close(ends[1]);
    char(*ids)[TASK_ID_BYTES] = memory_alloc(100000 * sizeof *ids);
    size_t count = 0;
    while (read(ends[0], ids[count], TASK_ID_BYTES) == TASK_ID_BYTES) {
        if (++count == enough)
            kill(child, SIGKILL);
        ck_assert_uint_lt(count, 100000);
    }
    close(ends[0]);
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    ck_assert_uint_ge(count, enough);

    struct bench bench;
    bench_open(&bench, &scratch); /* the lock died with its holder */
    for (size_t i = 0; i < count; i++)
        ck_assert_msg(is_stored(&bench, ids[i]), "%s was acknowledged and is lost", ids[i]);
    bench_close(&bench);
    ck_assert_int_eq(scratch_query(&scratch, "SELECT count(*) FROM pragma_integrity_check"
                                             " WHERE integrity_check = 'ok'"),
                     1);
    ck_assert_int_eq(scratch_query(&scratch, "SELECT count(*) FROM pragma_foreign_key_check"), 0);
    /* A task without its request or its audit entry would be half a transaction. */
    int64_t tasks = scratch_query(&scratch, "SELECT count(*) FROM task");
    ck_assert_int_ge(tasks, (int64_t)count);
    ck_assert_int_eq(scratch_query(&scratch, "SELECT count(*) FROM task_request"), tasks);
    ck_assert_int_eq(scratch_query(&scratch, "SELECT count(*) FROM audit"), tasks);
    free(ids);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store files");
    TCase *tests = tcase_create("files");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, every_file_is_private_whatever_the_umask);
    tcase_add_test(tests, a_closed_database_is_one_file);
    tcase_add_test(tests, an_idle_moment_empties_the_log);
    tcase_add_test(tests, an_open_that_fails_gives_its_reason);
    tcase_add_test(tests, a_broken_table_is_said_with_the_file);
    tcase_add_test(tests, a_second_process_is_told_who_has_the_database);
    tcase_add_test(tests, the_lock_is_on_the_database_itself);
    tcase_add_loop_test(tests, a_file_that_is_gone_takes_nothing_until_it_is_back, 0, 2);
    tcase_add_loop_test(tests, an_idle_store_notices_that_its_file_is_gone, 0, 2);
    tcase_add_test(tests, files_that_took_their_place_are_left_alone);
    tcase_add_loop_test(tests, every_older_version_is_brought_up, 0, migration_count + 1);
    tcase_add_test(tests, tasks_of_an_older_version_are_kept);
    tcase_add_test(tests, a_failed_migration_leaves_the_old_version);
    tcase_add_test(tests, newer_and_foreign_databases_are_left_alone);
    tcase_add_loop_test(tests, acknowledged_tasks_survive_kill_9, 0, 4);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
