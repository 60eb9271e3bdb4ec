/* Tasks that are created in one transaction: each sees what the others before it have changed. */
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "taskgate/core/memory.h"
#include "taskgate/store/trail.h"

enum { TOGETHER = 40 };

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

/* Queued at once, so that they share transactions as a rule; what follows is true in any case. */
static void create_together(struct task *tasks[TOGETHER], const struct store_limits *limits,
                            enum store_status statuses[TOGETHER])
{
    struct answer answers[TOGETHER];
    memset(answers, 0, sizeof answers);
    for (unsigned i = 0; i < TOGETHER; i++)
        store_task_create(bench.store, tasks[i], limits, bench_call(bench.loop, &answers[i]));
    for (unsigned i = 0; i < TOGETHER; i++) {
        bench_wait(bench.loop, &answers[i]);
        statuses[i] = answers[i].status;
        answer_finish(&answers[i]);
    }
}

/* A column of the sums over all tasks: PostgreSQL has a table of its own for them. */
static int64_t kept_of_all(const char *column)
{
    char sql[96];
    snprintf(sql, sizeof sql, "SELECT %s FROM %s", column,
             scratch_is_postgres() ? "totals" : "limited WHERE owner = ''");
    return scratch_query(&scratch, sql);
}

static unsigned count(const enum store_status statuses[TOGETHER], enum store_status wanted)
{
    unsigned found = 0;
    for (unsigned i = 0; i < TOGETHER; i++)
        found += statuses[i] == wanted;
    return found;
}

static void expect_whole_trail(void)
{
    struct store_trail_report report;
    struct error error = {""};
    ck_assert_msg(store_trail_verify(&site, NULL, NULL, &report, &error), "%s", error.message);
    ck_assert(report.is_good);
}

START_TEST(the_limit_of_all_holds_among_them)
{
    const struct store_limits limits = {4, 9, INT64_MAX, INT64_MAX};
    struct task *tasks[TOGETHER];
    enum store_status statuses[TOGETHER];
    for (unsigned i = 0; i < TOGETHER; i++)
        tasks[i] = new_task(i % 2 ? "a" : i % 3 ? "b" : "c");
    create_together(tasks, &limits, statuses);
    ck_assert_uint_eq(count(statuses, STORE_OK), 9);
    ck_assert_uint_eq(count(statuses, STORE_LIMIT_PRINCIPAL) + count(statuses, STORE_LIMIT_TOTAL),
                      TOGETHER - 9);
    ck_assert_int_eq(store_pending_count(bench.store), 9);
    ck_assert_int_eq(kept_of_all("tasks"), 9);
    ck_assert_int_eq(kept_of_all("pending"), 9);
    ck_assert_int_eq(scratch_query(&scratch, "SELECT sum(tasks) FROM limited WHERE owner <> ''"),
                     9);
}
END_TEST

START_TEST(the_limit_of_an_owner_holds_among_them)
{
    const struct store_limits limits = {4, 100, INT64_MAX, INT64_MAX};
    struct task *tasks[TOGETHER];
    enum store_status statuses[TOGETHER];
    for (unsigned i = 0; i < TOGETHER; i++)
        tasks[i] = new_task("a");
    create_together(tasks, &limits, statuses);
    ck_assert_uint_eq(count(statuses, STORE_OK), 4);
    ck_assert_uint_eq(count(statuses, STORE_LIMIT_PRINCIPAL), TOGETHER - 4);
}
END_TEST

START_TEST(the_bytes_of_those_before_count)
{
    enum { BYTES = 1 << 18, FIT = 10 };
    const struct store_limits limits = {100, 100, (int64_t)FIT * BYTES, INT64_MAX};
    struct task *tasks[TOGETHER];
    enum store_status statuses[TOGETHER];
    char *body = memory_alloc(BYTES);
    for (unsigned i = 0; i < TOGETHER; i++) {
        tasks[i] = new_task("a");
        task_set_request(tasks[i], str_slice(body, BYTES));
    }
    free(body);
    create_together(tasks, &limits, statuses);
    /* The database has some pages of its own. */
    unsigned fit = count(statuses, STORE_OK);
    ck_assert_uint_lt(fit, FIT);
    ck_assert_uint_ge(fit, FIT / 2);
    ck_assert_uint_eq(count(statuses, STORE_LIMIT_BYTES), TOGETHER - fit);
}
END_TEST

/* The failed one leaves no trace in the counts, nor in the chain that the later ones go on from. */
START_TEST(one_that_fails_leaves_the_others_whole)
{
    struct task *tasks[TOGETHER];
    enum store_status statuses[TOGETHER];
    for (unsigned i = 0; i < TOGETHER; i++)
        tasks[i] = new_task("a");
    memcpy(tasks[20]->id, tasks[3]->id, sizeof tasks[3]->id);
    create_together(tasks, &no_limits, statuses);
    ck_assert_uint_eq(count(statuses, STORE_OK), TOGETHER - 1);
    ck_assert_int_eq(statuses[20], STORE_FAILED);
    ck_assert_int_eq(store_pending_count(bench.store), TOGETHER - 1);
    ck_assert_int_eq(kept_of_all("tasks"), TOGETHER - 1);
    expect_whole_trail();
    ck_assert_int_eq(scratch_query(&scratch, "SELECT max(sequence) FROM audit"), TOGETHER - 1);
}
END_TEST

/* A step that fails after the counts and the trail were written. */
START_TEST(one_that_fails_late_is_undone_in_the_counts)
{
    struct task *tasks[TOGETHER];
    enum store_status statuses[TOGETHER];
    ck_assert_int_eq(
        scratch_execute(&scratch,
                        "CREATE TRIGGER refuse BEFORE INSERT ON limited WHEN NEW.owner = 'late'"
                        " BEGIN SELECT RAISE (ABORT, 'refused'); END"),
        0);
    for (unsigned i = 0; i < TOGETHER; i++)
        tasks[i] = new_task(i % 4 == 1 ? "late" : "a");
    create_together(tasks, &no_limits, statuses);
    ck_assert_uint_eq(count(statuses, STORE_FAILED), TOGETHER / 4);
    ck_assert_int_eq(store_pending_count(bench.store), TOGETHER * 3 / 4);
    ck_assert_int_eq(scratch_query(&scratch, "SELECT pending FROM limited WHERE owner = ''"),
                     TOGETHER * 3 / 4);
    expect_whole_trail();
}
END_TEST

struct filter {
    sem_t *begins, *gate; /* it posts one and waits for the other at the start; NULL: neither */
    const char *overdue;  /* SQL, when a task is seen; NULL: none */
    struct str tool;      /* empty: any */
    size_t begun, seen;
};

static bool look(void *context, const struct task *task)
{
    struct filter *filter = context;
    if (!task) {
        filter->begun++;
        filter->seen = 0;
        if (filter->gate) {
            sem_post(filter->begins);
            sem_wait(filter->gate);
        }
        return false;
    }
    filter->seen++;
    if (filter->overdue)
        ck_assert_int_eq(scratch_execute(&scratch, filter->overdue), SQLITE_OK);
    return false;
}

static void list_waiting(struct filter *filter, struct answer *answer)
{
    const struct store_task_query all = {.is_of_waiting = true,
                                         .tool = filter->tool,
                                         .limit = 1,
                                         .most_bytes = SIZE_MAX,
                                         .accepts = look,
                                         .context = filter};
    store_task_list(bench.store, &all, bench_call(bench.loop, answer));
}

START_TEST(those_that_wait_are_read_by_conditions_and_all_counted)
{
    static const char *const tools[] = {"drop", "drop", "read", "drop"};
    struct task *tasks[4];
    for (size_t i = 0; i < 4; i++) {
        tasks[i] = new_task("anonymous");
        task_set_text(&tasks[i]->tool, str_from(tools[i]));
        tasks[i] = create_task(&bench, tasks[i]);
    }
    task_unref(move_task(&bench, tasks[0]->id, &(struct task_change){.to = TASK_REJECTED}));
    const struct {
        struct str tool;
        size_t seen;
    } cases[] = {{STR("drop"), 2}, {STR("read"), 1}, {STR("dro"), 0}, {STR_EMPTY, 3}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct filter filter = {.tool = cases[i].tool};
        struct answer answer = {0};
        list_waiting(&filter, &answer);
        bench_wait(bench.loop, &answer);
        ck_assert_int_eq(answer.status, STORE_OK);
        ck_assert_uint_eq(filter.seen, cases[i].seen);
        ck_assert_int_eq(answer.waiting, 3);
        answer_finish(&answer);
    }
    for (size_t i = 0; i < 4; i++)
        task_unref(tasks[i]);
}
END_TEST

/* A shared database is only read until something has to be written. */
START_TEST(a_list_that_is_read_once_more_begins_again)
{
    sem_t begins, gate;
    sem_init(&begins, 0, 0);
    sem_init(&gate, 0, 0);
    struct task *task = create_task(&bench, new_task("anonymous"));
    struct answer answers[3] = {{0}};
    struct filter first = {.begins = &begins, .gate = &gate}, second = {.seen = 0};
    if (scratch_is_postgres())
        second.overdue = "UPDATE taskgate_task SET decide_by_ms = created_ms";
    list_waiting(&first, &answers[0]);
    sem_wait(&begins); /* it has a transaction of its own, and the others come into the next one */
    list_waiting(&second, &answers[1]);
    store_task_get(bench.store, str_from(task->id), bench_call(bench.loop, &answers[2]));
    sem_post(&gate);
    for (size_t i = 0; i < 3; i++)
        bench_wait(bench.loop, &answers[i]);
    ck_assert_uint_ge(second.begun, 1); /* 2 on PostgreSQL, unless a sweep is with them */
    ck_assert_uint_eq(second.seen, 1);
    ck_assert_int_eq(answers[2].task->state, scratch_is_postgres() ? TASK_EXPIRED : TASK_PENDING);
    for (size_t i = 0; i < 3; i++)
        answer_finish(&answers[i]);
    task_unref(task);
    sem_destroy(&begins);
    sem_destroy(&gate);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store together");
    TCase *tests = tcase_create("store together");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, the_limit_of_all_holds_among_them);
    tcase_add_test(tests, those_that_wait_are_read_by_conditions_and_all_counted);
    tcase_add_test(tests, the_limit_of_an_owner_holds_among_them);
    tcase_add_test(tests, the_bytes_of_those_before_count);
    tcase_add_test(tests, one_that_fails_leaves_the_others_whole);
    if (!scratch_is_postgres()) /* the trigger is SQLite's */
        tcase_add_test(tests, one_that_fails_late_is_undone_in_the_counts);
    tcase_add_test(tests, a_list_that_is_read_once_more_begins_again);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
