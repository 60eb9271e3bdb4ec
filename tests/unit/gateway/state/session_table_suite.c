/* Known facts about sessions. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "state/session_table.h"
#include "suites.h"

#define SOURCE STR("up")

static struct session_facts facts_of(const char *name)
{
    struct session_facts facts = {.known = true, .server.has_tasks = true};
    snprintf(facts.client.name, sizeof facts.client.name, "%s", name);
    return facts;
}

START_TEST(facts_are_those_of_the_source_and_session)
{
    struct seen_table *sessions = sessions_create();
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
    seen_table_destroy(sessions);
}
END_TEST

START_TEST(an_ended_session_is_not_known)
{
    struct seen_table *sessions = sessions_create();
    struct session_facts facts = facts_of("one");
    sessions_put(sessions, SOURCE, STR("s"), &facts, 100);
    seen_table_forget_session(sessions, SOURCE, STR("s"));
    ck_assert(!sessions_get(sessions, SOURCE, STR("s"), &facts));
    seen_table_forget_session(sessions, SOURCE, STR("s"));
    seen_table_destroy(sessions);
}
END_TEST

START_TEST(past_the_limit_those_not_seen_for_longest_go)
{
    struct seen_table *sessions = sessions_create();
    struct session_facts facts = facts_of("one"), seen;
    char name[32];
    int known = 0;
    for (int i = 0; i < 5000; i++) {
        snprintf(name, sizeof name, "s%d", i);
        sessions_put(sessions, SOURCE, str_from(name), &facts, 100);
    }
    for (int i = 0; i < 5000; i++) {
        snprintf(name, sizeof name, "s%d", i);
        known += sessions_get(sessions, SOURCE, str_from(name), &seen);
    }
    ck_assert_int_gt(known, 100);
    ck_assert_int_le(known, 216 + 16); /* twice the limit, rounded up in each shard */
    ck_assert(sessions_get(sessions, SOURCE, STR("s4999"), &seen));
    seen_table_destroy(sessions);
}
END_TEST

START_TEST(a_read_session_counts_as_seen)
{
    struct seen_table *sessions = sessions_create();
    struct session_facts facts = facts_of("one"), seen;
    char name[32];
    sessions_put(sessions, SOURCE, STR("polls"), &facts, 100);
    for (int i = 0; i < 5000; i++) {
        ck_assert(sessions_get(sessions, SOURCE, STR("polls"), &seen));
        snprintf(name, sizeof name, "s%d", i);
        sessions_put(sessions, SOURCE, str_from(name), &facts, 100);
    }
    ck_assert_str_eq(seen.client.name, "one");
    seen_table_destroy(sessions);
}
END_TEST

TCase *session_table_tests(void)
{
    TCase *tests = tcase_create("sessions");
    tcase_add_test(tests, facts_are_those_of_the_source_and_session);
    tcase_add_test(tests, an_ended_session_is_not_known);
    tcase_add_test(tests, past_the_limit_those_not_seen_for_longest_go);
    tcase_add_test(tests, a_read_session_counts_as_seen);
    return tests;
}
