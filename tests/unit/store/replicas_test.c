/* Two stores on one database, as two processes have them: epochs, claims, leases, and the feed. The
 * clock is the test's; SQLite is without its lock for one process. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "backend.h"
#include "harness.h"
#include "replica.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/memory.h"
#include "taskgate/store/replicas.h"

/* In the place of the C library's: both stores may open the file. */
int flock(int fd, int operation)
{
    (void)fd, (void)operation;
    return 0;
}

static atomic_int_fast64_t ahead;

static struct store_backend shared;
static struct scratch scratch;

static int64_t look(struct database *database, enum backend_fact fact)
{
    return fact == LOOK_AHEAD_MS ? atomic_load(&ahead) : scratch.backend->look(database, fact);
}

static struct bench one, two;

static struct bench join_with(const struct store_backend *backend, const char *id)
{
    struct error error = {""};
    struct bench bench = {.scratch = &scratch, .loop = loop_create(&error)};
    ck_assert_msg(bench.loop != NULL, "%s", error.message);
    bench.store = store_open(backend, scratch.place, id, NULL, &error);
    ck_assert_msg(bench.store != NULL, "%s", error.message);
    return bench;
}

static struct bench join_as(const char *id)
{
    return join_with(&shared, id);
}

static void set_up(void)
{
    atomic_store(&ahead, 0);
    scratch_init(&scratch);
    shared = *scratch.backend;
    shared.is_shared = true;
    shared.look = look;
    one = join_as("one");
    two = join_as("two");
}

static void tear_down(void)
{
    bench_close(&two);
    bench_close(&one);
    scratch_finish(&scratch);
}

static const struct task_change approve = {.to = TASK_APPROVED, .by = "alice"};
static const struct task_change execute = {.to = TASK_EXECUTING};
static const struct task_change complete = {
    .to = TASK_COMPLETED, .outcome = TASK_OUTCOME_RESULT, .outcome_text = {"{}", 2}};

/* A task that `bench` executes; the caller frees the id. */
static char *begin_execution(struct bench *bench)
{
    struct task *task = create_task(bench, new_task("a"));
    char *id = memory_copy_text(task->id);
    task_unref(task);
    task_unref(move_task(bench, id, &approve));
    task_unref(move_task(bench, id, &execute));
    return id;
}

static enum task_state state_of(struct bench *bench, const char *id)
{
    struct task *task = get_task(bench, id);
    enum task_state state = task->state;
    task_unref(task);
    return state;
}

static void expect_audit(struct bench *bench, const char *id, const char *line, bool is_there)
{
    struct answer answer = {0};
    audit_of(bench, id, &answer);
    ck_assert_msg((strstr(answer.audit_text, line) != NULL) == is_there, "%s", answer.audit_text);
    answer_finish(&answer);
}

/* Until SQL gives a number that is not 0. */
static void wait_for(const char *sql)
{
    int64_t give_up_ms = clock_monotonic_ms() + 20000;
    while (scratch_query(&scratch, sql) == 0) {
        ck_assert_msg(clock_monotonic_ms() < give_up_ms, "%s", sql);
        loop_run_once(one.loop, 20);
    }
}

/* ---- a backend whose COMMIT is done, and whose answer is lost for longer than its patience ----
 */

static struct store_backend lossy;
static atomic_bool loses_next, has_moved, is_late;

static bool lossy_change(struct database *database, enum statement which,
                         const struct value *values, size_t count, int64_t *changed)
{
    if (which == STATEMENT_TASK_MOVE)
        atomic_store(&has_moved, true);
    return scratch.backend->change(database, which, values, count, changed);
}

static struct database *open_lossy(const char *place, struct error *error)
{
    return with_backend(scratch.backend->open(place, error), &lossy);
}

static enum commit_result lossy_commit(struct database *database, struct error *error)
{
    enum commit_result result = scratch.backend->commit(database, error);
    bool is_move = atomic_exchange(&has_moved, false);
    if (result != COMMIT_DONE || !is_move || !atomic_exchange(&loses_next, false))
        return result;
    atomic_store(&is_late, true);
    error_set(error, "the answer was lost");
    return COMMIT_UNSURE;
}

static int64_t lossy_look(struct database *database, enum backend_fact fact)
{
    return fact == LOOK_LATE_COMMIT ? atomic_exchange(&is_late, false) : look(database, fact);
}

static void rejoin_lossy(void)
{
    lossy = shared;
    lossy.open = open_lossy;
    lossy.change = lossy_change;
    lossy.commit = lossy_commit;
    lossy.look = lossy_look;
    atomic_store(&loses_next, false);
    bench_close(&one);
    one = join_with(&lossy, "one");
}

static const struct task_change give_back = {.to = TASK_APPROVED, .credentials = "first"};

/* The database fails in the statement that gives the replica its epoch. */
static struct store_backend unjoined;
static atomic_bool cannot_join;

static bool unjoined_read(struct database *database, enum statement which,
                          const struct value *values, size_t count, row_visitor *visit,
                          void *context)
{
    return !(which == STATEMENT_REPLICA_JOIN && atomic_load(&cannot_join)) &&
           scratch.backend->read(database, which, values, count, visit, context);
}

static struct database *open_unjoined(const char *place, struct error *error)
{
    return with_backend(scratch.backend->open(place, error), &unjoined);
}

START_TEST(a_replica_has_no_epoch_until_the_database_has_given_it_one)
{
    unjoined = shared;
    unjoined.open = open_unjoined;
    unjoined.read = unjoined_read;
    atomic_store(&cannot_join, true);
    bench_close(&one);
    one = join_with(&unjoined, "one");
    ck_assert_int_eq(store_replica_epoch(one.store), 0);
    atomic_store(&cannot_join, false);
    wait_for("SELECT count(*) FROM replica WHERE id = 'one' AND epoch = 2 AND alive_ms > 0");
    free(begin_execution(&one));
    ck_assert_int_eq(store_replica_epoch(one.store), 2);
}
END_TEST

/* The first worker's give-back is on disk, its answer is not. Another worker of the replica claims
 * the task in the replica's new epoch, and then the first one tries again. */
START_TEST(a_give_back_tried_again_does_not_give_back_the_claim_that_followed)
{
    const struct task_change execute_again = {.to = TASK_EXECUTING, .credentials = "second"};
    struct task_change complete_second = complete;
    rejoin_lossy();
    char *id = begin_execution(&one);
    atomic_store(&loses_next, true);
    ck_assert_int_eq(change_status(&one, id, &give_back), STORE_FAILED);
    wait_for("SELECT count(*) FROM replica WHERE id = 'one' AND epoch = 3 AND alive_ms > 0");
    ck_assert_int_eq(change_status(&one, id, &execute_again), STORE_OK);
    ck_assert_int_eq(change_status(&one, id, &give_back), STORE_CONFLICT);
    ck_assert_int_eq(state_of(&one, id), TASK_EXECUTING);
    expect_audit(&one, id, "late_outcome executing>executing gateway taskgate approved", true);
    ck_assert_int_eq(change_status(&one, id, &complete), STORE_CONFLICT);
    complete_second.claim = 1;
    ck_assert_int_eq(change_status(&one, id, &complete_second), STORE_OK);
    free(id);
}
END_TEST

/* The worker's own try finds the end there; whoever waits elsewhere hears of it from the feed. */
START_TEST(observers_hear_of_an_own_change_whose_answer_was_lost)
{
    struct heard heard = {0};
    rejoin_lossy();
    char *id = begin_execution(&one);
    store_observe(one.store, one.loop, hear, &heard);
    atomic_store(&loses_next, true);
    ck_assert_int_eq(change_status(&one, id, &complete), STORE_FAILED);
    ck_assert_uint_eq(heard.count, 0);
    bench_wait_count(one.loop, &heard.count, 1);
    ck_assert_str_eq(heard.tasks[0]->id, id);
    ck_assert_int_eq(heard.tasks[0]->state, TASK_COMPLETED);
    ck_assert_int_eq(change_status(&one, id, &complete), STORE_CONFLICT);
    task_unref(create_task(&one, new_task("a")));
    bench_wait_count(one.loop, &heard.count, 2);
    ck_assert(heard.created[1]);
    task_unref(get_task(&one, id)); /* its notices, if there were more, would be here */
    ck_assert_uint_eq(heard.count, 2);
    heard_finish(&heard);
    free(id);
}
END_TEST

START_TEST(an_execution_of_a_living_replica_goes_on_when_another_joins)
{
    char *id = begin_execution(&one);
    bench_close(&two);
    two = join_as("two");
    ck_assert_int_eq(state_of(&two, id), TASK_EXECUTING);
    ck_assert_int_eq(change_status(&one, id, &complete), STORE_OK);
    expect_audit(&two, id, "late_outcome", false);
    free(id);
}
END_TEST

START_TEST(a_replica_that_comes_back_ends_what_it_has_left)
{
    char *left = begin_execution(&one), *held = begin_execution(&two);
    bench_close(&one);
    ck_assert_int_eq(scratch_query(&scratch, "SELECT epoch FROM replica WHERE id = 'one'"), 1);
    one = join_as("one");
    ck_assert_int_eq(scratch_query(&scratch, "SELECT epoch FROM replica WHERE id = 'one'"), 2);
    ck_assert_int_eq(state_of(&one, left), TASK_FAILED);
    ck_assert_int_eq(state_of(&one, held), TASK_EXECUTING);
    free(left);
    free(held);
}
END_TEST

START_TEST(only_the_replica_that_has_claimed_a_task_ends_it)
{
    char *id = begin_execution(&one);
    ck_assert_int_eq(change_status(&two, id, &complete), STORE_CONFLICT);
    ck_assert_int_eq(state_of(&two, id), TASK_EXECUTING);
    expect_audit(&two, id, "late_outcome executing>executing gateway taskgate completed", true);
    /* Anybody may cancel it. */
    const struct task_change cancel = {.to = TASK_CANCELLED, .by = "alice"};
    ck_assert_int_eq(change_status(&two, id, &cancel), STORE_OK);
    ck_assert_int_eq(change_status(&one, id, &complete), STORE_CONFLICT);
    free(id);
}
END_TEST

/* Its epoch ends under it, as by another replica that has not heard of it for too long. */
START_TEST(a_fenced_replica_stores_no_outcome_and_claims_nothing_until_it_has_a_new_epoch)
{
    char *id = begin_execution(&one);
    struct task *task = create_task(&one, new_task("a"));
    char *next = memory_copy_text(task->id);
    task_unref(task);
    task_unref(move_task(&one, next, &approve));
    ck_assert_int_eq(scratch_execute(&scratch, "UPDATE replica SET epoch = epoch + 1, alive_ms = 0"
                                               " WHERE id = 'one'"),
                     SQLITE_OK);
    ck_assert_int_eq(change_status(&one, next, &execute), STORE_FAILED);
    wait_for("SELECT count(*) FROM replica WHERE id = 'one' AND epoch = 3 AND alive_ms > 0");
    ck_assert_int_eq(state_of(&two, id), TASK_FAILED);
    ck_assert_int_eq(change_status(&one, id, &complete), STORE_CONFLICT);
    expect_audit(&two, id, "late_outcome failed>failed gateway taskgate completed", true);
    ck_assert_int_eq(change_status(&one, next, &execute), STORE_OK);
    ck_assert_int_eq(change_status(&one, next, &complete), STORE_OK);
    free(id);
    free(next);
}
END_TEST

/* A replica that has said nothing for 20 s of the database's clock is dead, but not before the
 * judge has listened for as long itself. */
START_TEST(a_silent_replica_is_fenced_and_its_executions_end)
{
    char *id = begin_execution(&one);
    store_stop(one.store);
    atomic_store(&ahead, 60000);
    wait_for("SELECT count(*) FROM task WHERE state = 4");
    ck_assert_int_eq(scratch_query(&scratch, "SELECT epoch FROM replica WHERE id = 'one'"), 2);
    struct task *task = get_task(&two, id);
    ck_assert_int_eq(task->failure, TASK_FAILURE_OUTCOME_UNKNOWN);
    task_unref(task);
    free(id);
}
END_TEST

START_TEST(one_replica_holds_a_lease_and_another_takes_it_when_it_is_over)
{
    wait_for("SELECT count(*) = 2 FROM lease");
    ck_assert_int_eq(scratch_query(&scratch, "SELECT count(DISTINCT replica) FROM lease"), 1);
    bool is_one = scratch_query(&scratch, "SELECT count(*) FROM lease WHERE replica = 'one'") > 0;
    struct bench *holder = is_one ? &one : &two, *other = is_one ? &two : &one;
    store_stop(holder->store);
    atomic_store(&ahead, 60000);
    char *sql = memory_format("SELECT count(*) = 2 FROM lease WHERE replica = '%s'",
                              other == &one ? "one" : "two");
    wait_for(sql);
    free(sql);
}
END_TEST

/* The database server's clock was an hour ahead, and is set back while a replica is dead. */
START_TEST(times_of_a_dead_replica_whose_clock_was_ahead_are_over)
{
    wait_for("SELECT count(*) = 2 FROM lease");
    bool is_one = scratch_query(&scratch, "SELECT count(*) FROM lease WHERE replica = 'one'") > 0;
    struct bench *holder = is_one ? &one : &two;
    char *id = begin_execution(holder);
    store_stop(holder->store);
    scratch_execute(&scratch, "UPDATE lease SET until_ms = until_ms + 3600000");
    char *sql = memory_format("UPDATE replica SET alive_ms = alive_ms + 3600000, seen_ms = alive_ms"
                              " WHERE id = '%s'",
                              is_one ? "one" : "two");
    scratch_execute(&scratch, sql);
    free(sql);
    sql = memory_format("SELECT count(*) = 2 FROM lease WHERE replica = '%s'",
                        is_one ? "two" : "one");
    wait_for(sql);
    free(sql);
    atomic_store(&ahead, 21000); /* so long has the other listened */
    wait_for("SELECT count(*) FROM task WHERE state = 4");
    free(id);
}
END_TEST

/* Their signs of life are from before. */
START_TEST(nobody_is_fenced_because_the_clock_was_set_back)
{
    char path[sizeof scratch.path + 8], line[4096];
    int warnings = 0;
    snprintf(path, sizeof path, "%s.log", scratch.path);
    bench_close(&two);
    bench_close(&one);
    ck_assert_ptr_nonnull(freopen(path, "w", stderr));
    ck_assert_int_eq(dup2(fileno(stderr), STDERR_FILENO), STDERR_FILENO);
    atomic_store(&ahead, 3600000);
    one = join_as("one");
    two = join_as("two");
    char *id = begin_execution(&one);
    wait_for("SELECT min(alive_ms) > (SELECT max(created_ms) FROM task) FROM replica");
    atomic_store(&ahead, 0);
    wait_for("SELECT max(alive_ms) < (SELECT max(created_ms) - 3000000 FROM task) FROM replica");
    ck_assert_int_eq(scratch_query(&scratch, "SELECT max(epoch) FROM replica"), 2);
    ck_assert_int_eq(state_of(&one, id), TASK_EXECUTING);
    free(id);
    bench_close(&two);
    bench_close(&one); /* all is logged */
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    while (fgets(line, sizeof line, file))
        warnings += strstr(line, "The database's clock was set back; times that it gave before "
                                 "count for no more than their own length\",\"by_ms\":35") != NULL;
    fclose(file);
    remove(path);
    ck_assert_int_eq(warnings, 2); /* each replica's, once */
    one = join_as("one");
    two = join_as("two");
}
END_TEST

static const struct store_outbox_target target = {.key = "k", .events = 0xff};

struct due {
    bool arrived;
    size_t count;
};

static void keep_due(void *context, const struct store_reply *reply)
{
    struct due *due = context;
    due->arrived = true;
    due->count = reply->delivery_count;
}

static size_t count_due(struct bench *bench)
{
    struct due due = {.arrived = false};
    store_outbox_due(bench->store, STR("k"), 8, (struct store_call){bench->loop, keep_due, &due});
    while (!due.arrived)
        loop_run_once(bench->loop, 100);
    return due.count;
}

START_TEST(deliveries_are_given_to_the_holder_of_the_lease_alone)
{
    wait_for("SELECT count(*) = 2 FROM lease");
    bool is_one = scratch_query(&scratch, "SELECT replica = 'one' FROM lease"
                                          " WHERE name = 'outbox'") > 0;
    struct answer answer = {0};
    store_outbox_configure(one.store, &target, 1, bench_call(one.loop, &answer));
    bench_wait(one.loop, &answer);
    answer_finish(&answer);
    task_unref(create_task(&one, new_task("a")));
    ck_assert_uint_eq(count_due(is_one ? &one : &two), 1);
    ck_assert_uint_eq(count_due(is_one ? &two : &one), 0);
}
END_TEST

START_TEST(observers_hear_of_others_once_and_in_the_order_of_commits)
{
    struct heard heard = {0};
    store_observe(two.store, two.loop, hear, &heard);
    struct task *first = create_task(&one, new_task("a"));
    task_unref(move_task(&one, first->id, &approve));
    struct task *second = create_task(&two, new_task("b"));
    task_unref(move_task(&one, second->id, &approve));
    bench_wait_count(two.loop, &heard.count, 4);
    ck_assert_str_eq(heard.tasks[0]->id, first->id);
    ck_assert(heard.created[0] && !heard.created[1]);
    ck_assert_str_eq(heard.tasks[1]->id, first->id);
    ck_assert_str_eq(heard.tasks[2]->id, second->id);
    ck_assert(heard.created[2] && !heard.created[3]);
    ck_assert_int_eq(heard.tasks[3]->state, TASK_APPROVED);
    task_unref(get_task(&two, first->id)); /* its notices, if there were more, would be here */
    ck_assert_uint_eq(heard.count, 4);
    heard_finish(&heard);
    task_unref(first);
    task_unref(second);
}
END_TEST

/* A replica that comes late would hold the requests of 256 changes at once. */
START_TEST(a_look_at_the_feed_ends_when_it_has_read_long_tasks)
{
    static char request[1024 * 1024];
    struct error error = {""};
    struct replica three;
    memset(request, 'a', sizeof request);
    for (int i = 0; i < 24; i++) {
        struct task *task = new_task("a");
        task_set_request(task, str_slice(request, sizeof request));
        task_unref(create_task(&one, task));
    }
    struct database *database = scratch.backend->open(scratch.place, &error);
    ck_assert_msg(database != NULL, "%s", error.message);
    replica_init(&three, "three");
    struct batch batch = {
        .backend = &shared, .database = database, .replica = &three, .now_ms = clock_now_ms()};
    ck_assert(shared.begin(database, false) && replica_catch_up(&batch));
    ck_assert_uint_eq(batch.event_count, 16);
    ck_assert(batch.has_unread);
    ck_assert(replica_catch_up(&batch));
    ck_assert_uint_eq(batch.event_count, 24);
    ck_assert(!batch.has_unread);
    batch_drop_events(&batch, 0);
    free(batch.events);
    shared.rollback(database);
    shared.close(database);
    replica_finish(&three);
}
END_TEST

START_TEST(limits_count_the_tasks_of_all)
{
    const struct store_limits limits = {2, INT64_MAX, INT64_MAX, INT64_MAX};
    task_unref(create_task(&one, new_task("a")));
    ck_assert_int_eq(create_status(&two, new_task("a"), &limits), STORE_OK);
    ck_assert_int_eq(create_status(&one, new_task("a"), &limits), STORE_LIMIT_PRINCIPAL);
    ck_assert_int_eq(create_status(&two, new_task("a"), &limits), STORE_LIMIT_PRINCIPAL);
    ck_assert_int_eq(create_status(&two, new_task("b"), &limits), STORE_OK);
}
END_TEST

START_TEST(deadlines_are_by_the_clock_of_the_database)
{
    atomic_store(&ahead, 3600000);
    int64_t now_ms = clock_now_ms();
    struct task *task = create_task(&one, new_task("a"));
    ck_assert_int_ge(task->created_ms, now_ms + 3600000);
    ck_assert_int_eq(task->decide_by_ms - task->created_ms, 600000);
    ck_assert_int_eq(state_of(&one, task->id), TASK_PENDING);
    atomic_store(&ahead, 3600000 + 700000);
    ck_assert_int_eq(state_of(&two, task->id), TASK_EXPIRED);
    task_unref(task);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store replicas");
    TCase *tests = tcase_create("replicas");
    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, an_execution_of_a_living_replica_goes_on_when_another_joins);
    tcase_add_test(tests, a_replica_has_no_epoch_until_the_database_has_given_it_one);
    tcase_add_test(tests, a_give_back_tried_again_does_not_give_back_the_claim_that_followed);
    tcase_add_test(tests, observers_hear_of_an_own_change_whose_answer_was_lost);
    tcase_add_test(tests, a_replica_that_comes_back_ends_what_it_has_left);
    tcase_add_test(tests, only_the_replica_that_has_claimed_a_task_ends_it);
    tcase_add_test(tests,
                   a_fenced_replica_stores_no_outcome_and_claims_nothing_until_it_has_a_new_epoch);
    tcase_add_test(tests, a_silent_replica_is_fenced_and_its_executions_end);
    tcase_add_test(tests, one_replica_holds_a_lease_and_another_takes_it_when_it_is_over);
    tcase_add_test(tests, times_of_a_dead_replica_whose_clock_was_ahead_are_over);
    tcase_add_test(tests, nobody_is_fenced_because_the_clock_was_set_back);
    tcase_add_test(tests, deliveries_are_given_to_the_holder_of_the_lease_alone);
    tcase_add_test(tests, observers_hear_of_others_once_and_in_the_order_of_commits);
    tcase_add_test(tests, a_look_at_the_feed_ends_when_it_has_read_long_tasks);
    tcase_add_test(tests, limits_count_the_tasks_of_all);
    tcase_add_test(tests, deadlines_are_by_the_clock_of_the_database);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
