/* The letters to chats and pagers: what their answers mean, and what identifies them. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "channel.h"
#include "channel_text.h"
#include "taskgate/core/memory.h"

static const struct {
    const char *answer;
    const char *reference; /* NULL: none */
    const char *problem;   /* NULL: it was accepted */
} answers[] = {
    {"{\"ok\":true,\"channel\":\"C1\",\"ts\":\"1.2\"}", "C1 1.2", NULL},
    {"{\"ok\":true,\"channel\":\"C1\",\"ts\":\"1.2\",\"message\":{\"app_id\":\"A1\"}}", "C1 1.2 A1",
     NULL},
    {"{\"ok\":true,\"channel\":\"C1\"}", NULL, NULL},
    {"{\"ok\":true,\"channel\":1,\"ts\":\"1.2\"}", NULL, NULL},
    {"{\"ok\":false,\"error\":\"channel_not_found\"}", NULL, "channel_not_found"},
    {"{\"ok\":false,\"error\":\"a\\nB c\"}", NULL, "a???c"},
    {"{\"ok\":false,\"error\":7}", NULL, "no answer of Slack's"},
    {"{\"ok\":\"true\"}", NULL, "no answer of Slack's"},
    {"{\"ok\":true", NULL, "no answer of Slack's"},
    {"[true]", NULL, "no answer of Slack's"},
    {"<html>", NULL, "no answer of Slack's"},
    {"", NULL, "no answer of Slack's"},
};

START_TEST(slack_says_in_the_body_whether_it_has_done_it)
{
    char problem[CHANNEL_PROBLEM_BYTES] = "", *reference = NULL;
    struct str answer = str_from(answers[_i].answer);
    struct channel_letter letter = {.votes_on = ""};
    bool accepts = channel_accepts(NOTIFY_SLACK, &letter, answer, &reference, problem);
    ck_assert_int_eq(accepts, answers[_i].problem == NULL);
    if (answers[_i].problem)
        ck_assert_str_eq(problem, answers[_i].problem);
    if (answers[_i].reference)
        ck_assert_str_eq(reference, answers[_i].reference);
    else
        ck_assert_ptr_null(reference);
    free(reference);
    ck_assert(channel_accepts(NOTIFY_PAGERDUTY, &letter, answer, &reference, problem));
    ck_assert_ptr_null(reference);
}
END_TEST

START_TEST(an_endpoint_is_known_by_all_that_leads_to_it)
{
    struct config_notify slack = {
        .type = NOTIFY_SLACK, .url = (char *)"https://h", .channel = (char *)"C1"};
    struct config_notify pager = {
        .type = NOTIFY_PAGERDUTY, .url = (char *)"https://h", .secret = (char *)"k1"};
    char keys[5][DIGEST_HEX_BYTES];
    channel_key(&slack, keys[0]);
    slack.channel = (char *)"C2";
    channel_key(&slack, keys[1]);
    channel_key(&pager, keys[2]);
    pager.secret = (char *)"k2";
    channel_key(&pager, keys[3]);
    channel_key(&(struct config_notify){.type = NOTIFY_WEBHOOK, .url = (char *)"https://h"},
                keys[4]);
    for (unsigned i = 0; i < 5; i++) {
        for (unsigned k = i + 1; k < 5; k++)
            ck_assert_str_ne(keys[i], keys[k]);
    }
    char of_url[DIGEST_HEX_BYTES];
    digest_sha256_hex(STR("https://h"), of_url);
    ck_assert_str_eq(keys[4], of_url); /* as older versions have stored it */
}
END_TEST

START_TEST(titles_are_cut_between_characters)
{
    struct task *task = task_create(TASK_PENDING);
    struct buffer title;
    buffer_init(&title);
    task_set_text(&task->tool, STR("\xC3\xA4\xC3\xA4\xC3\xA4"));
    channel_text_title(&title, &(struct store_delivery){.event = NOTIFY_CREATED, .task = task},
                       20); /* "Approval needed: " has 17 */
    ck_assert(str_equal(buffer_str(&title), STR("Approval needed: \xC3\xA4\xE2\x80\xA6")));
    buffer_finish(&title);
    task_unref(task);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("notify channel");
    TCase *tests = tcase_create("channel");
    tcase_add_loop_test(tests, slack_says_in_the_body_whether_it_has_done_it, 0,
                        (int)(sizeof answers / sizeof *answers));
    tcase_add_test(tests, an_endpoint_is_known_by_all_that_leads_to_it);
    tcase_add_test(tests, titles_are_cut_between_characters);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
