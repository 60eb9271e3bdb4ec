/* show.summary: what is refused, and what becomes of a call's arguments. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "suites.h"
#include "taskgate/config/summary.h"

static const struct {
    const char *text, *arguments, *sentence;
} sentences[] = {
    {"Drops {schema}.{table}", "{\"schema\":\"a\",\"table\":\"b \\\"c\\\"\"}",
     "Drops \"a\".\"b \\\"c\\\"\""},
    {"{n} {list} {on} {nothing}", "{\"n\":1.50,\"list\":[1,\"x\"],\"on\":true,\"nothing\":null}",
     "1.50 [1,\"x\"] true null"},
    {"<{missing}{a.b.c}{text.x}>", "{\"a\":{\"b\":1},\"text\":\"t\"}", "<>"},
    {"{ a.b }", "{\"a\":{\"b\":\"deep\"}}", "\"deep\""},
    {"{rows.id}", "{\"rows\":[{\"id\":\"x\"},{},{\"id\":[2]},{\"id\":3}]}", "\"x\", [2], 3"},
    {"{{{a}}} {{b}} }", "{\"a\":1}", "{1} {b} }"},
    {"no path", "{}", "no path"},
    {"{k\xc3\xa9y}", "{\"k\\u00e9y\":\"\\u2028\\u001bx\"}", "\"\\u2028\\u001bx\""},
    {"{a}", "{\"a\":\"[REDACTED]\"}", "[REDACTED]"},
    /* an argument's value is never read as a path */
    {"{a}", "{\"a\":\"{b}\",\"b\":\"hidden\"}", "\"{b}\""},
    {"{a}", "{\"a\":{\"k\":\"\\u0044\u200B\"}}", "{\"k\":\"D\\u200b\"}"},
};

START_TEST(paths_become_values)
{
    struct error error = {""};
    struct buffer out;
    buffer_init(&out);
    ck_assert_msg(summary_check(str_from(sentences[_i].text), &error), "%s", error.message);
    summary_write(&out, str_from(sentences[_i].text), str_from(sentences[_i].arguments));
    buffer_append_char(&out, '\0');
    ck_assert_str_eq(out.bytes, sentences[_i].sentence);
    buffer_finish(&out);
}
END_TEST

static const struct {
    const char *text, *problem;
} refusals[] = {
    {"", "must not be empty"},
    {"Drops {table", "a \"{\" has no \"}\"; write {{ for the brace itself"},
    {"Drops {}", "a path is names joined by \".\", such as card.number"},
    {"Drops {a..b}", "a path is names joined by \".\", such as card.number"},
};

START_TEST(broken_ones_are_refused)
{
    struct error error = {""};
    ck_assert(!summary_check(str_from(refusals[_i].text), &error));
    ck_assert_str_eq(error.message, refusals[_i].problem);
}
END_TEST

/* A value of 100,000 two-byte characters, once and many times. */
START_TEST(long_values_and_sentences_are_cut_between_characters)
{
    struct buffer arguments, out;
    buffer_init(&arguments);
    buffer_init(&out);
    buffer_append_text(&arguments, "{\"rows\":[0");
    for (int i = 0; i < 20; i++) {
        buffer_append_text(&arguments, ",{\"x\":\"a");
        for (int j = 0; j < 5000; j++)
            buffer_append_text(&arguments, "\xc3\xa9");
        buffer_append_text(&arguments, "\"}");
    }
    buffer_append_text(&arguments, "]}");
    summary_write(&out, STR("{rows.x}{rows.x}"), buffer_str(&arguments));
    ck_assert_uint_le(out.length, SUMMARY_BYTES + strlen("…"));
    ck_assert_uint_gt(out.length, SUMMARY_BYTES - SUMMARY_VALUE_BYTES);
    ck_assert(str_is_utf8(buffer_str(&out)));
    /* a quote, "a" and 119 characters of two bytes */
    ck_assert(
        str_starts_with(str_slice(out.bytes + 240, out.length - 240), STR("…\", \"a\xc3\xa9")));
    ck_assert(str_ends_with(buffer_str(&out), STR("…")));
    buffer_finish(&out);
    buffer_finish(&arguments);
}
END_TEST

TCase *summary_case(void)
{
    TCase *tests = tcase_create("summary");
    tcase_add_loop_test(tests, paths_become_values, 0, sizeof sentences / sizeof *sentences);
    tcase_add_loop_test(tests, broken_ones_are_refused, 0, sizeof refusals / sizeof *refusals);
    tcase_add_test(tests, long_values_and_sentences_are_cut_between_characters);
    return tests;
}
