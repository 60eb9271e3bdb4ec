/* The arguments of the gateway's own tools. */
#include <stdlib.h>
#include <string.h>

#include "suites.h"
#include "taskgate/json/text.h"
#include "tools/tools.h"

static const struct pseudo_parameter parameters[] = {
    {.name = "id", .type = PSEUDO_TOOL_TEXT, .is_required = true, .description = "d"},
    {.name = "word", .type = PSEUDO_TOOL_TEXT, .description = "d", .choices = {"yes", "no"}},
    {.name = "ms", .type = PSEUDO_TOOL_NUMBER, .description = "d", .minimum = 1, .maximum = 10},
    {.name = NULL},
};

static const struct {
    const char *arguments, *problem;
} argument_rows[] = {
    {"{\"id\":\"a\"}", ""},
    {"{\"id\":\"a\",\"word\":\"no\",\"ms\":1e3,\"more\":[]}", ""},
    {"{\"id\":\"a\",\"word\":null}", ""},
    {"", "id (string) is required"},
    {"{\"id\":1}", "id must be of type string"},
    {"{\"id\":\"a\",\"word\":\"maybe\"}", "word must be one of yes, no"},
    {"{\"id\":\"a\",\"ms\":0.5}", "ms must not be below 1"},
    {"{\"id\":\"a\",\"ms\":\"5\"}", "ms must be of type number"},
};

START_TEST(arguments_are_checked_by_their_table)
{
    struct buffer problem = {0};
    bool good = pseudo_check_arguments(str_from(argument_rows[_i].arguments), parameters, &problem);
    ck_assert(str_equal(buffer_str(&problem), str_from(argument_rows[_i].problem)));
    ck_assert_int_eq(good, !*argument_rows[_i].problem);
    buffer_finish(&problem);
}
END_TEST

START_TEST(numbers_are_cut_at_their_most)
{
    struct str arguments = STR("{\"a\":1e300,\"b\":7.9,\"c\":\"x\"}");
    ck_assert_int_eq(pseudo_argument_number(arguments, "a", 900, 5), 900);
    ck_assert_int_eq(pseudo_argument_number(arguments, "b", 900, 5), 7);
    ck_assert_int_eq(pseudo_argument_number(arguments, "c", 900, 5), 5);
    ck_assert_int_eq(pseudo_argument_number(arguments, "d", 900, 5), 5);
}
END_TEST

TCase *arguments_tests(void)
{
    TCase *tests = tcase_create("arguments");
    tcase_add_loop_test(tests, arguments_are_checked_by_their_table, 0,
                        sizeof argument_rows / sizeof *argument_rows);
    tcase_add_test(tests, numbers_are_cut_at_their_most);
    return tests;
}
