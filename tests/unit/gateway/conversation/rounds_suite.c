/* The questions of servers to the clients of modern tasks. */
#include "suites.h"

#include "conversation/rounds.h"
#include "taskgate/json/text.h"

#define TASK STR("tg_1")
#define ASKED STR("{\"a\":{\"method\":\"roots/list\"},\"b \\\"c\\\"\":{\"n\":1.0}}")

static void expect_shown(struct question_table *rounds, const char *expected, int64_t expected_ms)
{
    struct buffer shown;
    int64_t changed_ms = 0;
    buffer_init(&shown);
    bool is_asking = rounds_show(rounds, TASK, &shown, &changed_ms);
    buffer_append_char(&shown, '\0');
    ck_assert_str_eq(shown.bytes, expected);
    ck_assert_int_eq(is_asking, expected[0] != '\0');
    ck_assert_int_eq(changed_ms, expected_ms);
    buffer_finish(&shown);
}

static void expect_taken(struct question_table *rounds, bool whole, const char *expected)
{
    struct rounds_taken given = {0};
    bool taken = whole ? rounds_take(rounds, TASK, &given) : rounds_take_some(rounds, TASK, &given);
    buffer_append_char(&given.answers, '\0');
    ck_assert_str_eq(given.answers.bytes, expected);
    ck_assert_int_eq(taken, expected[0] != '\0');
    ck_assert_uint_eq(json_count(buffer_str(&given.questions)),
                      taken ? json_count(str_from(given.answers.bytes)) : 0);
    rounds_taken_finish(&given);
}

START_TEST(a_round_is_whole_when_all_is_answered)
{
    struct question_table *rounds = question_table_create();
    expect_shown(rounds, "", 0);
    ck_assert(!rounds_answer(rounds, TASK, STR("{\"r1:a\":1}"), 5));
    rounds_put(rounds, TASK, 1, ASKED, 10);
    expect_shown(rounds, "{\"r1:a\":{\"method\":\"roots/list\"},\"r1:b \\\"c\\\"\":{\"n\":1.0}}",
                 10);
    ck_assert(!rounds_answer(rounds, TASK, STR("{\"a\":1,\"r2:a\":1,\"x\":1}"), 11));
    ck_assert(rounds_answer(rounds, TASK, STR("{\"r1\\u003aa\":{\"v\":1.0}}"), 12));
    ck_assert(!rounds_answer(rounds, TASK, STR("{\"r1:a\":2}"), 13));
    expect_shown(rounds, "{\"r1:b \\\"c\\\"\":{\"n\":1.0}}", 12);
    expect_taken(rounds, true, "");
    ck_assert(rounds_answer(rounds, TASK, STR("{\"r1:b \\\"c\\\"\":null}"), 14));
    expect_shown(rounds, "", 14);
    expect_taken(rounds, true, "{\"a\":{\"v\":1.0},\"b \\\"c\\\"\":null}");
    expect_taken(rounds, true, ""); /* each answer goes up once */
    question_table_destroy(rounds);
}
END_TEST

START_TEST(a_later_round_has_other_keys)
{
    struct question_table *rounds = question_table_create();
    rounds_put(rounds, TASK, 1, STR("{\"a\":1}"), 10);
    ck_assert(rounds_answer(rounds, TASK, STR("{\"r1:a\":1}"), 11));
    rounds_put(rounds, TASK, 2, STR("{\"a\":2}"), 12);
    expect_shown(rounds, "{\"r2:a\":2}", 12);
    ck_assert(!rounds_answer(rounds, TASK, STR("{\"r1:a\":1}"), 13));
    rounds_forget(rounds, TASK);
    expect_shown(rounds, "", 0);
    ck_assert(!rounds_answer(rounds, TASK, STR("{\"r2:a\":1}"), 14));
    question_table_destroy(rounds);
}
END_TEST

/* A server's own task says in each poll what it still asks. */
START_TEST(a_repeated_question_keeps_its_answer)
{
    struct question_table *rounds = question_table_create();
    rounds_put(rounds, TASK, 1, STR("{\"a\":1,\"b\":2}"), 10);
    ck_assert(rounds_answer(rounds, TASK, STR("{\"r1:a\":7}"), 11));
    expect_taken(rounds, false, "{\"a\":7}");
    expect_taken(rounds, false, "");
    rounds_put(rounds, TASK, 1, STR("{\"a\":1,\"b\":2,\"c\":3}"), 12);
    expect_shown(rounds, "{\"r1:b\":2,\"r1:c\":3}", 12);
    expect_taken(rounds, false, "");
    ck_assert(rounds_put(rounds, TASK, 1, STR("{\"b\":2}"), 13));
    ck_assert_msg(!rounds_put(rounds, TASK, 1, STR("{\"b\":2}"), 14), "nothing is new");
    ck_assert(!rounds_answer(rounds, TASK, STR("{\"r1:c\":9}"), 14));
    ck_assert(rounds_answer(rounds, TASK, STR("{\"r1:b\":8}"), 15));
    expect_taken(rounds, false, "{\"b\":8}");
    question_table_destroy(rounds);
}
END_TEST

TCase *rounds_tests(void)
{
    TCase *tests = tcase_create("rounds");
    tcase_add_test(tests, a_round_is_whole_when_all_is_answered);
    tcase_add_test(tests, a_later_round_has_other_keys);
    tcase_add_test(tests, a_repeated_question_keeps_its_answer);
    return tests;
}
