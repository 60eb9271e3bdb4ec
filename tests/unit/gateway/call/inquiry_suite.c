/* A question of one worker to all: who answers it, on which loop, and what comes when nobody does.
 */
#include "call/broadcast.h"

#include <stdlib.h>

#include "suites.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/memory.h"

enum { WORKERS = 3 };

static struct gateway_worker workers[WORKERS];
static struct gateway_worker *list[WORKERS];
static struct gateway gateway;

/* The workers that know, and counts of the calls. */
static bool knowing[WORKERS];
static int looks[WORKERS], answers[WORKERS];
static int dones, destroyed;
static enum inquiry_end last_end;

struct sum {
    struct inquiry base; /* first */
    long answer;
};

static bool knows(struct gateway_worker *worker, struct inquiry *inquiry)
{
    ck_assert(loop_is_current(worker->loop));
    looks[worker - workers]++;
    return knowing[worker - workers];
}

static void answer(struct gateway_worker *worker, struct inquiry *inquiry)
{
    answers[worker - workers]++;
    ((struct sum *)inquiry)->answer = 40 + (worker - workers);
}

static void done(struct inquiry *inquiry, enum inquiry_end end)
{
    ck_assert_int_eq(destroyed, 0);
    dones++;
    last_end = end;
    long expected = 0;
    for (size_t i = 0; i < WORKERS; i++)
        expected += answers[i] ? 40 + (long)i : 0;
    ck_assert_int_eq(((struct sum *)inquiry)->answer, expected);
}

static void destroy(struct inquiry *inquiry)
{
    destroyed++;
    free(inquiry);
}

static const struct inquiry_kind kind = {knows, answer, done, destroy};

static void set_up(void)
{
    struct error error = {""};
    gateway = (struct gateway){.workers = list, .worker_count = WORKERS};
    for (size_t i = 0; i < WORKERS; i++) {
        workers[i] = (struct gateway_worker){.gateway = &gateway, .loop = loop_create(&error)};
        ck_assert_ptr_nonnull(workers[i].loop);
        list[i] = &workers[i];
        knowing[i] = false;
        looks[i] = answers[i] = 0;
    }
    dones = destroyed = 0;
}

static void tear_down(void)
{
    for (size_t i = 0; i < WORKERS; i++)
        loop_destroy(workers[i].loop);
}

static void ask(void)
{
    struct sum *sum = memory_alloc(sizeof *sum);
    inquiry_begin(&sum->base, &kind, &workers[0]);
}

/* One round of each loop, in the order of the list, and one more of the asker. */
static void run_all(void)
{
    for (size_t i = 0; i < WORKERS; i++)
        loop_run_once(workers[i].loop, 0);
    loop_run_once(workers[0].loop, 0);
}

START_TEST(the_worker_that_knows_answers_and_the_asker_hears_it_on_its_own_loop)
{
    knowing[2] = true;
    ask();
    ck_assert_int_eq(dones, 0);
    for (size_t i = 1; i < WORKERS; i++)
        loop_run_once(workers[i].loop, 0);
    ck_assert_int_eq(answers[2], 1);
    ck_assert_int_eq(dones, 0); /* the asker's loop has not run */
    loop_run_once(workers[0].loop, 0);
    ck_assert_int_eq(dones, 1);
    ck_assert_int_eq(last_end, INQUIRY_ANSWERED);
    run_all();
    ck_assert_int_eq(dones, 1);
    ck_assert_int_eq(destroyed, 1);
}
END_TEST

START_TEST(of_several_that_know_one_answers)
{
    knowing[1] = knowing[2] = true;
    ask();
    run_all();
    ck_assert_int_eq(answers[1] + answers[2], 1);
    ck_assert_int_eq(dones, 1);
    ck_assert_int_eq(last_end, INQUIRY_ANSWERED);
    run_all();
    ck_assert_int_eq(destroyed, 1);
}
END_TEST

START_TEST(when_nobody_knows_the_asker_hears_so_after_all_have_looked)
{
    ask();
    loop_run_once(workers[0].loop, 0);
    loop_run_once(workers[1].loop, 0);
    loop_run_once(workers[0].loop, 0);
    ck_assert_int_eq(dones, 0);
    loop_run_once(workers[2].loop, 0);
    loop_run_once(workers[0].loop, 0);
    ck_assert_int_eq(dones, 1);
    ck_assert_int_eq(last_end, INQUIRY_UNKNOWN);
    ck_assert_int_eq(destroyed, 1);
}
END_TEST

START_TEST(an_asker_that_knows_asks_nobody_else)
{
    knowing[0] = knowing[1] = true;
    ask();
    ck_assert_int_eq(dones, 1);
    ck_assert_int_eq(destroyed, 1);
    run_all();
    ck_assert_int_eq(looks[1] + looks[2], 0);
    ck_assert_int_eq(answers[0], 1);
}
END_TEST

START_TEST(a_worker_alone_hears_at_once_that_nobody_knows)
{
    gateway.worker_count = 1;
    ask();
    ck_assert_int_eq(dones, 1);
    ck_assert_int_eq(last_end, INQUIRY_UNKNOWN);
    ck_assert_int_eq(destroyed, 1);
}
END_TEST

START_TEST(a_worker_that_looks_too_late_answers_nothing)
{
    int64_t begun_ms = clock_monotonic_ms();
    knowing[2] = true;
    ask();
    while (dones == 0 && clock_monotonic_ms() < begun_ms + 20 * INQUIRY_PATIENCE_MS) {
        loop_run_once(workers[1].loop, 0);
        loop_run_once(workers[0].loop, INQUIRY_PATIENCE_MS);
    }
    ck_assert_int_eq(dones, 1);
    ck_assert_int_eq(last_end, INQUIRY_LATE);
    ck_assert_int_ge(clock_monotonic_ms() - begun_ms, INQUIRY_PATIENCE_MS);
    ck_assert_int_eq(destroyed, 0); /* a message is under way */
    loop_run_once(workers[2].loop, 0);
    ck_assert_int_eq(answers[2], 0);
    run_all();
    ck_assert_int_eq(dones, 1);
    ck_assert_int_eq(destroyed, 1);
}
END_TEST

TCase *inquiry_tests(void)
{
    TCase *tests = tcase_create("inquiry");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, the_worker_that_knows_answers_and_the_asker_hears_it_on_its_own_loop);
    tcase_add_test(tests, of_several_that_know_one_answers);
    tcase_add_test(tests, when_nobody_knows_the_asker_hears_so_after_all_have_looked);
    tcase_add_test(tests, an_asker_that_knows_asks_nobody_else);
    tcase_add_test(tests, a_worker_alone_hears_at_once_that_nobody_knows);
    tcase_add_test(tests, a_worker_that_looks_too_late_answers_nothing);
    return tests;
}
