/* The keys for clients that know no tasks. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "suites.h"
#include "support.h"

START_TEST(without_the_keys_everybody_without_tasks_sees_six_tools)
{
    struct config *config = expect_load(minimal, "");
    const struct config_pseudo *pseudo = &config->pseudo;
    ck_assert_int_eq(pseudo->mode, PSEUDO_AUTO);
    ck_assert_str_eq(pseudo->prefix, "taskgate_");
    ck_assert_uint_eq(pseudo->only, 1U << PSEUDO_TOOL_LIST_TASKS | 1U << PSEUDO_TOOL_GET_TASK |
                                        1U << PSEUDO_TOOL_GET_TASK_RESULT |
                                        1U << PSEUDO_TOOL_CANCEL_TASK |
                                        1U << PSEUDO_TOOL_AWAIT_ACTIVITY |
                                        1U << PSEUDO_TOOL_RESPOND_TO_ELICITATION);
    ck_assert_int_eq(pseudo->promote, PROMOTE_LEFT);
    ck_assert_int_eq(pseudo->wait_ms, 45000);
    ck_assert_int_eq(pseudo->wait_max_ms, 45000);
    ck_assert_int_eq(pseudo->default_ttl_ms, 300000);
    ck_assert_int_eq(pseudo->max_ttl_ms, 1800000);
    ck_assert_int_eq(pseudo->cleanup_interval_ms, 60000);
    ck_assert_int_eq(pseudo->completed_retention_ms, 300000);
    ck_assert_int_eq(pseudo->max_tasks_per_session, 100);
    ck_assert_int_eq(pseudo->elicitation_timeout_ms, 600000);
    ck_assert_int_eq(pseudo->execute_timeout_ms, 120000);
    config_unref(config);
}
END_TEST

START_TEST(each_key_is_read)
{
    char *text = with(
        "pseudo_tools: {mode: never, prefix: tg-, promote: wait, only: [list_tasks, list_tools], "
        "wait: 20s, wait_max: 5m}\n"
        "pseudo_tasks: {defaultTtlMs: 1000, maxTtlMs: 2000, cleanupIntervalMs: 300, "
        "completedRetentionMs: 400, maxTasksPerSession: 5, elicitation_timeout: 6s, "
        "execute_timeout: 7s}\n");
    struct config *config = expect_load(text, "");
    const struct config_pseudo *pseudo = &config->pseudo;
    ck_assert_int_eq(pseudo->mode, PSEUDO_NEVER);
    ck_assert_str_eq(pseudo->prefix, "tg-");
    ck_assert_uint_eq(pseudo->only, 1U << PSEUDO_TOOL_LIST_TASKS | 1U << PSEUDO_TOOL_LIST_TOOLS);
    ck_assert_int_eq(pseudo->wait_ms, 20000);
    ck_assert_int_eq(pseudo->wait_max_ms, 300000);
    ck_assert_int_eq(pseudo->default_ttl_ms, 1000);
    ck_assert_int_eq(pseudo->max_ttl_ms, 2000);
    ck_assert_int_eq(pseudo->cleanup_interval_ms, 300);
    ck_assert_int_eq(pseudo->completed_retention_ms, 400);
    ck_assert_int_eq(pseudo->max_tasks_per_session, 5);
    ck_assert_int_eq(pseudo->elicitation_timeout_ms, 6000);
    ck_assert_int_eq(pseudo->execute_timeout_ms, 7000);
    config_unref(config);
    free(text);
}
END_TEST

START_TEST(all_tools_need_no_list)
{
    static const char *const all[] = {"all", "[all]", "[all, get_logs]"};
    char more[64];
    snprintf(more, sizeof more, "pseudo_tools: {only: %s}\n", all[_i]);
    char *text = with(more);
    struct config *config = expect_load(text, "");
    ck_assert_uint_eq(config->pseudo.only, PSEUDO_TOOLS_ALL);
    config_unref(config);
    free(text);
}
END_TEST

START_TEST(a_default_gives_way_to_what_is_written)
{
    char *text = with("pseudo_tools: {wait: 2m}\npseudo_tasks: {maxTtlMs: 1000}\n");
    struct config *config = expect_load(text, "");
    ck_assert_int_eq(config->pseudo.wait_max_ms, 120000);
    ck_assert_int_eq(config->pseudo.default_ttl_ms, 1000);
    config_unref(config);
    free(text);
}
END_TEST

static const struct {
    const char *more, *problems;
} bad_rows[] = {
    {"pseudo_tools: {wait: 10s, wait_max: 9s}\n",
     "t.yaml:9:37: pseudo_tools.wait_max: must not be below wait\n"},
    {"pseudo_tasks: {defaultTtlMs: 2000, maxTtlMs: 1000}\n",
     "t.yaml:9:46: pseudo_tasks.maxTtlMs: must not be below defaultTtlMs\n"},
    {"pseudo_tools: {prefix: \"a b\"}\n", "t.yaml:9:24: pseudo_tools.prefix: \"a b\": a prefix is "
                                          "up to 20 letters, digits, \"_\" and \"-\"\n"},
    {"pseudo_tools: {mode: sometimes}\n", "t.yaml:9:22: pseudo_tools.mode: \"sometimes\" is not a "
                                          "mode; it may be auto, always, never\n"},
    {"pseudo_tools: {promote: now}\n", "t.yaml:9:25: pseudo_tools.promote: \"now\" is not a time; "
                                       "it may be left, wait, never\n"},
    {"pseudo_tools: {only: get_task}\n",
     "t.yaml:9:22: pseudo_tools.only: must be a list of list_tasks, get_task, get_task_result, "
     "cancel_task, await_activity, execute_tool, get_elicitations, respond_to_elicitation, "
     "cancel_elicitation_request, get_sampling_requests, respond_to_sampling, "
     "cancel_sampling_request, get_notifications, get_logs, list_servers, list_tools or all, but "
     "is a single value\n"},
    {"pseudo_tools: {only: [get_tasks]}\n", "t.yaml:9:23: pseudo_tools.only[0]: \"get_tasks\" is "
                                            "not one of these tools; did you mean \"get_task\"?\n"},
};

START_TEST(a_bad_value_is_refused)
{
    char *text = with(bad_rows[_i].more);
    expect_problems(text, bad_rows[_i].problems);
    free(text);
}
END_TEST

START_TEST(every_tool_has_a_name_of_its_own)
{
    for (unsigned i = 0; i < PSEUDO_TOOL_COUNT; i++) {
        for (unsigned j = 0; j < i; j++)
            ck_assert_str_ne(config_pseudo_tool_name(i), config_pseudo_tool_name(j));
    }
    ck_assert_str_eq(config_pseudo_tool_name(PSEUDO_TOOL_AWAIT_ACTIVITY), "await_activity");
}
END_TEST

TCase *pseudo_case(void)
{
    TCase *tests = tcase_create("pseudo");
    tcase_add_test(tests, without_the_keys_everybody_without_tasks_sees_six_tools);
    tcase_add_test(tests, each_key_is_read);
    tcase_add_loop_test(tests, all_tools_need_no_list, 0, 3);
    tcase_add_test(tests, a_default_gives_way_to_what_is_written);
    tcase_add_loop_test(tests, a_bad_value_is_refused, 0, sizeof bad_rows / sizeof *bad_rows);
    tcase_add_test(tests, every_tool_has_a_name_of_its_own);
    return tests;
}
