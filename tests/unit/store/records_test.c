/* Lists of tasks, sessions, and the audit trail. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "taskgate/core/buffer.h"
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

static void reopen(void)
{
    bench_close(&bench);
    bench_open(&bench, &scratch);
}

static const struct task_change approve = {.to = TASK_APPROVED, .by = "alice"};
static const struct task_change execute = {.to = TASK_EXECUTING};
static const struct task_change give_back = {.to = TASK_APPROVED};
static const struct task_change cancel = {.to = TASK_CANCELLED};

/* ---- lists ---- */

static void create_of(const char *owner, const char *session, const char *source, const char *tool)
{
    struct task *task = new_task(owner);
    task_set_text(&task->session, str_from(session));
    task_set_text(&task->source, str_from(source));
    task_set_text(&task->tool, str_from(tool));
    task_unref(create_task(&bench, task));
}

START_TEST(pages_are_complete_newest_first_and_end)
{
    char *ids[45];
    for (unsigned i = 0; i < 45; i++) {
        struct task *task = create_task(&bench, new_task(i % 2 ? "a" : "b"));
        ids[i] = memory_copy_text(task->id);
        task_unref(task);
    }
    static const size_t sizes[] = {20, 20, 5};
    struct store_task_query query = {.limit = 20, .most_argument_bytes = 100};
    unsigned seen = 0;
    for (unsigned page = 0; page < 3; page++) {
        struct answer answer = {0};
        list_tasks(&bench, &query, &answer);
        ck_assert_uint_eq(answer.task_count, sizes[page]);
        ck_assert_int_eq(answer.has_more, page < 2);
        for (size_t i = 0; i < answer.task_count; i++)
            ck_assert_str_eq(answer.tasks[i]->id, ids[44 - seen++]);
        ck_assert_str_eq(answer.tasks[0]->arguments, "{\"name\":\"prod\"}");
        ck_assert_uint_eq(answer.tasks[0]->request_length, 0); /* lists bring no bulk */
        query.behind_sequence = answer.sequences[answer.task_count - 1];
        answer_finish(&answer);
    }
    query = (struct store_task_query){.owner = STR("a"), .limit = 22};
    struct answer answer = {0};
    list_tasks(&bench, &query, &answer);
    ck_assert_uint_eq(answer.task_count, 22);
    ck_assert(!answer.has_more);
    for (size_t i = 0; i < answer.task_count; i++)
        ck_assert_str_eq(answer.tasks[i]->owner, "a");
    answer_finish(&answer);
    for (unsigned i = 0; i < 45; i++)
        free(ids[i]);
}
END_TEST

/* Deadlines in an order of their own, some equal, and two tasks without one. */
START_TEST(pages_by_the_deadline_are_complete_and_without_one_last)
{
    static const int64_t minutes[] = {30, 10, 20, 10, 0, 50, 10, 40, 0, 20};
    enum { COUNT = sizeof minutes / sizeof *minutes };
    static const size_t order[] = {1, 3, 6, 2, 9, 0, 7, 5, 4, 8}; /* of equals the oldest first */
    char *ids[COUNT];
    int64_t now_ms = clock_now_ms();
    for (size_t i = 0; i < COUNT; i++) {
        struct task *task = minutes[i] > 0 ? new_task("a") : new_accelerated("a");
        task->decide_by_ms = minutes[i] > 0 ? now_ms + minutes[i] * 60000 : 0;
        task = create_task(&bench, task);
        ids[i] = memory_copy_text(task->id);
        task_unref(task);
    }
    task_unref(move_task(&bench, ids[2], &cancel)); /* another state keeps its place */
    struct store_task_query query = {.limit = 3, .order = STORE_BY_DECIDE_BY};
    size_t seen = 0;
    for (bool has_more = true; has_more;) {
        struct answer answer = {0};
        list_tasks(&bench, &query, &answer);
        for (size_t i = 0; i < answer.task_count; i++)
            ck_assert_str_eq(answer.tasks[i]->id, ids[order[seen++]]);
        has_more = answer.has_more;
        query.behind_sequence = answer.last_sequence;
        query.behind_decide_by_ms = answer.last_decide_by_ms;
        answer_finish(&answer);
    }
    ck_assert_uint_eq(seen, COUNT);
    for (size_t i = 0; i < COUNT; i++)
        free(ids[i]);
}
END_TEST

/* Lists must not multiply a long text of a client. */
START_TEST(long_arguments_are_left_out_and_long_pages_end_early)
{
    static const char brief[] = "{\"name\":\"prod\"}";
    struct buffer large = {0};
    buffer_append_text(&large, "{\"x\":\"");
    for (int i = 0; i < 40000; i++)
        buffer_append_text(&large, "\xC3\xA9"); /* two bytes, one character */
    buffer_append_text(&large, "\"}");
    char *whole = memory_copy_str(buffer_str(&large));
    for (unsigned i = 0; i < 6; i++) {
        struct task *task = new_task("a");
        if (i % 2)
            task_set_text(&task->arguments, buffer_str(&large));
        task_unref(create_task(&bench, task));
    }
    const struct {
        size_t most_argument_bytes, most_bytes, listed;
        const char *newest, *second;
    } cases[] = {
        {0, 0, 6, "", ""},
        {sizeof brief - 1, 0, 6, "", brief},
        {sizeof brief - 2, 0, 6, "", ""},
        {large.length - 1, 0, 6, "", brief},
        {large.length, 0, 6, NULL, brief},
        {SIZE_MAX, 1, 1, NULL, NULL},
        {SIZE_MAX, large.length + 100, 3, NULL, brief},
        {SIZE_MAX, 10 * large.length, 6, NULL, brief},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct answer answer = {0};
        list_tasks(&bench,
                   &(struct store_task_query){.limit = 20,
                                              .most_argument_bytes = cases[i].most_argument_bytes,
                                              .most_bytes = cases[i].most_bytes},
                   &answer);
        ck_assert_uint_eq(answer.task_count, cases[i].listed);
        ck_assert_int_eq(answer.has_more, cases[i].listed < 6);
        ck_assert_str_eq(answer.tasks[0]->arguments, cases[i].newest ? cases[i].newest : whole);
        if (cases[i].second)
            ck_assert_str_eq(answer.tasks[1]->arguments, cases[i].second);
        answer_finish(&answer);
    }
    free(whole);
    buffer_finish(&large);
}
END_TEST

/* More is asked for at once than one transaction may answer: each gets its answer all the same. */
START_TEST(answers_that_are_large_together_come_one_after_the_other)
{
    enum { ASKED = 64 };
    struct answer answers[ASKED] = {{0}};
    struct task *task = new_task("a");
    char *body = memory_alloc(1000001);
    memset(body, 'x', 1000000);
    task_set_request(task, str_slice(body, 1000000));
    struct task *created = create_task(&bench, task);
    for (unsigned i = 0; i < ASKED; i++)
        store_task_get(bench.store, str_from(created->id), bench_call(bench.loop, &answers[i]));
    for (unsigned i = 0; i < ASKED; i++) {
        bench_wait(bench.loop, &answers[i]);
        ck_assert_int_eq(answers[i].status, STORE_OK);
        ck_assert_uint_eq(answers[i].task->request_length, 1000000);
        answer_finish(&answers[i]);
    }
    task_unref(created);
    free(body);
}
END_TEST

START_TEST(conditions_combine)
{
    create_of("auth:1", "s1", "x", "t");
    create_of("auth:1", "s2", "x", "u");
    create_of("auth:2", "s1", "x", "t"); /* the same session under a new token */
    create_of("auth:2", "s3", "y", "t");
    create_of("anonymous", "", "y", "t");
    struct task *task = create_task(&bench, new_task("auth:3"));
    task_unref(move_task(&bench, task->id, &cancel));
    task_unref(task);

    ck_assert_uint_eq(count_listed(&bench, (struct store_task_query){.limit = 0}), 6);
    ck_assert_uint_eq(count_listed(&bench, (struct store_task_query){.owner = STR("auth:1")}), 2);
    ck_assert_uint_eq(count_listed(&bench, (struct store_task_query){.owner = STR("auth:1"),
                                                                     .session = STR("s1")}),
                      3);
    ck_assert_uint_eq(count_listed(&bench, (struct store_task_query){.session = STR("s1")}), 2);
    ck_assert_uint_eq(count_listed(&bench, (struct store_task_query){.owner = STR("auth:9"),
                                                                     .session = STR("s9")}),
                      0);
    ck_assert_uint_eq(
        count_listed(&bench, (struct store_task_query){.owner = STR("auth:2"), .source = STR("y")}),
        1);
    ck_assert_uint_eq(count_listed(&bench, (struct store_task_query){.owner = STR("auth:1"),
                                                                     .session = STR("s1"),
                                                                     .tool = STR("t")}),
                      2);
    ck_assert_uint_eq(count_listed(&bench, (struct store_task_query){.states = 1u << TASK_PENDING}),
                      5);
    ck_assert_uint_eq(
        count_listed(&bench, (struct store_task_query){.states = 1u << TASK_CANCELLED}), 1);
    ck_assert_uint_eq(
        count_listed(&bench,
                     (struct store_task_query){.states = 1u << TASK_CANCELLED | 1u << TASK_PENDING,
                                               .source = STR("x")}),
        3);
    ck_assert_uint_eq(count_listed(&bench, (struct store_task_query){.owner = STR("' OR '1'='1")}),
                      0);
}
END_TEST

/* ---- sessions ---- */

static enum store_status session_status(struct answer *answer, const char *source, const char *id)
{
    store_session_get(bench.store, str_from(source), str_from(id), bench_call(bench.loop, answer));
    bench_wait(bench.loop, answer);
    return answer->status;
}

static void put_session(const char *version, int64_t seen_ms)
{
    struct store_session session = {(char *)"files", (char *)"5e55", (char *)version,
                                    (char *)"sdk",   (char *)"1.2",  (char *)"{\"tasks\":{}}",
                                    (char *)"a",     true,           false,
                                    seen_ms};
    struct answer answer = {0};
    store_session_put(bench.store, &session, bench_call(bench.loop, &answer));
    bench_wait(bench.loop, &answer);
    ck_assert_int_eq(answer.status, STORE_OK);
    answer_finish(&answer);
}

static enum store_status pair_status(const char *session, const char *token)
{
    struct answer answer = {0};
    store_pair_get(bench.store, STR("files"), str_from(session), str_from(token),
                   bench_call(bench.loop, &answer));
    bench_wait(bench.loop, &answer);
    enum store_status status = answer.status;
    answer_finish(&answer);
    return status;
}

static void put_pair(const char *session, const char *token, int64_t at_ms)
{
    struct answer answer = {0};
    store_pair_put(bench.store, STR("files"), str_from(session), str_from(token), at_ms,
                   bench_call(bench.loop, &answer));
    bench_wait(bench.loop, &answer);
    ck_assert_int_eq(answer.status, STORE_OK);
    answer_finish(&answer);
}

START_TEST(sessions_survive_are_replaced_and_end)
{
    int64_t now_ms = clock_now_ms();
    struct answer answer = {0};
    put_session("2025-06-18", now_ms);
    put_session("2025-11-25", now_ms);
    reopen();
    ck_assert_int_eq(session_status(&answer, "files", "5e55"), STORE_OK);
    char expected[128];
    snprintf(expected, sizeof expected, "files|5e55|2025-11-25|sdk|1.2|{\"tasks\":{}}|1|0|%lld",
             (long long)now_ms);
    ck_assert_str_eq(answer.session_text, expected);
    answer_finish(&answer);
    ck_assert_int_eq(session_status(&answer, "other", "5e55"), STORE_NOT_FOUND);
    answer_finish(&answer);

    put_pair("5e55", "70ce", now_ms);
    store_session_delete(bench.store, STR("files"), STR("5e55"), bench_call(bench.loop, &answer));
    bench_wait(bench.loop, &answer);
    ck_assert_int_eq(answer.status, STORE_OK);
    answer_finish(&answer);
    ck_assert_int_eq(session_status(&answer, "files", "5e55"), STORE_NOT_FOUND);
    answer_finish(&answer);
    ck_assert_int_eq(pair_status("5e55", "70ce"), STORE_NOT_FOUND);
}
END_TEST

START_TEST(pairs_are_of_both_digests)
{
    int64_t now_ms = clock_now_ms();
    put_pair("5e55", "70ce", now_ms);
    put_pair("5e55", "70ce", now_ms - 5); /* late news do not turn the clock back */
    reopen();
    ck_assert_int_eq(pair_status("5e55", "70ce"), STORE_OK);
    ck_assert_int_eq(pair_status("5e55", "0000"), STORE_NOT_FOUND);
    ck_assert_int_eq(pair_status("0000", "70ce"), STORE_NOT_FOUND);
    ck_assert_int_eq(scratch_query(&scratch, "SELECT accepted_ms FROM pair"), now_ms);
}
END_TEST

START_TEST(sessions_that_nobody_uses_are_forgotten)
{
    struct answer answer = {0};
    put_session("2025-11-25", 1000);
    put_pair("5e55", "70ce", 1000);
    reopen();
    ck_assert_int_eq(session_status(&answer, "files", "5e55"), STORE_NOT_FOUND);
    answer_finish(&answer);
    ck_assert_int_eq(pair_status("5e55", "70ce"), STORE_NOT_FOUND);

    put_session("2025-11-25", 1000); /* old, but its token was accepted lately */
    put_pair("5e55", "70ce", clock_now_ms());
    reopen();
    ck_assert_int_eq(session_status(&answer, "files", "5e55"), STORE_OK);
    answer_finish(&answer);
}
END_TEST

/* Anybody can open sessions without end: the latest stay, of one owner and in all. */
START_TEST(sessions_are_bounded)
{
    enum { OF_OWNER = STORE_SESSIONS_MAX / 4 };
    char sql[512];
    int64_t now_ms = clock_now_ms();
    const char *names = scratch_is_postgres() ? "taskgate_session" : "session";
    bench_close(&bench);
    /* Those of many owners, and as many of "a" as one may have. */
    snprintf(sql, sizeof sql,
             "INSERT INTO %s (source, id_digest, version, client_name, client_version,"
             " client_capabilities, upstream_tasks, upstream_sse, seen_ms, owner)"
             " WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)"
             " SELECT 'files', 's' || i, '', '', '', '', 0, 0, %lld + i,"
             " CASE WHEN i <= %d THEN 'a' ELSE 'b' || i END FROM n",
             names, STORE_SESSIONS_MAX, (long long)now_ms - 2 * STORE_SESSIONS_MAX, OF_OWNER);
    ck_assert_int_eq(scratch_execute(&scratch, sql), 0);
    bench_open(&bench, &scratch);
    struct answer answer = {0};
    put_pair("s1", "70ce", now_ms); /* the oldest, but it is used */
    put_session("2025-11-25", now_ms);
    ck_assert_int_eq(scratch_query(&scratch, "SELECT count(*) FROM session WHERE owner = 'a'"),
                     OF_OWNER);
    ck_assert_int_eq(session_status(&answer, "files", "s1"), STORE_OK);
    answer_finish(&answer);
    ck_assert_int_eq(session_status(&answer, "files", "s2"), STORE_NOT_FOUND);
    answer_finish(&answer);
    ck_assert_int_eq(session_status(&answer, "files", "5e55"), STORE_OK);
    answer_finish(&answer);

    for (unsigned i = 0; i < 64; i++) { /* of another owner each */
        struct store_session session = {.source = (char *)"files", .seen_ms = now_ms};
        session.id_digest = memory_format("other%u", i);
        session.owner = memory_format("c%u", i);
        store_session_put(bench.store, &session, bench_call(bench.loop, &answer));
        bench_wait(bench.loop, &answer);
        answer_finish(&answer);
        free(session.id_digest);
        free(session.owner);
    }
    int64_t left = scratch_query(&scratch, "SELECT count(*) FROM session");
    ck_assert_int_ge(left, STORE_SESSIONS_MAX);
    ck_assert_int_lt(left, STORE_SESSIONS_MAX + 64);
}
END_TEST

START_TEST(the_end_of_a_session_cancels_what_it_owns)
{
    create_of("session:5e55", "5e55", "files", "t");
    create_of("session:5e55", "5e55", "other", "t");
    create_of("auth:70ce", "5e55", "files", "t");
    struct task *approved = new_accelerated("session:5e55");
    approved = create_task(&bench, approved);
    struct task *running = create_task(&bench, new_task("session:5e55"));
    task_unref(move_task(&bench, running->id, &approve));
    task_unref(move_task(&bench, running->id, &execute));
    struct answer answer = {0};
    store_task_cancel_session(bench.store, STR("files"), STR("5e55"), STR("anonymous"),
                              bench_call(bench.loop, &answer));
    bench_wait(bench.loop, &answer);
    ck_assert_int_eq(answer.status, STORE_OK);
    answer_finish(&answer);
    ck_assert_uint_eq(
        count_listed(&bench, (struct store_task_query){.states = 1u << TASK_CANCELLED}), 2);
    ck_assert_uint_eq(
        count_listed(&bench, (struct store_task_query){.states = 1u << TASK_EXECUTING}), 1);
    ck_assert_uint_eq(count_listed(&bench, (struct store_task_query){.owner = STR("auth:70ce"),
                                                                     .states = 1u << TASK_PENDING}),
                      1);
    ck_assert_uint_eq(count_listed(&bench, (struct store_task_query){.source = STR("other"),
                                                                     .states = 1u << TASK_PENDING}),
                      1);
    audit_of(&bench, approved->id, &answer);
    ck_assert_ptr_nonnull(
        strstr(answer.audit_text, "cancel approved>cancelled client session:5e55"));
    answer_finish(&answer);
    task_unref(approved);
    task_unref(running);
}
END_TEST

/* ---- audit ---- */

START_TEST(every_move_leaves_an_entry)
{
    struct task *task = create_task(&bench, new_task("auth:ab"));
    task_unref(
        move_task(&bench, task->id,
                  &(struct task_change){.to = TASK_APPROVED, .by = "alice", .reason = "ok"}));
    task_unref(move_task(&bench, task->id, &execute));
    task_unref(move_task(&bench, task->id, &give_back));
    task_unref(move_task(&bench, task->id, &execute));
    change_status(&bench, task->id, &approve); /* an operator cannot have it run again */
    task_unref(move_task(&bench, task->id,
                         &(struct task_change){.to = TASK_COMPLETED,
                                               .claim = 1,
                                               .outcome = TASK_OUTCOME_RESULT,
                                               .outcome_text = STR("{}")}));
    change_status(&bench, task->id, &cancel); /* refused: no entry */
    struct answer answer = {0};
    audit_of(&bench, task->id, &answer);
    ck_assert_str_eq(answer.audit_text, "create >pending client auth:ab \n"
                                        "approve pending>approved operator alice ok\n"
                                        "execute approved>executing operator alice \n"
                                        "give_back executing>approved operator alice \n"
                                        "execute approved>executing operator alice \n"
                                        "complete executing>completed operator alice \n");
    answer_finish(&answer);
    audit_of(&bench, "tg_none", &answer);
    ck_assert_str_eq(answer.audit_text, "");
    answer_finish(&answer);
    task_unref(task);
}
END_TEST

START_TEST(the_audit_trail_cannot_be_changed)
{
    task_unref(create_task(&bench, new_task("auth:ab")));
    static const char *const attempts[] = {
        "UPDATE audit SET reason = 'x'",
        "DELETE FROM audit",
        "INSERT OR REPLACE INTO audit SELECT * FROM audit",
    };
    for (size_t i = 0; i < sizeof attempts / sizeof *attempts; i++)
        ck_assert_int_ne(scratch_execute(&scratch, attempts[i]), SQLITE_OK);
    ck_assert_int_eq(scratch_query(&scratch, "SELECT count(*) FROM audit WHERE event = 'create'"),
                     1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store records");
    TCase *tests = tcase_create("store records");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, pages_are_complete_newest_first_and_end);
    tcase_add_test(tests, pages_by_the_deadline_are_complete_and_without_one_last);
    tcase_add_test(tests, long_arguments_are_left_out_and_long_pages_end_early);
    tcase_add_test(tests, answers_that_are_large_together_come_one_after_the_other);
    tcase_add_test(tests, conditions_combine);
    tcase_add_test(tests, sessions_survive_are_replaced_and_end);
    tcase_add_test(tests, pairs_are_of_both_digests);
    tcase_add_test(tests, sessions_that_nobody_uses_are_forgotten);
    tcase_add_test(tests, sessions_are_bounded);
    tcase_add_test(tests, the_end_of_a_session_cancels_what_it_owns);
    tcase_add_test(tests, every_move_leaves_an_entry);
    tcase_add_test(tests, the_audit_trail_cannot_be_changed);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
