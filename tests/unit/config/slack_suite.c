/* Slack in a configuration: workflows that name it as their destination, and its emoji. */
#include <check.h>
#include <string.h>

#include "suites.h"
#include "support.h"
#include "taskgate/config/electorate.h"

#define HEAD                                                                                       \
    "schema: 1\nsources: [{id: up, kind: mcp, url: 'http://h/'}]\n"                                \
    "governance: {defaults: {action: forward}}\n"
#define PAGE "admin: {public_url: 'https://gate.example'}\n"

static const char *token[] = {"THOUGHTGATE_SLACK_BOT_TOKEN=xoxb-1", "OTHER=xoxb-2",
                              "SIGNING=0123456789abcdef", NULL};

START_TEST(a_destination_is_an_endpoint_of_its_workflows)
{
    test_environment(token);
    struct config *config = expect_load(
        HEAD PAGE
        "approval:\n"
        "  ops: {destination: {type: slack, channel: '#a', mention: [U1, S2]}}\n"
        "  more: {destination: {type: slack, channel: '#a', signing_secret_env: SIGNING}}\n"
        "  other: {destination: {type: slack, channel: C2, token_env: OTHER}}\n"
        "  here: {timeout: 1h}\n",
        "");
    test_environment(NULL);
    ck_assert_ptr_nonnull(config);
    ck_assert_uint_eq(config->notify_count, 2);
    const struct config_notify *first = &config->notify[0], *second = &config->notify[1];
    ck_assert_int_eq(first->type, NOTIFY_SLACK);
    ck_assert_str_eq(first->url, "https://slack.com/api");
    ck_assert_str_eq(first->channel, "#a");
    ck_assert_str_eq(first->secret, "xoxb-1");
    ck_assert_str_eq(first->signing_secret, "0123456789abcdef");
    ck_assert_uint_eq(first->mention.count, 2);
    ck_assert_uint_eq(first->destination_of.count, 2);
    ck_assert_str_eq(first->destination_of.items[1], "more");
    ck_assert(first->is_destination && first->include_arguments);
    ck_assert_uint_eq(first->events, NOTIFY_ALL);
    ck_assert_str_eq(second->secret, "xoxb-2");
    ck_assert_ptr_null(second->signing_secret);
    ck_assert_str_eq(config->slack.approve_reaction, "+1");
    ck_assert_str_eq(config->slack.reject_reaction, "-1");
    ck_assert_int_eq(config->slack.poll_ms, 5000);
    config_unref(config);
}
END_TEST

START_TEST(an_endpoint_that_stands_there_is_used)
{
    test_environment(token);
    struct config *config = expect_load(
        HEAD PAGE
        "notify: [{id: chat, type: slack, channel: '#a', token_env: OTHER, workflows: [x]}]\n"
        "approval: {ops: {destination: {type: slack, channel: '#a', token_env: OTHER}}}\n",
        "");
    ck_assert_uint_eq(config->notify_count, 1);
    ck_assert(!config->notify[0].is_destination && !config->notify[0].include_arguments);
    ck_assert_str_eq(config->notify[0].destination_of.items[0], "ops");
    config_unref(config);
    expect_problems(
        HEAD PAGE "notify: [{type: slack, channel: '#a', token_env: OTHER}]\n"
                  "approval: {ops: {destination: {type: slack, channel: '#a'}}}\n",
        "t.yaml:6:54: approval.ops.destination.channel: the channel is told with other secrets as "
        "well; use one app for a channel\n");
    test_environment(NULL);
}
END_TEST

START_TEST(a_file_of_thoughtgate_needs_no_page_and_no_ids)
{
    test_environment(token);
    struct config *config =
        expect_load(HEAD "approval: {ops: {destination: {type: slack, channel: C1, mention: "
                         "['@oncall', U1]}}}\n",
                    "t.yaml:4:67: warning: approval.ops.destination.mention: only ids of Slack's "
                    "are mentioned, the others are left out; write ids, such as U012ABCDEF\n");
    ck_assert_uint_eq(config->notify[0].mention.count, 1);
    config_unref(config);
    config = expect_load(
        HEAD "approval: {ops: {destination: {type: slack, channel: C1}, allow_edit: [a]}}\n",
        "t.yaml:4:38: warning: approval.ops.destination.type: the messages have no link to the "
        "page, whose address is not known; set admin.public_url\n");
    config_unref(config);
    const char *channel[] = {"SLACK_BOT_TOKEN=xoxb-3", "THOUGHTGATE_SLACK_CHANNEL=#env",
                             "THOUGHTGATE_SLACK_APPROVE_REACTION=:thumbsup:",
                             "THOUGHTGATE_SLACK_REJECT_REACTION=no_entry", NULL};
    test_environment(channel);
    config = expect_load(HEAD PAGE "approval: {ops: {destination: {type: slack}}}\n", "");
    ck_assert_str_eq(config->notify[0].channel, "#env");
    ck_assert_str_eq(config->notify[0].secret, "xoxb-3");
    ck_assert_str_eq(config->slack.approve_reaction, "+1");
    ck_assert_str_eq(config->slack.reject_reaction, "no_entry");
    config_unref(config);
    test_environment(NULL);
}
END_TEST

START_TEST(people_vote_in_slack_by_their_ids)
{
    test_environment(token);
    struct config *config = expect_load(
        HEAD "admin:\n  public_url: 'https://gate.example'\n"
             "  people: [{name: a, slack: U1}, {name: b, slack: U2, roles: [viewer]}, {name: c}]\n"
             "notify: [{type: slack, channel: C1, token_env: OTHER}]\n"
             "approval: {ops: {approvers: {people: [a]}, quorum: 1}}\n",
        "");
    for (size_t i = 0; i < 3; i++)
        ck_assert_int_eq(electorate_may_in_slack(config, &config->people[i]), i == 0);
    config_unref(config);
    expect_problems(HEAD "admin: {people: [{name: a, slack: U1}, {name: b, slack: S2}]}\n",
                    "t.yaml:4:35: warning: admin.people[0].slack: no channel in Slack is told of "
                    "calls, the key has no effect; add an endpoint of the type slack to notify\n"
                    "t.yaml:4:57: admin.people[1].slack: \"S2\": this is the id of a group in "
                    "Slack, not of a person\n");
    test_environment(NULL);
}
END_TEST

TCase *slack_case(void)
{
    TCase *tests = tcase_create("slack");
    tcase_add_test(tests, a_destination_is_an_endpoint_of_its_workflows);
    tcase_add_test(tests, an_endpoint_that_stands_there_is_used);
    tcase_add_test(tests, a_file_of_thoughtgate_needs_no_page_and_no_ids);
    tcase_add_test(tests, people_vote_in_slack_by_their_ids);
    return tests;
}
