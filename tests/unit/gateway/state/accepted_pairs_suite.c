/* The (session, token) pairs that a server has accepted. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "state/session_table.h"
#include "suites.h"

#define SOURCE STR("up")
#define MINUTE_MS INT64_C(60000)

static const struct config_limits limits = {.sessions = 100, .sessions_per_principal = 5000};

static bool note(struct seen_table *pairs, struct str source, struct str session, struct str token,
                 int64_t now_ms, const struct config_limits *bounds)
{
    char *forgotten;
    bool is_news = accepted_pairs_note(pairs, source, session, token, now_ms, bounds, &forgotten);
    free(forgotten);
    return is_news;
}

static bool is_accepted(struct seen_table *pairs, const char *session, struct str token)
{
    return accepted_pairs_ago_ms(pairs, SOURCE, str_from(session), token, 0) != INT64_MAX;
}

START_TEST(acceptance_is_of_the_pair_and_grows_old)
{
    struct seen_table *pairs = accepted_pairs_create();
    ck_assert_int_eq(accepted_pairs_ago_ms(pairs, SOURCE, STR("s"), STR("a"), 0), INT64_MAX);
    ck_assert(note(pairs, SOURCE, STR("s"), STR("a"), 1000, &limits));
    ck_assert_int_eq(accepted_pairs_ago_ms(pairs, SOURCE, STR("s"), STR("a"), 1500), 500);
    ck_assert_int_eq(accepted_pairs_ago_ms(pairs, SOURCE, STR("s"), STR("b"), 1500), INT64_MAX);
    ck_assert_int_eq(accepted_pairs_ago_ms(pairs, SOURCE, STR("t"), STR("a"), 1500), INT64_MAX);
    ck_assert_int_eq(accepted_pairs_ago_ms(pairs, STR("x"), STR("s"), STR("a"), 1500), INT64_MAX);
    ck_assert_int_eq(accepted_pairs_ago_ms(pairs, SOURCE, STR(""), STR("a"), 1500), INT64_MAX);
    seen_table_destroy(pairs);
}
END_TEST

START_TEST(news_of_a_pair_come_once_a_minute)
{
    struct seen_table *pairs = accepted_pairs_create();
    ck_assert(note(pairs, SOURCE, STR("s"), STR("a"), 0, &limits));
    ck_assert(!note(pairs, SOURCE, STR("s"), STR("a"), MINUTE_MS, &limits));
    ck_assert_int_eq(accepted_pairs_ago_ms(pairs, SOURCE, STR("s"), STR("a"), MINUTE_MS),
                     MINUTE_MS);
    ck_assert(note(pairs, SOURCE, STR("s"), STR("a"), MINUTE_MS + 1, &limits));
    ck_assert_int_eq(accepted_pairs_ago_ms(pairs, SOURCE, STR("s"), STR("a"), MINUTE_MS + 1), 0);
    seen_table_destroy(pairs);
}
END_TEST

START_TEST(a_pair_that_is_removed_is_accepted_no_longer)
{
    struct seen_table *pairs = accepted_pairs_create();
    note(pairs, SOURCE, STR("s"), STR("a"), 0, &limits);
    note(pairs, SOURCE, STR("t"), STR("a"), 0, &limits);
    accepted_pairs_remove(pairs, SOURCE, STR("s"), STR("a"));
    ck_assert_int_eq(accepted_pairs_ago_ms(pairs, SOURCE, STR("s"), STR("a"), 0), INT64_MAX);
    ck_assert_int_eq(accepted_pairs_ago_ms(pairs, SOURCE, STR("t"), STR("a"), 0), 0);
    accepted_pairs_remove(pairs, SOURCE, STR("s"), STR("a"));
    seen_table_destroy(pairs);
}
END_TEST

START_TEST(past_the_limit_pairs_not_seen_for_longest_go)
{
    struct seen_table *pairs = accepted_pairs_create();
    char name[32];
    int known = 0;
    for (int i = 0; i < 5000; i++) {
        snprintf(name, sizeof name, "b%d", i);
        note(pairs, SOURCE, STR("s"), str_from(name), 0, &limits);
        ck_assert_int_eq(note(pairs, SOURCE, STR("kept"), STR("a"), 0, &limits), i == 0);
    }
    for (int i = 0; i < 5000; i++) {
        snprintf(name, sizeof name, "b%d", i);
        known += is_accepted(pairs, "s", str_from(name));
    }
    ck_assert_int_gt(known, 100);
    ck_assert_int_le(known, 216 + 16); /* twice the limit, rounded up in each shard */
    ck_assert(is_accepted(pairs, "s", STR("b4999")));
    ck_assert_int_eq(accepted_pairs_ago_ms(pairs, SOURCE, STR("kept"), STR("a"), 0), 0);
    seen_table_destroy(pairs);
}
END_TEST

START_TEST(a_pair_that_is_looked_up_has_been_seen)
{
    struct seen_table *pairs = accepted_pairs_create();
    char name[32];
    note(pairs, SOURCE, STR("polls"), STR("a"), 0, &limits);
    for (int i = 0; i < 5000; i++) {
        ck_assert_int_eq(accepted_pairs_ago_ms(pairs, SOURCE, STR("polls"), STR("a"), i), i);
        snprintf(name, sizeof name, "s%d", i);
        note(pairs, SOURCE, str_from(name), STR("b"), 0, &limits);
    }
    seen_table_destroy(pairs);
}
END_TEST

START_TEST(the_sessions_of_one_token_make_room_for_each_other_alone)
{
    const struct config_limits few = {.sessions = 1000, .sessions_per_principal = 3};
    struct seen_table *pairs = accepted_pairs_create();
    note(pairs, SOURCE, STR("b"), STR("other"), 0, &few);
    static const char *const names[] = {"s1", "s2", "s3"};
    for (size_t i = 0; i < 3; i++)
        note(pairs, SOURCE, str_from(names[i]), STR("a"), 0, &few);
    /* Seen again, so that the second is the one not seen for longest. */
    note(pairs, SOURCE, STR("s1"), STR("a"), 2 * MINUTE_MS, &few);
    char *forgotten;
    accepted_pairs_note(pairs, SOURCE, STR("s4"), STR("a"), 0, &few, &forgotten);
    ck_assert_str_eq(forgotten, "s2");
    free(forgotten);
    ck_assert(is_accepted(pairs, "s1", STR("a")));
    ck_assert(!is_accepted(pairs, "s2", STR("a")));
    ck_assert(is_accepted(pairs, "s3", STR("a")));
    ck_assert(is_accepted(pairs, "s4", STR("a")));
    ck_assert(is_accepted(pairs, "b", STR("other")));
    /* One that has ended counts no more, and those without a token do not count. */
    accepted_pairs_remove(pairs, SOURCE, STR("s3"), STR("a"));
    note(pairs, SOURCE, STR("s5"), STR("a"), 0, &few);
    static const char *const nobodys[] = {"v", "w", "x", "y", "z"};
    for (size_t i = 0; i < 5; i++)
        note(pairs, SOURCE, str_from(nobodys[i]), STR(""), 0, &few);
    ck_assert(is_accepted(pairs, "s1", STR("a")) && is_accepted(pairs, "s4", STR("a")));
    ck_assert(is_accepted(pairs, "v", STR("")));
    seen_table_destroy(pairs);
}
END_TEST

TCase *accepted_pairs_tests(void)
{
    TCase *tests = tcase_create("accepted pairs");
    tcase_add_test(tests, acceptance_is_of_the_pair_and_grows_old);
    tcase_add_test(tests, news_of_a_pair_come_once_a_minute);
    tcase_add_test(tests, a_pair_that_is_removed_is_accepted_no_longer);
    tcase_add_test(tests, past_the_limit_pairs_not_seen_for_longest_go);
    tcase_add_test(tests, a_pair_that_is_looked_up_has_been_seen);
    tcase_add_test(tests, the_sessions_of_one_token_make_room_for_each_other_alone);
    return tests;
}
