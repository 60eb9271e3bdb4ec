/* Replicas that come, go, have one name, or find their database without commits that it had. Two
 * stores stand on one SQLite file, without its lock for one process. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

#include "backend.h"
#include "harness.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/memory.h"
#include "taskgate/store/blocks.h"
#include "taskgate/store/replicas.h"

/* In the place of the C library's: both stores may open the file. */
int flock(int fd, int operation)
{
    (void)fd, (void)operation;
    return 0;
}

static atomic_int_fast64_t ahead;
static atomic_bool is_down;

static int64_t look(struct database *database, enum backend_fact fact)
{
    return fact == LOOK_AHEAD_MS ? atomic_load(&ahead) : store_sqlite.look(database, fact);
}

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER; /* held: no transaction begins */

static bool begin(struct database *database, bool writes)
{
    pthread_mutex_lock(&gate);
    pthread_mutex_unlock(&gate);
    return !atomic_load(&is_down) && store_sqlite.begin(database, writes);
}

static atomic_bool commits_fail;

static enum commit_result commit(struct database *database, struct error *error)
{
    if (!atomic_load(&commits_fail))
        return store_sqlite.commit(database, error);
    error_set(error, "the disk is full");
    return COMMIT_NOTHING;
}

static struct store_backend shared;
static struct scratch scratch;
static struct bench one, two;

static struct bench join_as(const char *id)
{
    struct error error = {""};
    struct bench bench = {.scratch = &scratch, .loop = loop_create(&error)};
    ck_assert_msg(bench.loop != NULL, "%s", error.message);
    bench.store = store_open(&shared, scratch.path, id, NULL, &error);
    ck_assert_msg(bench.store != NULL, "%s", error.message);
    return bench;
}

static void set_up(void)
{
    shared = store_sqlite;
    shared.is_shared = true;
    shared.look = look;
    shared.begin = begin;
    shared.commit = commit;
    atomic_store(&ahead, 0);
    atomic_store(&is_down, false);
    atomic_store(&commits_fail, false);
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

/* ---- what they know of each other ---- */

struct known {
    size_t count;
    char text[256]; /* of the last one: id, epoch, address, state */
};

static bool keep_peer(void *context, const struct store_peer *peer)
{
    struct known *known = context;
    known->count++;
    snprintf(known->text, sizeof known->text, "%s %d %s %s", peer->id, (int)peer->epoch,
             peer->address, store_peer_state_name(peer->state));
    return true;
}

/* Each look has a heartbeat of its own before it. */
static void wait_for_peer(struct bench *bench, const char *text)
{
    int64_t give_up_ms = clock_monotonic_ms() + 20000;
    struct known known;
    do {
        store_announce(bench->store, NULL);
        loop_run_once(bench->loop, 20);
        known = (struct known){.count = 0};
        store_visit_peers(bench->store, keep_peer, &known);
        ck_assert_msg(clock_monotonic_ms() < give_up_ms, "%s, not %s", known.text, text);
    } while (known.count != 1 || strcmp(known.text, text) != 0);
}

START_TEST(each_knows_the_others)
{
    store_announce(one.store, "http://h:1");
    wait_for_peer(&two, "one 1 http://h:1 alive");
    ck_assert_str_eq(store_replica_id(two.store), "two");
    ck_assert_int_eq(store_replica_epoch(two.store), 1);
    store_stop(one.store);
    atomic_store(&ahead, 11000);
    wait_for_peer(&two, "one 1 http://h:1 silent");
    atomic_store(&ahead, 60000);
    wait_for_peer(&two, "one 2 http://h:1 gone");
    atomic_store(&ahead, 4000000);
    store_announce(two.store, NULL);
    struct known known = {.count = 1};
    int64_t give_up_ms = clock_monotonic_ms() + 20000;
    while (known.count > 0 && clock_monotonic_ms() < give_up_ms) {
        store_announce(two.store, NULL);
        loop_run_once(two.loop, 20);
        known.count = 0;
        store_visit_peers(two.store, keep_peer, &known);
    }
    ck_assert_uint_eq(known.count, 0);
}
END_TEST

START_TEST(one_that_says_goodbye_is_gone)
{
    wait_for_peer(&two, "one 1  alive");
    bench_close(&one);
    wait_for_peer(&two, "one 1  gone");
    one = join_as("one");
    ck_assert_int_eq(store_condition(one.store), STORE_WORKS);
    wait_for_peer(&two, "one 2  alive");
}
END_TEST

/* ---- one name ---- */

static void note(void *context)
{
    *(bool *)context = true;
}

static void wait_for_condition(struct bench *bench, enum store_condition condition)
{
    int64_t give_up_ms = clock_monotonic_ms() + 20000;
    while (store_condition(bench->store) != condition) {
        ck_assert_msg(clock_monotonic_ms() < give_up_ms, "%d", (int)condition);
        loop_run_once(bench->loop, 20);
    }
}

/* A heartbeat of the first may come at any time: its first one as well, on a busy machine. */
START_TEST(the_later_of_two_with_one_name_yields)
{
    static const char told[] = "SELECT alive_ms FROM replica WHERE id = 'one'";
    bool has_yielded = false;
    store_stop(two.store); /* it would fence the first, which is silent for a minute below */
    int64_t before = scratch_query(&scratch, told);
    struct bench late = join_as("one");
    store_observe_yield(late.store, late.loop, note, &has_yielded);
    ck_assert_int_eq(store_condition(late.store), STORE_NOT_REACHED);
    ck_assert_int_eq(create_status(&late, new_task("a"), &no_limits), STORE_FAILED);
    ck_assert(!has_yielded || scratch_query(&scratch, told) > before);
    store_announce(one.store, NULL); /* it tells of itself */
    int64_t give_up_ms = clock_monotonic_ms() + 20000;
    while (!has_yielded) {
        ck_assert(clock_monotonic_ms() < give_up_ms);
        loop_run_once(late.loop, 20);
    }
    atomic_store(&ahead, 60000); /* also when that one is silent later */
    ck_assert_int_eq(create_status(&late, new_task("a"), &no_limits), STORE_FAILED);
    bench_close(&late);
    ck_assert_int_eq(store_replica_epoch(one.store), 1);
    task_unref(create_task(&one, new_task("a")));
}
END_TEST

START_TEST(one_that_was_killed_comes_back_after_a_heartbeat)
{
    store_stop(one.store);
    struct bench again = join_as("one");
    ck_assert_int_eq(create_status(&again, new_task("a"), &no_limits), STORE_FAILED);
    atomic_store(&ahead, 6600);
    wait_for_condition(&again, STORE_WORKS);
    ck_assert_int_eq(store_replica_epoch(again.store), 2);
    task_unref(create_task(&again, new_task("a")));
    bench_close(&again);
}
END_TEST

/* A process ends its loops before its store, and the goodbye catches up with the others. */
START_TEST(one_that_leaves_tells_no_loop_of_the_others)
{
    struct bench leaving = join_as("leaving");
    struct heard heard = {.count = 0};
    store_observe(leaving.store, leaving.loop, hear, &heard);
    store_stop(leaving.store);
    task_unref(create_task(&one, new_task("a")));
    loop_destroy(leaving.loop);
    store_close(leaving.store);
    ck_assert_uint_eq(heard.count, 0);
    heard_finish(&heard);
}
END_TEST

/* ---- a database that is not there ---- */

START_TEST(a_database_that_is_not_reached_at_the_start_is_tried_again)
{
    atomic_store(&is_down, true);
    bench_close(&two);
    two = join_as("two");
    ck_assert_int_eq(store_condition(two.store), STORE_NOT_REACHED);
    ck_assert_int_eq(create_status(&two, new_task("a"), &no_limits), STORE_FAILED);
    atomic_store(&is_down, false);
    atomic_store(&ahead, 60000); /* nobody said goodbye for it */
    wait_for_condition(&two, STORE_WORKS);
    task_unref(create_task(&two, new_task("a")));
    atomic_store(&is_down, true);
    wait_for_condition(&two, STORE_OUT);
}
END_TEST

/* ---- commits that are missing ---- */

static const struct task_change approve = {.to = TASK_APPROVED, .by = "alice"};
static const struct task_change execute = {.to = TASK_EXECUTING};
static const struct task_change complete = {
    .to = TASK_COMPLETED, .outcome = TASK_OUTCOME_RESULT, .outcome_text = {"{}", 2}};

static char *begin_execution(struct bench *bench)
{
    struct task *task = create_task(bench, new_task("a"));
    char *id = memory_copy_text(task->id);
    task_unref(task);
    task_unref(move_task(bench, id, &approve));
    task_unref(move_task(bench, id, &execute));
    return id;
}

/* As a standby that had not got the last commit when it took over. */
static void lose_last_commit(void)
{
    ck_assert_int_eq(
        scratch_execute(&scratch,
                        "BEGIN IMMEDIATE; DELETE FROM task_claim; UPDATE task SET state = 1;"
                        " DELETE FROM feed WHERE sequence = (SELECT max(sequence) FROM"
                        " feed); COMMIT"),
        SQLITE_OK);
}

START_TEST(nobody_decides_while_commits_are_missing)
{
    char *id = begin_execution(&one);
    struct task *waiting = create_task(&two, new_task("a"));
    /* Both have read the feed to its end, as each does before it does anything else. */
    struct task *last = create_task(&two, new_task("b"));
    task_unref(get_task(&one, last->id));
    task_unref(get_task(&two, last->id));
    task_unref(last);
    lose_last_commit();
    wait_for_condition(&one, STORE_HELD);
    wait_for_condition(&two, STORE_HELD);
    /* A call that was running when the commits were lost does not run again. */
    int64_t give_up_ms = clock_monotonic_ms() + 20000;
    struct task *task = get_task(&two, id);
    while (task->state != TASK_FAILED) {
        ck_assert(clock_monotonic_ms() < give_up_ms);
        task_unref(task);
        task = get_task(&two, id);
    }
    ck_assert_int_eq(task->failure, TASK_FAILURE_OUTCOME_UNKNOWN);
    task_unref(task);
    ck_assert_int_eq(change_status(&one, id, &complete), STORE_CONFLICT);
    struct answer answer = {0};
    cast_vote(&two, waiting->id, "bob", (struct store_vote){.verb = BALLOT_APPROVE}, &answer);
    ck_assert_int_eq(answer.status, STORE_FAILED);
    answer_finish(&answer);
    ck_assert_int_eq(change_status(&two, waiting->id, &approve), STORE_FAILED);
    ck_assert_int_eq(change_status(&two, waiting->id, &execute), STORE_FAILED);

    ck_assert_int_eq(scratch_execute(&scratch, "DELETE FROM hold"), SQLITE_OK);
    store_announce(one.store, NULL);
    store_announce(two.store, NULL);
    wait_for_condition(&one, STORE_WORKS);
    wait_for_condition(&two, STORE_WORKS);
    struct task *fresh = create_task(&two, new_task("c"));
    task_unref(move_task(&one, fresh->id, &approve));
    task_unref(fresh);
    task_unref(waiting);
    free(id);
}
END_TEST

/* ---- blocks ---- */

static char block_id[STORE_BLOCK_ID_BYTES];

static void keep_block(void *context, const struct store_reply *reply)
{
    if (reply->block_count > 0)
        snprintf(block_id, sizeof block_id, "%s", reply->blocks[0].id);
    *(bool *)context = true;
}

static void wait_until(const bool *arrived)
{
    while (!*arrived)
        loop_run_once(one.loop, 10);
}

static void ask_for_block(const char *task, bool *arrived)
{
    store_block_create(
        one.store, &(struct store_block_wish){str_from(task), STORE_BLOCK_SOURCE, 600000, "", "a"},
        (struct store_call){one.loop, keep_block, arrived});
}

static void block_with(const char *task)
{
    bool arrived = false;
    ask_for_block(task, &arrived);
    wait_until(&arrived);
}

/* The state of a task that is created now. */
static enum task_state created_by(struct bench *bench)
{
    struct task *task = create_task(bench, new_task("a"));
    enum task_state state = task->state;
    task_unref(task);
    return state;
}

START_TEST(a_block_whose_end_was_not_committed_is_in_force)
{
    bool is_read = false, is_lifted = false, is_made = false;
    struct task *task = create_task(&one, new_task("a"));
    block_with(task->id);
    ck_assert_int_eq(created_by(&one), TASK_REJECTED);
    /* The two behind the first are one transaction: the second finds no block. */
    pthread_mutex_lock(&gate);
    store_block_get(one.store, STR("bl_none"), (struct store_call){one.loop, keep_block, &is_read});
    store_block_lift(one.store, str_from(block_id), "a", "",
                     (struct store_call){one.loop, keep_block, &is_lifted});
    ask_for_block("tg_none", &is_made);
    atomic_store(&commits_fail, true);
    pthread_mutex_unlock(&gate);
    wait_until(&is_made);
    ck_assert(is_read && is_lifted);
    atomic_store(&commits_fail, false);
    ck_assert_int_eq(created_by(&one), TASK_REJECTED);
    task_unref(task);
}
END_TEST

#define BACKLOG                                                                                    \
    "INSERT INTO feed (sequence, task_id, replica, created, at_ms) WITH RECURSIVE n(i) AS "        \
    "(SELECT 1 UNION "                                                                             \
    "ALL SELECT i + 1 FROM n WHERE i < 5000) SELECT i + 1000, 'tg_none' || i, 'x', 0, 0 FROM n"

START_TEST(a_block_of_another_replica_holds_before_its_change_was_read)
{
    struct task *task = create_task(&one, new_task("a"));
    ck_assert_int_eq(created_by(&two), TASK_PENDING);
    ck_assert_int_eq(scratch_execute(&scratch, BACKLOG), SQLITE_OK);
    block_with(task->id);
    ck_assert_int_eq(created_by(&two), TASK_REJECTED);
    task_unref(task);
}
END_TEST

static void count_notice(void *context, struct task *task, bool created)
{
    (void)task, (void)created;
    ++*(size_t *)context;
}

static void count_whole(void *context, struct str id)
{
    size_t *count = context;
    if (str_equal(id, STR(STORE_BLOCK_ID_PREFIX)))
        ++*count;
}

START_TEST(a_replica_that_missed_changes_has_all_blocks_read_anew)
{
    size_t count = 0, read = 0;
    store_observe(two.store, two.loop, count_notice, &read);
    task_unref(create_task(&one, new_task("a")));
    bench_wait_count(two.loop, &read, 1);
    store_observe_ids(two.store, STORE_BLOCK, two.loop, count_whole, &count);
    pthread_mutex_lock(&gate);
    atomic_store(&ahead, 2 * 3600000);
    scratch_execute(&scratch, "DELETE FROM feed; INSERT INTO feed (sequence, task_id, replica, "
                              "created, at_ms) VALUES (1000, 'tg_none', 'x', 0, 0)");
    pthread_mutex_unlock(&gate);
    bench_wait_count(two.loop, &count, 1);
    ck_assert_int_eq(scratch_query(&scratch, "SELECT count(*) FROM hold"), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store failover");
    TCase *tests = tcase_create("failover");
    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, each_knows_the_others);
    tcase_add_test(tests, one_that_says_goodbye_is_gone);
    tcase_add_test(tests, the_later_of_two_with_one_name_yields);
    tcase_add_test(tests, one_that_was_killed_comes_back_after_a_heartbeat);
    tcase_add_test(tests, one_that_leaves_tells_no_loop_of_the_others);
    tcase_add_test(tests, a_database_that_is_not_reached_at_the_start_is_tried_again);
    tcase_add_test(tests, nobody_decides_while_commits_are_missing);
    tcase_add_test(tests, a_block_whose_end_was_not_committed_is_in_force);
    tcase_add_test(tests, a_block_of_another_replica_holds_before_its_change_was_read);
    tcase_add_test(tests, a_replica_that_missed_changes_has_all_blocks_read_anew);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
