/* The messages of Slack: signatures, payloads, reactions. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "dialog.h"
#include "reactions.h"
#include "taskgate/core/memory.h"
#include "taskgate/json/text.h"

/* ---- signatures ---- */

/* The example of Slack's own documentation. */
#define SECRET STR("8f742231b10e8888abcd99yyyzzz85a5")
#define AT "1531420618"
#define AT_MS INT64_C(1531420618000)
#define BODY                                                                                       \
    "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id="         \
    "G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-"     \
    "collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F39770"      \
    "0885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c"   \
    "447fce8b6703c"
#define SIGNATURE "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503"

static const struct {
    const char *timestamp, *signature;
    int64_t now_ms;
    bool is_signed;
} signatures[] = {
    {AT, SIGNATURE, AT_MS, true},
    {AT, SIGNATURE, AT_MS + 300999, true},
    {AT, SIGNATURE, AT_MS + 301000, false},
    {AT, SIGNATURE, AT_MS - 300000, true},
    {AT, SIGNATURE, AT_MS - 301000, false},
    {AT, "v0=A2114D57B48EAC39B9AD189DD8316235A7B4A8D21A10BD27519666489C69B503", AT_MS, false},
    {AT, "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b50", AT_MS, false},
    {AT, "", AT_MS, false},
    {"1531420619", SIGNATURE, AT_MS, false},
    {"", SIGNATURE, AT_MS, false},
    {"-1", SIGNATURE, AT_MS, false},
    {"1531420618 ", SIGNATURE, AT_MS, false},
    {"99999999999999999999", SIGNATURE, AT_MS, false},
    {"9223372036854775807", SIGNATURE, AT_MS, false},
};

START_TEST(a_signature_holds_for_five_minutes)
{
    ck_assert_int_eq(slack_press_is_signed(SECRET, str_from(signatures[_i].timestamp),
                                           str_from(signatures[_i].signature), STR(BODY),
                                           signatures[_i].now_ms),
                     signatures[_i].is_signed);
    ck_assert(!slack_press_is_signed(SECRET, STR(AT), STR(SIGNATURE), STR(BODY "x"), AT_MS));
    ck_assert(!slack_press_is_signed(STR("other"), STR(AT), STR(SIGNATURE), STR(BODY), AT_MS));
}
END_TEST

/* ---- payloads ---- */

static void write_form(struct buffer *form, const char *payload)
{
    buffer_append_text(form, "payload=");
    for (; *payload; payload++)
        buffer_append_format(form, "%%%02x", (unsigned char)*payload);
}

static bool read(struct slack_press *press, const char *payload)
{
    struct error error = {""};
    struct buffer form;
    buffer_init(&form);
    write_form(&form, payload);
    bool is_good = slack_press_read(press, buffer_str(&form), &error);
    ck_assert_int_eq(is_good, error.message[0] == '\0');
    buffer_finish(&form);
    return is_good;
}

#define WHO "\"team\":{\"id\":\"T1\"},\"user\":{\"id\":\"U1\"},\"api_app_id\":\"A1\","
#define PLACE "\"container\":{\"channel_id\":\"C1\",\"message_ts\":\"1.2\"},\"trigger_id\":\"t\","
#define PRESS(action)                                                                              \
    "{\"type\":\"block_actions\"," WHO PLACE "\"actions\":[{\"action_id\":\"" action               \
    "\",\"value\":\"tg_1\"}]}"

START_TEST(a_press_says_who_what_and_where)
{
    struct slack_press press;
    ck_assert(read(&press, PRESS("taskgate_reject")));
    ck_assert_int_eq(press.kind, SLACK_PRESS_BUTTON);
    ck_assert_int_eq(press.verb, BALLOT_REJECT);
    ck_assert_str_eq(press.team, "T1");
    ck_assert_str_eq(press.app, "A1");
    ck_assert_str_eq(press.user, "U1");
    ck_assert_str_eq(press.channel, "C1");
    ck_assert_str_eq(press.ts, "1.2");
    ck_assert_str_eq(press.task_id, "tg_1");
    ck_assert_str_eq(press.trigger, "t");
    slack_press_finish(&press);
}
END_TEST

static const char *const others[] = {
    PRESS("x"),
    "{\"type\":\"shortcut\"}",
    "{}",
    "{\"type\":\"block_actions\"," WHO "\"actions\":[]}",
    "{\"type\":\"view_submission\"," WHO "\"view\":{\"callback_id\":\"x\"}}",
    "{\"type\":\"view_submission\"," WHO
    "\"view\":{\"callback_id\":\"taskgate_reason\",\"private_metadata\":\"{\"}}",
};

START_TEST(an_unexpected_payload_is_no_vote)
{
    struct slack_press press;
    ck_assert(read(&press, others[_i]));
    ck_assert_int_eq(press.kind, SLACK_PRESS_OTHER);
    slack_press_finish(&press);
}
END_TEST

static const char *const ill_formed[] = {
    "[",
    "{\"type\":\"block_actions\",\"type\":\"x\"}",
    "{\"type\":\"block_actions\",\"actions\":[{\"action_id\":\"taskgate_approve\"}]}",
    "{\"type\":\"block_actions\"," WHO "\"actions\":[{\"action_id\":\"taskgate_approve\","
    "\"value\":\"tg_1\"}]}",
    "{\"type\":\"block_actions\"," WHO PLACE
    "\"actions\":[{\"action_id\":\"taskgate_approve\",\"value\":\"tg_1\\u0000\"}]}",
};

START_TEST(an_incomplete_payload_is_refused)
{
    struct slack_press press;
    ck_assert(!read(&press, ill_formed[_i]));
    ck_assert_ptr_null(press.user);
}
END_TEST

START_TEST(a_dialog_brings_back_what_it_was_opened_with)
{
    struct slack_press press, sent;
    struct buffer view, payload;
    buffer_init(&view);
    buffer_init(&payload);
    ck_assert(read(&press, PRESS("taskgate_approve")));
    dialog_write(&view, &press, &(struct slack_asked){.reason = true});
    ck_assert(json_check(buffer_str(&view), NULL));
    ck_assert(json_string_equals(json_member(buffer_str(&view), "trigger_id"), STR("t")));
    struct str kept = json_path(buffer_str(&view), "view", "private_metadata");
    buffer_append_format(
        &payload,
        "{\"type\":\"view_submission\"," WHO "\"view\":{\"callback_id\":\"taskgate_reason\","
        "\"private_metadata\":%.*s,\"state\":{\"values\":{\"reason\":{\"reason\":{\"value\":"
        "\"a+b & c\"}}}}}}",
        STR_ARGS(kept));
    buffer_append_char(&payload, '\0');
    ck_assert(read(&sent, payload.bytes));
    ck_assert_int_eq(sent.kind, SLACK_PRESS_DIALOG);
    ck_assert_int_eq(sent.verb, BALLOT_APPROVE);
    ck_assert_str_eq(sent.reason, "a+b & c");
    ck_assert_str_eq(sent.task_id, "tg_1");
    ck_assert_str_eq(sent.channel, "C1");
    ck_assert_str_eq(sent.ts, "1.2");
    slack_press_finish(&press);
    slack_press_finish(&sent);
    buffer_finish(&view);
    buffer_finish(&payload);
}
END_TEST

/* ---- reactions ---- */

static struct config_person people[] = {{.name = (char *)"a", .slack = (char *)"U1"},
                                        {.name = (char *)"b", .slack = (char *)"U2"},
                                        {.name = (char *)"c"}};
static const struct config config = {
    .people = people,
    .person_count = 3,
    .slack = {.approve_reaction = (char *)"+1", .reject_reaction = (char *)"no_entry"},
};

static const struct {
    const char *reactions, *marks;
    bool is_all;
} reactions[] = {
    {"", "", true},
    {"[]", "", true},
    {"{}", "", true},
    {"[{\"name\":\"+1\",\"users\":[\"U1\",\"U3\"],\"count\":2}]", "+U1", true},
    {"[{\"name\":\"thumbsup::skin-tone-2\",\"users\":[\"U1\"],\"count\":1},"
     "{\"name\":\"+1\",\"users\":[\"U1\",\"U2\"],\"count\":2}]",
     "+U1 +U2", true},
    {"[{\"name\":\"no_entry\",\"users\":[\"U2\"],\"count\":1},{\"name\":\"-1\",\"users\":[\"U1\"],"
     "\"count\":1}]",
     "-U2", true},
    {"[{\"name\":\"+1\",\"users\":[\"U2\"],\"count\":9}]", "+U2", false},
    {"[{\"name\":\"eyes\",\"users\":[],\"count\":9}]", "", true},
    {"[{\"name\":\"+1\",\"users\":null,\"count\":1}]", "", false},
    {"[{\"name\":7},{\"name\":\"+\",\"users\":[\"U1\"]},{\"name\":\"+1:\",\"users\":[\"U1\"]}]", "",
     true},
    {"[{\"name\":\"+1\",\"users\":[7,null,\"u1\"],\"count\":3}]", "", true},
};

START_TEST(reactions_of_people_are_marks)
{
    struct ballot_names marks = {NULL, 0}, again = {NULL, 0};
    struct buffer text;
    buffer_init(&text);
    ck_assert_int_eq(reactions_read(&marks, str_from(reactions[_i].reactions), &config),
                     reactions[_i].is_all);
    reactions_write(&text, &marks);
    ck_assert(str_equal(buffer_str(&text), str_from(reactions[_i].marks)));
    reactions_read_marks(&again, reactions[_i].marks);
    ck_assert_uint_eq(again.count, marks.count);
    for (size_t i = 0; i < marks.count; i++)
        ck_assert_str_eq(again.items[i], marks.items[i]);
    ballot_names_finish(&marks);
    ballot_names_finish(&again);
    buffer_finish(&text);
}
END_TEST

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

int main(void)
{
    Suite *suite = suite_create("slack");
    TCase *tests = tcase_create("slack");
    tcase_add_loop_test(tests, a_signature_holds_for_five_minutes, 0, COUNT(signatures));
    tcase_add_test(tests, a_press_says_who_what_and_where);
    tcase_add_loop_test(tests, an_unexpected_payload_is_no_vote, 0, COUNT(others));
    tcase_add_loop_test(tests, an_incomplete_payload_is_refused, 0, COUNT(ill_formed));
    tcase_add_test(tests, a_dialog_brings_back_what_it_was_opened_with);
    tcase_add_loop_test(tests, reactions_of_people_are_marks, 0, COUNT(reactions));
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
