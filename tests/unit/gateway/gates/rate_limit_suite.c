/* The rate limit, by a clock that the test holds. */
#include <stdio.h>

#include "gates/rate_limit.h"
#include "suites.h"

static int allowed_of(struct seen_table *rate_limit, const char *peer, int tries,
                      int64_t per_second, int64_t at_ms)
{
    int allowed = 0;
    for (int i = 0; i < tries; i++)
        allowed += rate_limit_allows(rate_limit, str_from(peer), per_second, at_ms);
    return allowed;
}

START_TEST(a_bucket_holds_twice_the_rate_and_fills_with_it)
{
    struct seen_table *rate_limit = rate_limit_create();
    ck_assert_int_eq(allowed_of(rate_limit, "a", 50, 10, 1000), 20);
    ck_assert_int_eq(allowed_of(rate_limit, "a", 50, 10, 1099), 0);
    ck_assert_int_eq(allowed_of(rate_limit, "a", 50, 10, 1100), 1);
    ck_assert_int_eq(allowed_of(rate_limit, "a", 50, 10, 1600), 5);
    ck_assert_int_eq(allowed_of(rate_limit, "a", 50, 10, 1000000), 20);
    seen_table_destroy(rate_limit);
}
END_TEST

START_TEST(one_peer_takes_nothing_from_another)
{
    struct seen_table *rate_limit = rate_limit_create();
    ck_assert_int_eq(allowed_of(rate_limit, "a", 5, 1, 0), 2);
    ck_assert_int_eq(allowed_of(rate_limit, "b", 5, 1, 0), 2);
    ck_assert_int_eq(allowed_of(rate_limit, "a", 5, 1, 0), 0);
    seen_table_destroy(rate_limit);
}
END_TEST

/* Loops read the clock for themselves: a request may bring an earlier time than the one before. */
START_TEST(a_clock_that_goes_back_gives_nothing_away)
{
    struct seen_table *rate_limit = rate_limit_create();
    ck_assert_int_eq(allowed_of(rate_limit, "a", 5, 1, 1000), 2);
    for (int i = 0; i < 100; i++) {
        ck_assert_int_eq(allowed_of(rate_limit, "a", 1, 1, 900), 0);
        ck_assert_int_eq(allowed_of(rate_limit, "a", 1, 1, 1000), 0);
    }
    seen_table_destroy(rate_limit);
}
END_TEST

START_TEST(more_peers_than_are_told_apart_take_no_more_memory)
{
    struct seen_table *rate_limit = rate_limit_create();
    char peer[32];
    ck_assert_int_eq(allowed_of(rate_limit, "goes on", 5, 1, 0), 2);
    for (int i = 0; i < 30000; i++) {
        snprintf(peer, sizeof peer, "2001:db8::%x", (unsigned)i);
        ck_assert(rate_limit_allows(rate_limit, str_from(peer), 1, 0));
        if (i % 1000 == 0) /* who is seen is not forgotten */
            ck_assert_int_eq(allowed_of(rate_limit, "goes on", 1, 1, 0), 0);
    }
    seen_table_destroy(rate_limit);
}
END_TEST

TCase *rate_limit_tests(void)
{
    TCase *tests = tcase_create("rate");
    tcase_add_test(tests, a_bucket_holds_twice_the_rate_and_fills_with_it);
    tcase_add_test(tests, one_peer_takes_nothing_from_another);
    tcase_add_test(tests, a_clock_that_goes_back_gives_nothing_away);
    tcase_add_test(tests, more_peers_than_are_told_apart_take_no_more_memory);
    return tests;
}
