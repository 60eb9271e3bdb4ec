/* How long a task lives, waits for its human, and may then wait to be executed. */
#include <stdlib.h>

#include "suites.h"
#include "support.h"

#define MINUTE INT64_C(60000)
#define HOUR (60 * MINUTE)

static struct config *load(const char *more, const char *pair, const char *problems)
{
    const char *const pairs[] = {pair, NULL};
    char *text = with(more);
    test_environment(pairs);
    struct config *config = expect_load(text, problems);
    test_environment(NULL);
    free(text);
    return config;
}

START_TEST(a_task_lives_for_as_long_as_its_workflow_needs)
{
    struct config *config = load("approval: {slow: {timeout: 2h, valid_for: 1h}, brief: {timeout: "
                                 "5s, valid_for: 1s}, endless: {timeout: 23h, valid_for: 2h}}\n",
                                 NULL, "");
    const struct config_workflow *slow = config_workflow_find(config, STR("slow"));
    const struct config_workflow *brief = config_workflow_find(config, STR("brief"));
    const struct config_workflow *endless = config_workflow_find(config, STR("endless"));
    ck_assert_int_eq(config_default_ttl_ms(config, slow), 3 * HOUR);
    ck_assert_int_eq(config_default_ttl_ms(config, brief), 10 * MINUTE);
    ck_assert_int_eq(config_default_ttl_ms(config, endless), 24 * HOUR);
    ck_assert_int_eq(config_default_ttl_ms(config, NULL), 10 * MINUTE);
    ck_assert_int_eq(config_decide_within_ms(config, slow), 2 * HOUR);
    ck_assert_int_eq(config_decide_within_ms(config, endless), 23 * HOUR);
    config_unref(config);
}
END_TEST

START_TEST(an_approval_is_valid_as_its_workflow_says_else_as_the_variable_does)
{
    struct config *config = load("approval: {own: {valid_for: 1h}, plain: {}}\n",
                                 "THOUGHTGATE_APPROVAL_VALIDITY_SECS=7", "");
    ck_assert_int_eq(config_approval_valid_ms(config, STR("own")), HOUR);
    ck_assert_int_eq(config_approval_valid_ms(config, STR("plain")), 7000);
    /* of a task that is older than the configuration, and of an accelerated one */
    ck_assert_int_eq(config_approval_valid_ms(config, STR("gone")), 7000);
    ck_assert_int_eq(config_approval_valid_ms(config, STR_EMPTY), 7000);
    config_unref(config);
    config_unref(load("approval: {own: {valid_for: 999ms}}\n", NULL,
                      "t.yaml:9:29: approval.own.valid_for: \"999ms\": the minimum is 1s\n"));
}
END_TEST

START_TEST(a_timeout_beyond_the_longest_life_is_warned_of_and_cut)
{
    struct config *config =
        load("approval:\n  slow: {timeout: 2d}\n", NULL,
             "t.yaml:10:19: warning: approval.slow.timeout: a task lives for 1d at most, and a "
             "human has no longer than that; set THOUGHTGATE_TASK_MAX_TTL_MS higher\n");
    ck_assert_int_eq(config_decide_within_ms(config, &config->workflows[0]), 24 * HOUR);
    ck_assert_int_eq(config_default_ttl_ms(config, &config->workflows[0]), 24 * HOUR);
    config_unref(config);
    config_unref(
        load("approval: {slow: {timeout: 2d}}\n", "THOUGHTGATE_TASK_MAX_TTL_MS=172800000", ""));
    config_unref(load("", "THOUGHTGATE_APPROVAL_TIMEOUT_SECS=86401",
                      "THOUGHTGATE_APPROVAL_TIMEOUT_SECS: warning: a human has no longer than "
                      "THOUGHTGATE_TASK_MAX_TTL_MS, the longest life of a task; set "
                      "THOUGHTGATE_TASK_MAX_TTL_MS higher\n"));
}
END_TEST

/* Nobody wrote the ten minutes. */
START_TEST(a_default_timeout_gives_way_to_the_longest_life)
{
    struct config *config = load("", "THOUGHTGATE_TASK_MAX_TTL_MS=5000", "");
    ck_assert_int_eq(config_decide_within_ms(config, &config->workflows[0]), 5000);
    config_unref(config);
}
END_TEST

TCase *clocks_case(void)
{
    TCase *tests = tcase_create("clocks");
    tcase_add_test(tests, a_task_lives_for_as_long_as_its_workflow_needs);
    tcase_add_test(tests, an_approval_is_valid_as_its_workflow_says_else_as_the_variable_does);
    tcase_add_test(tests, a_timeout_beyond_the_longest_life_is_warned_of_and_cut);
    tcase_add_test(tests, a_default_timeout_gives_way_to_the_longest_life);
    return tests;
}
