/* The rows that a transaction on PostgreSQL writes once, with its end: its number, counts, the
 * feed. */
#include <stdlib.h>

#include "backend.h"
#include "connection.h"
#include "harness.h"
#include "replica_rows.h"
#include "taskgate/core/clock.h"

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

/* The connection is lost before the number of the transaction is sent. That of the one before,
 * which was committed, is not taken for it. */
START_TEST(a_transaction_lost_before_its_number_was_sent_is_not_stored)
{
    const struct feed_change change = {.task_id = STR("tg_x"), .replica = STR("x")};
    struct error error = {""};
    struct database *database = store_postgres.open(scratch.place, &error);
    ck_assert_msg(database != NULL, "%s", error.message);
    ck_assert(store_postgres.begin(database, true) &&
              rows_write(database, STATEMENT_PROBE, VALUES(NUMBER(1))));
    ck_assert_msg(store_postgres.commit(database, &error) == COMMIT_DONE, "%s", error.message);
    ck_assert(store_postgres.begin(database, true) &&
              rows_write(database, STATEMENT_PROBE, VALUES(NUMBER(2))) &&
              replica_rows_feed_add(database, &change, 2));
    connection_drop(database);
    ck_assert_int_eq(store_postgres.commit(database, &error), COMMIT_NOTHING);
    ck_assert_int_eq(scratch_query(&scratch, "SELECT at_ms FROM probe"), 1);
    store_postgres.close(database);
}
END_TEST

/* Refuses to let a replica execute a task of "late"; a task that just waits is not seen yet. */
static const char refuse_late[] =
    "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF EXISTS (SELECT 1"
    " FROM taskgate_task WHERE sequence = NEW.task AND owner = 'late') THEN RAISE EXCEPTION"
    " 'refused' USING ERRCODE = '23514'; END IF; RETURN NEW; END $$;"
    "CREATE TRIGGER refuse BEFORE INSERT ON taskgate_task_claim"
    " FOR EACH ROW EXECUTE FUNCTION refuse()";

static struct task *new_late(void)
{
    struct task *task = task_create_promoted();
    task_set_text(&task->source, STR("files"));
    task_set_text(&task->owner, STR("late"));
    task_set_text(&task->tool, STR("slow"));
    task_set_text(&task->arguments, STR("{}"));
    task->created_ms = task->updated_ms = clock_now_ms();
    task->ttl_ms = 300000;
    return task;
}

/* One of "late" fails behind its counts. The limits count the others, and the feed has them in the
 * order in which they were created, each with its home. */
START_TEST(one_that_fails_late_is_in_no_count_and_not_in_the_feed)
{
    static struct answer answers[CALLS];
    unsigned failed = 0;
    ck_assert_int_eq(scratch_execute(&scratch, refuse_late), 0);
    for (int i = 0; i < CALLS; i++)
        store_task_create(bench.store, i % 4 == 1 ? new_late() : new_task(i % 4 == 2 ? "b" : "a"),
                          &no_limits, bench_call(bench.loop, &answers[i]));
    for (int i = 0; i < CALLS; i++) {
        bench_wait(bench.loop, &answers[i]);
        failed += answers[i].status == STORE_FAILED;
        ck_assert_int_eq(answers[i].status, i % 4 == 1 ? STORE_FAILED : STORE_OK);
        answer_finish(&answers[i]);
    }
    ck_assert_uint_eq(failed, CALLS / 4);
    ck_assert_int_eq(scratch_query(&scratch, "SELECT tasks FROM totals"), CALLS * 3 / 4);
    ck_assert_int_eq(scratch_query(&scratch, "SELECT tasks FROM limited WHERE owner = 'a'"),
                     CALLS / 2);
    ck_assert_int_eq(scratch_query(&scratch, "SELECT tasks FROM limited WHERE owner = 'b'"),
                     CALLS / 4);
    ck_assert_int_eq(
        scratch_query(&scratch, "SELECT coalesce(sum(tasks), 0) FROM limited WHERE owner = 'late'"),
        0);
    ck_assert_int_eq(scratch_query(&scratch, "SELECT count(*) FROM feed WHERE created = 1"),
                     CALLS * 3 / 4);
    ck_assert_int_eq(
        scratch_query(&scratch,
                      "SELECT count(*) FROM (SELECT task_id, row_number() OVER (ORDER BY sequence)"
                      " AS place FROM feed) AS told JOIN (SELECT id, row_number() OVER"
                      " (ORDER BY sequence) AS place FROM task) AS made"
                      " ON id = task_id AND made.place = told.place"),
        CALLS * 3 / 4);
    ck_assert_int_eq(scratch_query(&scratch, "SELECT count(*) FROM task_claim WHERE epoch > 0"),
                     CALLS * 3 / 4);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store postgres once");
    TCase *tests = tcase_create("once");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, a_transaction_lost_before_its_number_was_sent_is_not_stored);
    tcase_add_test(tests, one_that_fails_late_is_in_no_count_and_not_in_the_feed);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
