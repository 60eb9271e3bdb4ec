/* The store on a disk that fails: nothing is visible that is not durable, and it recovers. */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fault_vfs.h"
#include "harness.h"
#include "taskgate/core/clock.h"
#include "taskgate/store/maintenance.h"

static struct scratch scratch;
static struct bench bench;

static void set_up(void)
{
    fault_vfs_install();
    scratch_init(&scratch);
    bench_open(&bench, &scratch);
}

static void tear_down(void)
{
    fault_vfs_set(FAULT_NONE, 0);
    bench_close(&bench);
    scratch_finish(&scratch);
}

static const enum fault write_faults[] = {FAULT_DISK_FULL, FAULT_WRITE, FAULT_SYNC};
static const struct task_change approve = {.to = TASK_APPROVED, .by = "alice"};

static void count_notice(void *context, struct task *task, bool created)
{
    (void)task, (void)created;
    ++*(size_t *)context;
}

/* Waits for the store's own probe to find that the disk works again. */
static void wait_until_healthy(void)
{
    int64_t give_up_ms = clock_monotonic_ms() + 10000;
    while (!store_is_healthy(bench.store)) {
        ck_assert_msg(clock_monotonic_ms() < give_up_ms, "the store has not recovered");
        loop_run_once(bench.loop, 10);
    }
}

START_TEST(a_failing_disk_shows_nothing_and_is_survived)
{
    size_t noticed = 0;
    struct task *before = create_task(&bench, new_task("a"));
    store_observe(bench.store, bench.loop, count_notice, &noticed);
    ck_assert(store_is_healthy(bench.store));

    fault_vfs_set(write_faults[_i], 0);
    struct task *lost = task_ref(new_task("a"));
    ck_assert_int_eq(create_status(&bench, lost, &no_limits), STORE_FAILED);
    ck_assert_int_gt(fault_vfs_failures(), 0);
    ck_assert(!store_is_healthy(bench.store));
    ck_assert_int_eq(change_status(&bench, before->id, &approve), STORE_FAILED);
    ck_assert_uint_eq(noticed, 0);
    ck_assert_int_eq(store_pending_count(bench.store), 1);

    fault_vfs_set(FAULT_NONE, 0);
    /* The next call tries again by itself. */
    ck_assert_int_eq(change_status(&bench, before->id, &approve), STORE_OK);
    ck_assert(store_is_healthy(bench.store));
    ck_assert_uint_eq(noticed, 1);
    bench_close(&bench);
    bench_open(&bench, &scratch);
    struct answer answer = {0};
    store_task_get(bench.store, str_from(lost->id), bench_call(bench.loop, &answer));
    bench_wait(bench.loop, &answer);
    ck_assert_int_eq(answer.status, STORE_NOT_FOUND);
    answer_finish(&answer);
    struct task *read = get_task(&bench, before->id);
    ck_assert_int_eq(read->state, TASK_APPROVED);
    task_unref(read);
    task_unref(lost);
    task_unref(before);
}
END_TEST

START_TEST(the_store_finds_by_itself_that_the_disk_works_again)
{
    fault_vfs_set(FAULT_DISK_FULL, 0);
    ck_assert_int_eq(create_status(&bench, new_task("a"), &no_limits), STORE_FAILED);
    ck_assert(!store_is_healthy(bench.store));
    fault_vfs_set(FAULT_NONE, 0);
    wait_until_healthy();
    ck_assert_int_eq(create_status(&bench, new_task("a"), &no_limits), STORE_OK);
}
END_TEST

START_TEST(limits_stay_exact_through_a_failure)
{
    const struct store_limits limits = {2, 100, INT64_MAX, INT64_MAX};
    ck_assert_int_eq(create_status(&bench, new_task("a"), &limits), STORE_OK);
    fault_vfs_set(FAULT_SYNC, 0);
    for (unsigned i = 0; i < 5; i++)
        ck_assert_int_eq(create_status(&bench, new_task("a"), &limits), STORE_FAILED);
    fault_vfs_set(FAULT_NONE, 0);
    ck_assert_int_eq(create_status(&bench, new_task("a"), &limits), STORE_OK);
    ck_assert_int_eq(create_status(&bench, new_task("a"), &limits), STORE_LIMIT_PRINCIPAL);
    ck_assert_int_eq(store_pending_count(bench.store), 2);
}
END_TEST

START_TEST(deadlines_that_pass_while_the_disk_fails_are_applied_after)
{
    struct task *task = new_task("a");
    task->decide_by_ms = clock_now_ms() + 1000; /* the disk fails long before */
    int64_t decide_by_ms = task->decide_by_ms;
    task = create_task(&bench, task);
    size_t noticed = 0;
    store_observe(bench.store, bench.loop, count_notice, &noticed);
    fault_vfs_set(FAULT_DISK_FULL, 0);
    ck_assert_int_eq(create_status(&bench, new_task("a"), &no_limits), STORE_FAILED);
    while (clock_now_ms() < decide_by_ms + 20)
        loop_run_once(bench.loop, 10);
    ck_assert_uint_eq(noticed, 0);
    /* Past its deadline it cannot be approved, with or without a disk. */
    ck_assert_int_eq(change_status(&bench, task->id, &approve), STORE_FAILED);
    fault_vfs_set(FAULT_NONE, 0);
    bench_wait_count(bench.loop, &noticed, 1);
    struct task *read = get_task(&bench, task->id);
    ck_assert_int_eq(read->state, TASK_EXPIRED);
    task_unref(read);
    task_unref(task);
}
END_TEST

/* Fails the n-th write or sync of a fixed script, for every n until the script runs through. Every
 * change that was answered OK is there after a restart; every other one left no trace. */
static void run_script(enum fault fault, int spare, bool *unhurt)
{
    struct task *old = create_task(&bench, new_task("a"));
    struct task *new_one = task_ref(new_task("a"));
    fault_vfs_set(fault, spare);
    enum store_status created = create_status(&bench, new_one, &no_limits);
    enum store_status changed = change_status(&bench, old->id, &approve);
    *unhurt = fault_vfs_failures() == 0;
    fault_vfs_set(FAULT_NONE, 0);
    bench_close(&bench);
    bench_open(&bench, &scratch);

    struct answer answer = {0};
    store_task_get(bench.store, str_from(new_one->id), bench_call(bench.loop, &answer));
    bench_wait(bench.loop, &answer);
    ck_assert_int_eq(answer.status, created == STORE_OK ? STORE_OK : STORE_NOT_FOUND);
    answer_finish(&answer);
    struct task *read = get_task(&bench, old->id);
    ck_assert_int_eq(read->state, changed == STORE_OK ? TASK_APPROVED : TASK_PENDING);
    ck_assert(created == STORE_OK || created == STORE_FAILED);
    ck_assert(changed == STORE_OK || changed == STORE_FAILED);
    task_unref(read);
    task_unref(old);
    task_unref(new_one);
}

START_TEST(a_fault_at_every_write_and_sync_leaves_all_or_nothing)
{
    bool unhurt = false;
    int spare = 0;
    for (; !unhurt; spare++) {
        ck_assert_int_lt(spare, 500);
        run_script(write_faults[_i], spare, &unhurt);
    }
    ck_assert_int_gt(spare, 2); /* or the fault was never reached */
    ck_assert_int_eq(scratch_query(&scratch, "SELECT count(*) FROM pragma_integrity_check"
                                             " WHERE integrity_check = 'ok'"),
                     1);
}
END_TEST

/* ---- a start ---- */

START_TEST(a_new_store_waits_for_the_disk_only_a_few_times)
{
    bench_close(&bench);
    unlink(scratch.path);
    fault_vfs_set(FAULT_NONE, 0);
    bench_open(&bench, &scratch);
    ck_assert_int_gt(fault_vfs_syncs(), 0);
    ck_assert_int_le(fault_vfs_syncs(), 12);
}
END_TEST

/* ---- a commit whose sync has failed ---- */

static void copy_file(const char *suffix)
{
    char command[300];
    snprintf(command, sizeof command, "cp '%s%s' '%s/killed.db%s'", scratch.path, suffix,
             scratch.folder, suffix);
    ck_assert_int_eq(system(command), 0);
}

/* As a process finds the files that starts after this one was killed now. */
static int64_t query_after_a_kill(const char *sql)
{
    struct scratch killed = scratch;
    copy_file("");
    copy_file("-wal");
    snprintf(killed.path, sizeof killed.path, "%s/killed.db", scratch.folder);
    return scratch_query(&killed, sql);
}

static void create(struct task *task, struct answer *answer)
{
    store_task_create(bench.store, task, &no_limits, bench_call(bench.loop, answer));
    bench_wait(bench.loop, answer);
}

START_TEST(nothing_is_in_the_log_of_a_change_that_was_answered_as_none)
{
    struct answer answer = {0};
    task_unref(create_task(&bench, new_task("a")));
    fault_vfs_set(FAULT_ONE_SYNC, 0);
    create(new_task("b"), &answer);
    ck_assert_int_eq(answer.status, STORE_FAILED);
    ck_assert(!answer.is_unsure);
    ck_assert_int_eq(query_after_a_kill("SELECT count(*) FROM task WHERE owner = 'b'"), 0);
    ck_assert_int_eq(query_after_a_kill("SELECT count(*) FROM task WHERE owner = 'a'"), 1);
    answer_finish(&answer);
}
END_TEST

START_TEST(a_commit_of_which_nothing_is_known_is_said_to_be_such)
{
    struct answer answer = {0};
    fault_vfs_set(FAULT_SYNC, 0);
    create(new_task("b"), &answer);
    ck_assert_int_eq(answer.status, STORE_FAILED);
    ck_assert(answer.is_unsure);
    /* A power failure alone can bring it back. */
    ck_assert_int_eq(query_after_a_kill("SELECT count(*) FROM task WHERE owner = 'b'"), 0);
    answer_finish(&answer);

    fault_vfs_set(FAULT_DISK_FULL, 0);
    create(new_task("b"), &answer);
    ck_assert_int_eq(answer.status, STORE_FAILED);
    ck_assert(!answer.is_unsure);
    answer_finish(&answer);
}
END_TEST

START_TEST(files_that_are_replaced_during_the_sync_are_missed)
{
    char aside[128];
    struct answer answer = {0};
    snprintf(aside, sizeof aside, "%s/aside.db", scratch.folder);
    fault_vfs_set(FAULT_HOLD_SYNC, 0);
    store_task_create(bench.store, new_task("b"), &no_limits, bench_call(bench.loop, &answer));
    while (fault_vfs_failures() == 0)
        loop_run_once(bench.loop, 1);
    ck_assert_int_eq(rename(scratch.path, aside), 0);
    fault_vfs_set(FAULT_NONE, 0);
    bench_wait(bench.loop, &answer);
    ck_assert_int_eq(answer.status, STORE_FAILED);
    ck_assert(answer.is_unsure);
    ck_assert(!store_is_healthy(bench.store));
    answer_finish(&answer);
    ck_assert_int_eq(rename(aside, scratch.path), 0);
}
END_TEST

/* ---- a backup while no gateway runs ---- */

struct copying {
    struct store_site from, to;
    struct error error;
    bool done;
};

static void *copy_aside(void *context)
{
    struct copying *copying = context;
    copying->done = store_backup(&copying->from, &copying->to, &copying->error);
    return NULL;
}

/* As a gateway that starts, writes and ends; beside the file system with the faults. */
static void write_to_all_pages(void)
{
    sqlite3 *handle = NULL;
    ck_assert_int_eq(sqlite3_open_v2(scratch.path, &handle, SQLITE_OPEN_READWRITE, "unix"),
                     SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(handle, "UPDATE filler SET n = 2", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(handle);
}

START_TEST(a_backup_is_of_one_moment_when_a_gateway_starts_meanwhile)
{
    struct scratch copy = scratch;
    pthread_t thread;
    bench_close(&bench);
    ck_assert_int_eq(
        scratch_execute(&scratch,
                        "CREATE TABLE filler (n INTEGER, text TEXT); WITH RECURSIVE c (i) AS"
                        " (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 500)"
                        " INSERT INTO filler SELECT 1, hex(zeroblob(2000)) FROM c;"),
        SQLITE_OK);
    snprintf(copy.path, sizeof copy.path, "%s/copy.db", scratch.folder);
    struct copying copying = {.from = scratch_site(&scratch), .to = {&store_sqlite, copy.path}};
    fault_vfs_set(FAULT_HOLD_READ, 200); /* in the middle of them */
    ck_assert_int_eq(pthread_create(&thread, NULL, copy_aside, &copying), 0);
    while (fault_vfs_failures() == 0)
        poll(NULL, 0, 1);
    write_to_all_pages();
    fault_vfs_set(FAULT_NONE, 0);
    pthread_join(thread, NULL);
    ck_assert_msg(copying.done, "%s", copying.error.message);
    ck_assert_int_eq(scratch_query(&copy, "SELECT count(DISTINCT n) FROM filler"), 1);
    ck_assert_int_eq(scratch_query(&copy, "SELECT count(*) FROM filler"), 500);
    bench_open(&bench, &scratch);
}
END_TEST

START_TEST(a_database_that_cannot_be_read_answers_failed)
{
    struct task *task = create_task(&bench, new_task("a"));
    bench_close(&bench); /* empties SQLite's cache */
    bench_open(&bench, &scratch);
    fault_vfs_set(FAULT_READ, 0);
    struct answer answer = {0};
    store_task_list(bench.store, &(struct store_task_query){.limit = 5},
                    bench_call(bench.loop, &answer));
    bench_wait(bench.loop, &answer);
    ck_assert_int_eq(answer.status, STORE_FAILED);
    ck_assert_uint_eq(answer.task_count, 0);
    answer_finish(&answer);
    ck_assert(!store_is_healthy(bench.store));
    fault_vfs_set(FAULT_NONE, 0);
    struct task *read = get_task(&bench, task->id);
    ck_assert_int_eq(read->state, TASK_PENDING);
    wait_until_healthy();
    task_unref(read);
    task_unref(task);
}
END_TEST

START_TEST(a_disk_that_fails_at_the_start_is_said)
{
    bench_close(&bench);
    struct error error = {""};
    fault_vfs_set(FAULT_READ, 0);
    ck_assert_ptr_null(store_open(&store_sqlite, scratch.path, NULL, NULL, &error));
    ck_assert_ptr_nonnull(strstr(error.message, "disk I/O error"));
    fault_vfs_set(FAULT_NONE, 0);
    bench_open(&bench, &scratch);
}
END_TEST

/* ---- commits ---- */

START_TEST(nothing_is_visible_before_it_is_durable)
{
    size_t noticed = 0;
    store_observe(bench.store, bench.loop, count_notice, &noticed);
    fault_vfs_set(FAULT_HOLD_SYNC, 0);
    struct answer answer = {0};
    store_task_create(bench.store, new_task("a"), &no_limits, bench_call(bench.loop, &answer));
    int64_t give_up_ms = clock_monotonic_ms() + 10000;
    while (fault_vfs_failures() == 0) {
        ck_assert_msg(clock_monotonic_ms() < give_up_ms, "no sync was asked for");
        loop_run_once(bench.loop, 1);
    }
    /* The store's thread now waits in the sync: all its earlier messages have arrived. */
    for (unsigned i = 0; i < 20; i++)
        loop_run_once(bench.loop, 1);
    ck_assert(!answer.arrived);
    ck_assert_uint_eq(noticed, 0);
    ck_assert_int_eq(store_pending_count(bench.store), 0);
    fault_vfs_set(FAULT_NONE, 0);
    bench_wait(bench.loop, &answer);
    ck_assert_int_eq(answer.status, STORE_OK);
    ck_assert_uint_eq(noticed, 1);
    answer_finish(&answer);
}
END_TEST

#define WAITING 256 /* four full batches */

START_TEST(waiting_operations_are_committed_together)
{
    fault_vfs_set(FAULT_HOLD_SYNC, 0);
    struct answer first = {0};
    store_task_create(bench.store, new_task("a"), &no_limits, bench_call(bench.loop, &first));
    while (fault_vfs_failures() == 0)
        loop_run_once(bench.loop, 1);
    static struct answer answers[WAITING];
    for (unsigned i = 0; i < WAITING; i++)
        store_task_create(bench.store, new_task("a"), &no_limits,
                          bench_call(bench.loop, &answers[i]));
    fault_vfs_set(FAULT_NONE, 0);
    for (unsigned i = 0; i < WAITING; i++) {
        bench_wait(bench.loop, &answers[i]);
        ck_assert_int_eq(answers[i].status, STORE_OK);
    }
    ck_assert_int_ge(fault_vfs_syncs(), WAITING / 64);
    ck_assert_int_le(fault_vfs_syncs(), 2 * WAITING / 64);
    for (unsigned i = 0; i < WAITING; i++)
        answer_finish(&answers[i]);
    answer_finish(&first);
}
END_TEST

START_TEST(a_vote_and_the_claim_behind_it_are_one_commit)
{
    struct task *task = create_task(&bench, new_task("a"));
    struct answer voted = {0}, claimed = {0};
    const struct store_claim claim = {.change = {.to = TASK_EXECUTING},
                                      .actor = {"gateway", "taskgate"},
                                      .call = bench_call(bench.loop, &claimed)};
    fault_vfs_set(FAULT_NONE, 0);
    cast_vote(&bench, task->id, "alice", (struct store_vote){.claim = &claim}, &voted);
    bench_wait(bench.loop, &claimed);
    ck_assert_int_eq(voted.status, STORE_OK);
    ck_assert_int_eq(voted.task->state, TASK_APPROVED);
    ck_assert_int_eq(claimed.status, STORE_OK);
    ck_assert_int_eq(claimed.task->state, TASK_EXECUTING);
    ck_assert_int_eq(fault_vfs_syncs(), 1);
    answer_finish(&voted);
    answer_finish(&claimed);
    task_unref(task);
}
END_TEST

START_TEST(reading_asks_for_no_sync)
{
    struct task *task = create_task(&bench, new_task("a"));
    fault_vfs_set(FAULT_NONE, 0);
    for (unsigned i = 0; i < 50; i++)
        task_unref(get_task(&bench, task->id));
    ck_assert_int_eq(fault_vfs_syncs(), 0);
    task_unref(task);
}
END_TEST

/* Cases are run one by one, too: of some of these tests a mistake makes each wait its whole time.
 */
static TCase *add_case(Suite *suite, const char *name)
{
    TCase *tests = tcase_create(name);
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    suite_add_tcase(suite, tests);
    return tests;
}

int main(void)
{
    Suite *suite = suite_create("store faults");
    TCase *disk = add_case(suite, "disk");
    tcase_add_loop_test(disk, a_failing_disk_shows_nothing_and_is_survived, 0, 3);
    tcase_add_test(disk, the_store_finds_by_itself_that_the_disk_works_again);
    tcase_add_test(disk, limits_stay_exact_through_a_failure);
    TCase *faults = add_case(suite, "faults");
    tcase_add_test(faults, deadlines_that_pass_while_the_disk_fails_are_applied_after);
    tcase_add_loop_test(faults, a_fault_at_every_write_and_sync_leaves_all_or_nothing, 0, 3);
    tcase_add_test(faults, a_new_store_waits_for_the_disk_only_a_few_times);
    tcase_add_test(faults, nothing_is_in_the_log_of_a_change_that_was_answered_as_none);
    tcase_add_test(faults, a_commit_of_which_nothing_is_known_is_said_to_be_such);
    tcase_add_test(faults, files_that_are_replaced_during_the_sync_are_missed);
    tcase_add_test(faults, a_backup_is_of_one_moment_when_a_gateway_starts_meanwhile);
    tcase_add_test(faults, a_database_that_cannot_be_read_answers_failed);
    tcase_add_test(faults, a_disk_that_fails_at_the_start_is_said);
    TCase *commits = add_case(suite, "commits");
    tcase_add_test(commits, nothing_is_visible_before_it_is_durable);
    tcase_add_test(commits, a_vote_and_the_claim_behind_it_are_one_commit);
    tcase_add_test(commits, reading_asks_for_no_sync);
    TCase *together = add_case(suite, "together");
    tcase_add_test(together, waiting_operations_are_committed_together);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
