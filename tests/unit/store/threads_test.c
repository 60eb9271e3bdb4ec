/* The store under many loops at once: one winner per race, exact limits, one order. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "taskgate/core/clock.h"

#define LOOPS 4
#define ROUNDS 40

static struct scratch scratch;
static struct store *store;

static void set_up(void)
{
    struct error error = {""};
    scratch_init(&scratch);
    store = store_open(scratch.backend, scratch.place, NULL, NULL, &error);
    ck_assert_msg(store != NULL, "%s", error.message);
}

static void tear_down(void)
{
    scratch_finish(&scratch);
}

/* ---- approve, cancel, reject and the clock, all at once ---- */

struct racer {
    unsigned number;
    struct loop *loop;
    pthread_t thread;
    struct task **tasks; /* ROUNDS of them, shared */
    struct answer answers[ROUNDS];
};

static pthread_barrier_t start;

static const struct task_change moves[LOOPS] = {
    {.to = TASK_APPROVED, .by = "alice"},
    {.to = TASK_CANCELLED},
    {.to = TASK_REJECTED, .by = "bob", .reason = "no"},
    {.to = TASK_CANCELLED, .reason = "session"},
};

static void *race(void *context)
{
    struct racer *racer = context;
    pthread_barrier_wait(&start);
    for (unsigned i = 0; i < ROUNDS; i++)
        store_task_change(store, str_from(racer->tasks[i]->id), &moves[racer->number], &alice,
                          bench_call(racer->loop, &racer->answers[i]));
    for (unsigned i = 0; i < ROUNDS; i++)
        bench_wait(racer->loop, &racer->answers[i]);
    return NULL;
}

static void run_race(struct racer *racers, struct task **tasks)
{
    pthread_barrier_init(&start, NULL, LOOPS);
    for (unsigned i = 0; i < LOOPS; i++) {
        racers[i].number = i;
        racers[i].tasks = tasks;
        racers[i].loop = loop_create(NULL);
        ck_assert_int_eq(pthread_create(&racers[i].thread, NULL, race, &racers[i]), 0);
    }
    for (unsigned i = 0; i < LOOPS; i++)
        pthread_join(racers[i].thread, NULL);
    pthread_barrier_destroy(&start);
}

/* Every task has one winner, which may be the clock; every loser sees a later state. */
static void check_race(struct racer *racers, struct task **tasks, bool may_expire)
{
    for (unsigned i = 0; i < ROUNDS; i++) {
        unsigned winners = 0;
        bool expired = false;
        for (unsigned r = 0; r < LOOPS; r++) {
            struct answer *answer = &racers[r].answers[i];
            ck_assert_ptr_nonnull(answer->task);
            ck_assert_str_eq(answer->task->id, tasks[i]->id);
            if (answer->status == STORE_OK)
                ck_assert_int_eq(answer->task->state, moves[r].to);
            else
                ck_assert_int_eq(answer->status, STORE_CONFLICT);
            winners += answer->status == STORE_OK;
            expired = expired || answer->task->state == TASK_EXPIRED;
            ck_assert_int_ne(answer->task->state, TASK_PENDING);
        }
        /* An approved task may still be cancelled: those two may both win, in that order. */
        bool approved_first = racers[0].answers[i].status == STORE_OK;
        ck_assert_uint_le(winners, approved_first ? 2 : 1);
        ck_assert(winners >= 1 || (may_expire && expired));
        ck_assert(!expired || winners == 0);
    }
}

static void finish_race(struct racer *racers, struct task **tasks)
{
    for (unsigned i = 0; i < ROUNDS; i++)
        task_unref(tasks[i]);
    for (unsigned r = 0; r < LOOPS; r++) {
        for (unsigned i = 0; i < ROUNDS; i++)
            answer_finish(&racers[r].answers[i]);
        loop_destroy(racers[r].loop);
    }
}

static void create_all(struct task **tasks, int64_t decide_in_ms)
{
    struct loop *loop = loop_create(NULL);
    struct bench bench = {&scratch, store, loop};
    for (unsigned i = 0; i < ROUNDS; i++) {
        struct task *task = new_task("auth:ab");
        task->decide_by_ms = clock_now_ms() + decide_in_ms + i;
        tasks[i] = create_task(&bench, task);
    }
    loop_destroy(loop);
}

/* One decision entry per task for each winner, in any interleaving. */
static void check_audit(struct racer *racers)
{
    int64_t won = 0;
    for (unsigned r = 0; r < LOOPS; r++) {
        for (unsigned i = 0; i < ROUNDS; i++)
            won += racers[r].answers[i].status == STORE_OK;
    }
    ck_assert_int_eq(scratch_query(&scratch, "SELECT count(*) FROM audit WHERE event IN"
                                             " ('approve', 'cancel', 'reject')"),
                     won);
}

START_TEST(a_race_of_decisions_has_one_winner)
{
    struct task *tasks[ROUNDS];
    struct racer *racers = calloc(LOOPS, sizeof *racers);
    create_all(tasks, 600000);
    run_race(racers, tasks);
    store_close(store);
    check_race(racers, tasks, false);
    check_audit(racers);
    finish_race(racers, tasks);
    free(racers);
}
END_TEST

START_TEST(a_race_with_the_clock_has_one_winner)
{
    struct task *tasks[ROUNDS];
    struct racer *racers = calloc(LOOPS, sizeof *racers);
    /* Deadlines one millisecond apart, some before and some after the decisions. */
    create_all(tasks, 2);
    run_race(racers, tasks);
    store_close(store);
    check_race(racers, tasks, true);
    check_audit(racers);
    finish_race(racers, tasks);
    free(racers);
}
END_TEST

/* ---- limits under contention ---- */

struct creator {
    pthread_t thread;
    unsigned granted;
};

static void *create_many(void *context)
{
    static const struct store_limits limits = {50, 1000, INT64_MAX, INT64_MAX};
    struct creator *creator = context;
    struct bench bench = {&scratch, store, loop_create(NULL)};
    for (unsigned i = 0; i < ROUNDS; i++) {
        enum store_status status = create_status(&bench, new_task("auth:ab"), &limits);
        ck_assert(status == STORE_OK || status == STORE_LIMIT_PRINCIPAL);
        creator->granted += status == STORE_OK;
    }
    loop_destroy(bench.loop);
    return NULL;
}

START_TEST(limits_are_exact_under_contention)
{
    struct creator creators[LOOPS] = {0};
    for (unsigned i = 0; i < LOOPS; i++)
        ck_assert_int_eq(pthread_create(&creators[i].thread, NULL, create_many, &creators[i]), 0);
    unsigned granted = 0;
    for (unsigned i = 0; i < LOOPS; i++) {
        pthread_join(creators[i].thread, NULL);
        granted += creators[i].granted;
    }
    ck_assert_uint_eq(granted, 50);
    ck_assert_int_eq(store_pending_count(store), 50);
    store_close(store);
    ck_assert_int_eq(scratch_query(&scratch, "SELECT count(*) FROM task"), 50);
}
END_TEST

/* ---- observers on several loops ---- */

#define CHANGES ((size_t)LOOPS * ROUNDS)

struct listener {
    struct loop *loop;
    size_t count;
    char ids[CHANGES][TASK_ID_BYTES];
};

static void listen(void *context, struct task *task, bool created)
{
    struct listener *listener = context;
    ck_assert(created);
    ck_assert_uint_lt(listener->count, CHANGES);
    memcpy(listener->ids[listener->count++], task->id, TASK_ID_BYTES);
}

static void *create_own(void *context)
{
    (void)context;
    struct bench bench = {&scratch, store, loop_create(NULL)};
    struct answer answers[ROUNDS] = {0};
    for (unsigned i = 0; i < ROUNDS; i++)
        store_task_create(store, new_task("auth:ab"), &no_limits,
                          bench_call(bench.loop, &answers[i]));
    for (unsigned i = 0; i < ROUNDS; i++) {
        bench_wait(bench.loop, &answers[i]);
        ck_assert_int_eq(answers[i].status, STORE_OK);
        answer_finish(&answers[i]);
    }
    loop_destroy(bench.loop);
    return NULL;
}

START_TEST(every_loop_hears_the_same_order)
{
    struct listener *listeners = calloc(2, sizeof *listeners);
    for (unsigned i = 0; i < 2; i++) {
        listeners[i].loop = loop_create(NULL);
        store_observe(store, listeners[i].loop, listen, &listeners[i]);
    }
    pthread_t threads[LOOPS];
    for (unsigned i = 0; i < LOOPS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, create_own, NULL), 0);
    for (unsigned i = 0; i < 2; i++)
        bench_wait_count(listeners[i].loop, &listeners[i].count, CHANGES);
    for (unsigned i = 0; i < LOOPS; i++)
        pthread_join(threads[i], NULL);

    struct answer answer = {0};
    struct bench bench = {&scratch, store, loop_create(NULL)};
    struct store_task_query query = {.limit = 64};
    size_t at = CHANGES;
    do { /* the order of rows is the order of commits */
        list_tasks(&bench, &query, &answer);
        for (size_t i = 0; i < answer.task_count; i++) {
            at--;
            ck_assert_str_eq(listeners[0].ids[at], answer.tasks[i]->id);
            ck_assert_str_eq(listeners[1].ids[at], answer.tasks[i]->id);
        }
        query.behind_sequence = answer.sequences[answer.task_count - 1];
        bool has_more = answer.has_more;
        answer_finish(&answer);
        if (!has_more)
            break;
    } while (true);
    ck_assert_uint_eq(at, 0);
    store_close(store);
    loop_destroy(bench.loop);
    for (unsigned i = 0; i < 2; i++)
        loop_destroy(listeners[i].loop);
    free(listeners);
}
END_TEST

/* ---- the end ---- */

START_TEST(closing_answers_all_that_was_asked)
{
    struct loop *loop = loop_create(NULL);
    struct answer answers[200] = {0};
    for (unsigned i = 0; i < 200; i++)
        store_task_create(store, new_task("auth:ab"), &no_limits, bench_call(loop, &answers[i]));
    store_close(store);
    for (unsigned i = 0; i < 200; i++) {
        bench_wait(loop, &answers[i]);
        ck_assert_int_eq(answers[i].status, STORE_OK);
        answer_finish(&answers[i]);
    }
    loop_destroy(loop);
    ck_assert_int_eq(scratch_query(&scratch, "SELECT count(*) FROM task"), 200);
}
END_TEST

/* Asks again in its answer, as a handler does that reads before it changes. */
struct asker {
    struct loop *loop;
    struct answer *second;
    enum store_status first;
};

static void ask_again(void *context, const struct store_reply *reply)
{
    struct asker *asker = context;
    asker->first = reply->status;
    store_task_get(store, STR("tg_none"), bench_call(asker->loop, asker->second));
}

START_TEST(a_stopped_store_has_done_what_was_asked_and_refuses_the_rest)
{
    struct error error;
    struct answer second = {.arrived = false};
    struct asker asker = {loop_create(&error), &second, STORE_CONFLICT};
    store_task_create(store, new_task("auth:ab"), &no_limits,
                      (struct store_call){asker.loop, ask_again, &asker});
    store_stop(store);
    store_stop(store);
    bench_wait(asker.loop, &second);
    ck_assert_int_eq(asker.first, STORE_OK);
    ck_assert_int_eq(second.status, STORE_FAILED);
    answer_finish(&second);
    store_task_create(store, new_task("auth:ab"), &no_limits, (struct store_call){0});
    store_close(store);
    loop_destroy(asker.loop);
    ck_assert_int_eq(scratch_query(&scratch, "SELECT count(*) FROM task"), 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store threads");
    TCase *tests = tcase_create("threads");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, a_race_of_decisions_has_one_winner);
    tcase_add_test(tests, a_race_with_the_clock_has_one_winner);
    tcase_add_test(tests, limits_are_exact_under_contention);
    tcase_add_test(tests, every_loop_hears_the_same_order);
    tcase_add_test(tests, closing_answers_all_that_was_asked);
    tcase_add_test(tests, a_stopped_store_has_done_what_was_asked_and_refuses_the_rest);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
