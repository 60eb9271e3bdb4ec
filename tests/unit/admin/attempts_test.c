/* Sign-ins that have begun: once, in their browser, for ten minutes, and no more than 1,000. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "attempts.h"

static struct attempts *attempts;

static void start(void)
{
    attempts = attempts_create();
}

static void finish(void)
{
    attempts_destroy(attempts);
}

static bool take(const char *state, const char *cookie, int64_t now_ms)
{
    struct attempt attempt;
    return attempts_take(attempts, str_from(state), str_from(cookie), now_ms, &attempt);
}

START_TEST(one_is_good_once_in_its_browser)
{
    struct attempt begun = *attempts_begin(attempts, STR("mine"), 1000);
    struct attempt taken;
    ck_assert(!take(begun.state, "another's", 1000));
    ck_assert(!take("", "mine", 1000));
    ck_assert(attempts_take(attempts, str_from(begun.state), STR("mine"), 1000, &taken));
    ck_assert_str_eq(taken.nonce, begun.nonce);
    ck_assert_str_eq(taken.verifier, begun.verifier);
    ck_assert_str_ne(taken.nonce, taken.verifier);
    ck_assert(!take(begun.state, "mine", 1000));
}
END_TEST

START_TEST(one_is_over_after_ten_minutes)
{
    struct attempt first = *attempts_begin(attempts, STR("mine"), 1000);
    struct attempt second = *attempts_begin(attempts, STR("mine"), 1000);
    ck_assert(take(first.state, "mine", 1000 + ATTEMPT_LIFE_MS - 1));
    ck_assert(!take(second.state, "mine", 1000 + ATTEMPT_LIFE_MS));
}
END_TEST

START_TEST(of_more_than_1000_the_oldest_go)
{
    struct attempt first = *attempts_begin(attempts, STR("mine"), 1);
    struct attempt second = *attempts_begin(attempts, STR("mine"), 1);
    for (int i = 0; i < 999; i++)
        attempts_begin(attempts, STR("others"), 1);
    ck_assert(!take(first.state, "mine", 1));
    ck_assert(take(second.state, "mine", 1));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("attempts");
    TCase *tests = tcase_create("attempts");
    tcase_add_checked_fixture(tests, start, finish);
    tcase_add_test(tests, one_is_good_once_in_its_browser);
    tcase_add_test(tests, one_is_over_after_ten_minutes);
    tcase_add_test(tests, of_more_than_1000_the_oldest_go);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
