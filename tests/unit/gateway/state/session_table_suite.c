/* Known facts about sessions, and the tokens accepted in them. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "state/session_table.h"
#include "suites.h"

#define SOURCE STR("up")
#define MINUTE_MS INT64_C(60000)

static const struct config_limits limits = {.sessions = 100, .sessions_per_principal = 5000};

static struct session_facts facts_of(const char *name)
{
    struct session_facts facts = {.known = true, .server.has_tasks = true};
    snprintf(facts.client.name, sizeof facts.client.name, "%s", name);
    return facts;
}

START_TEST(facts_are_those_of_the_source_and_session)
{
    struct sessions *sessions = sessions_create();
    struct session_facts one = facts_of("one"), two = facts_of("two"), seen;
    sessions_put(sessions, SOURCE, STR("s"), &one, 100);
    sessions_put(sessions, STR("other"), STR("s"), &two, 100);
    ck_assert(sessions_get(sessions, SOURCE, STR("s"), &seen));
    ck_assert_str_eq(seen.client.name, "one");
    ck_assert(sessions_get(sessions, STR("other"), STR("s"), &seen));
    ck_assert_str_eq(seen.client.name, "two");
    ck_assert(!sessions_get(sessions, SOURCE, STR("t"), &seen));
    sessions_put(sessions, SOURCE, STR("s"), &two, 100);
    ck_assert(sessions_get(sessions, SOURCE, STR("s"), &seen));
    ck_assert_str_eq(seen.client.name, "two");
    sessions_destroy(sessions);
}
END_TEST

START_TEST(acceptance_is_of_the_pair_and_grows_old)
{
    struct sessions *sessions = sessions_create();
    ck_assert_int_eq(sessions_accepted_ago_ms(sessions, SOURCE, STR("s"), STR("a"), 0), INT64_MAX);
    ck_assert(sessions_accept(sessions, SOURCE, STR("s"), STR("a"), 1000, &limits));
    ck_assert_int_eq(sessions_accepted_ago_ms(sessions, SOURCE, STR("s"), STR("a"), 1500), 500);
    ck_assert_int_eq(sessions_accepted_ago_ms(sessions, SOURCE, STR("s"), STR("b"), 1500),
                     INT64_MAX);
    ck_assert_int_eq(sessions_accepted_ago_ms(sessions, SOURCE, STR("t"), STR("a"), 1500),
                     INT64_MAX);
    ck_assert_int_eq(sessions_accepted_ago_ms(sessions, STR("x"), STR("s"), STR("a"), 1500),
                     INT64_MAX);
    ck_assert_int_eq(sessions_accepted_ago_ms(sessions, SOURCE, STR(""), STR("a"), 1500),
                     INT64_MAX);
    sessions_destroy(sessions);
}
END_TEST

START_TEST(news_of_a_pair_come_once_a_minute)
{
    struct sessions *sessions = sessions_create();
    ck_assert(sessions_accept(sessions, SOURCE, STR("s"), STR("a"), 0, &limits));
    ck_assert(!sessions_accept(sessions, SOURCE, STR("s"), STR("a"), MINUTE_MS, &limits));
    ck_assert_int_eq(sessions_accepted_ago_ms(sessions, SOURCE, STR("s"), STR("a"), MINUTE_MS),
                     MINUTE_MS);
    ck_assert(sessions_accept(sessions, SOURCE, STR("s"), STR("a"), MINUTE_MS + 1, &limits));
    ck_assert_int_eq(sessions_accepted_ago_ms(sessions, SOURCE, STR("s"), STR("a"), MINUTE_MS + 1),
                     0);
    sessions_destroy(sessions);
}
END_TEST

START_TEST(an_ended_session_is_neither_known_nor_accepted)
{
    struct sessions *sessions = sessions_create();
    struct session_facts facts = facts_of("one");
    sessions_put(sessions, SOURCE, STR("s"), &facts, 100);
    sessions_accept(sessions, SOURCE, STR("s"), STR("a"), 0, &limits);
    sessions_accept(sessions, SOURCE, STR("t"), STR("a"), 0, &limits);
    sessions_remove(sessions, SOURCE, STR("s"), STR("a"));
    ck_assert(!sessions_get(sessions, SOURCE, STR("s"), &facts));
    ck_assert_int_eq(sessions_accepted_ago_ms(sessions, SOURCE, STR("s"), STR("a"), 0), INT64_MAX);
    ck_assert_int_eq(sessions_accepted_ago_ms(sessions, SOURCE, STR("t"), STR("a"), 0), 0);
    sessions_remove(sessions, SOURCE, STR("s"), STR("a"));
    sessions_destroy(sessions);
}
END_TEST

START_TEST(past_the_limit_those_not_seen_for_longest_go)
{
    struct sessions *sessions = sessions_create();
    struct session_facts facts = facts_of("one"), seen;
    char name[32];
    int known = 0;
    for (int i = 0; i < 5000; i++) {
        snprintf(name, sizeof name, "s%d", i);
        sessions_put(sessions, SOURCE, str_from(name), &facts, 100);
        ck_assert_int_eq(sessions_accept(sessions, SOURCE, STR("kept"), STR("a"), 0, &limits),
                         i == 0);
    }
    for (int i = 0; i < 5000; i++) {
        snprintf(name, sizeof name, "s%d", i);
        known += sessions_get(sessions, SOURCE, str_from(name), &seen);
    }
    ck_assert_int_gt(known, 100);
    ck_assert_int_le(known, 216 + 16); /* twice the limit, rounded up in each shard */
    ck_assert(sessions_get(sessions, SOURCE, STR("s4999"), &seen));
    ck_assert_int_eq(sessions_accepted_ago_ms(sessions, SOURCE, STR("kept"), STR("a"), 0), 0);
    sessions_destroy(sessions);
}
END_TEST

START_TEST(what_is_asked_for_has_been_seen)
{
    struct sessions *sessions = sessions_create();
    struct session_facts facts = facts_of("one"), seen;
    char name[32];
    sessions_put(sessions, SOURCE, STR("polls"), &facts, 100);
    sessions_accept(sessions, SOURCE, STR("polls"), STR("a"), 0, &limits);
    for (int i = 0; i < 5000; i++) {
        ck_assert(sessions_get(sessions, SOURCE, STR("polls"), &seen));
        ck_assert_int_eq(sessions_accepted_ago_ms(sessions, SOURCE, STR("polls"), STR("a"), i), i);
        snprintf(name, sizeof name, "s%d", i);
        sessions_put(sessions, SOURCE, str_from(name), &facts, 100);
    }
    ck_assert_str_eq(seen.client.name, "one");
    sessions_destroy(sessions);
}
END_TEST

static bool is_accepted(struct sessions *sessions, const char *session, struct str token)
{
    return sessions_accepted_ago_ms(sessions, SOURCE, str_from(session), token, 0) != INT64_MAX;
}

START_TEST(the_sessions_of_one_token_make_room_for_each_other_alone)
{
    const struct config_limits few = {.sessions = 1000, .sessions_per_principal = 3};
    struct sessions *sessions = sessions_create();
    struct session_facts facts = facts_of("one");
    sessions_accept(sessions, SOURCE, STR("b"), STR("other"), 0, &few);
    sessions_put(sessions, SOURCE, STR("s1"), &facts, 1000);
    static const char *const names[] = {"s1", "s2", "s3"};
    for (size_t i = 0; i < 3; i++)
        sessions_accept(sessions, SOURCE, str_from(names[i]), STR("a"), 0, &few);
    /* Seen again, so that the second is the one not seen for longest. */
    sessions_accept(sessions, SOURCE, STR("s1"), STR("a"), 2 * MINUTE_MS, &few);
    sessions_accept(sessions, SOURCE, STR("s4"), STR("a"), 0, &few);
    ck_assert(is_accepted(sessions, "s1", STR("a")));
    ck_assert(!is_accepted(sessions, "s2", STR("a")));
    ck_assert(is_accepted(sessions, "s3", STR("a")));
    ck_assert(is_accepted(sessions, "s4", STR("a")));
    ck_assert(sessions_get(sessions, SOURCE, STR("s1"), &facts));
    ck_assert(is_accepted(sessions, "b", STR("other")));
    /* One that has ended counts no more, and those without a token do not count. */
    sessions_remove(sessions, SOURCE, STR("s3"), STR("a"));
    sessions_accept(sessions, SOURCE, STR("s5"), STR("a"), 0, &few);
    static const char *const nobodys[] = {"v", "w", "x", "y", "z"};
    for (size_t i = 0; i < 5; i++)
        sessions_accept(sessions, SOURCE, str_from(nobodys[i]), STR(""), 0, &few);
    ck_assert(is_accepted(sessions, "s1", STR("a")) && is_accepted(sessions, "s4", STR("a")));
    ck_assert(is_accepted(sessions, "v", STR("")));
    sessions_destroy(sessions);
}
END_TEST

TCase *session_table_tests(void)
{
    TCase *tests = tcase_create("sessions");
    tcase_add_test(tests, facts_are_those_of_the_source_and_session);
    tcase_add_test(tests, acceptance_is_of_the_pair_and_grows_old);
    tcase_add_test(tests, news_of_a_pair_come_once_a_minute);
    tcase_add_test(tests, an_ended_session_is_neither_known_nor_accepted);
    tcase_add_test(tests, past_the_limit_those_not_seen_for_longest_go);
    tcase_add_test(tests, what_is_asked_for_has_been_seen);
    tcase_add_test(tests, the_sessions_of_one_token_make_room_for_each_other_alone);
    return tests;
}
