/* Operators: logic, comparison, arithmetic, sets, records. */
#include "cedar_test.h"

#include <stdio.h>

START_TEST(logic_is_boolean_and_stops_early)
{
    static const struct expression_case cases[] = {
        {"true", TRUE_},
        {"false", FALSE_},
        {"!false", TRUE_},
        {"!!!!true", TRUE_},
        {"!1", TYPE_},
        {"1", TYPE_},
        {"principal", TYPE_},
        {"true && false", FALSE_},
        {"false && 1", FALSE_},
        {"true && 1", TYPE_},
        {"1 && false", TYPE_},
        {"true || 1", TRUE_},
        {"false || 1", TYPE_},
        {"1 || true", TYPE_},
        {"true || false && false", TRUE_},
        {"(true || false) && false", FALSE_},
        {"false && context.nope || true", TRUE_},
        {"true && true && true && context.nope", ATTRIBUTE_},
    };
    EXPECT_OUTCOMES(cases);
}
END_TEST

START_TEST(if_evaluates_one_branch)
{
    static const struct expression_case cases[] = {
        {"if true then true else context.nope", TRUE_},
        {"if false then context.nope else true", TRUE_},
        {"if 1 then true else true", TYPE_},
        {"if true then 1 else true", TYPE_},
        {"(if context.b then 1 else \"x\") == 1", TRUE_},
        {"if false then true else if true then false else true", FALSE_},
        {"if context.nope then true else true", ATTRIBUTE_},
    };
    EXPECT_OUTCOMES(cases);
}
END_TEST

START_TEST(conditions_are_joined)
{
    static const struct {
        const char *conditions;
        bool allow;
        size_t failures;
    } cases[] = {
        {"", true, 0},
        {"when { true } when { true }", true, 0},
        {"when { true } when { false }", false, 0},
        {"when { true } unless { false }", true, 0},
        {"unless { true }", false, 0},
        {"unless { 1 }", false, 1},
        {"when { false } when { 1 }", false, 0},
        {"when { true } when { 1 }", false, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[128];
        snprintf(text, sizeof text, "permit(principal, action, resource) %s;", cases[i].conditions);
        struct cedar_policies *policies = must_parse(text);
        struct cedar_request request = must_make_request(NULL, NULL);
        struct cedar_response response;
        cedar_response_init(&response);
        cedar_authorize(policies, NULL, &request, &response);
        ck_assert_msg((response.decision == CEDAR_ALLOW) == cases[i].allow, "%s", text);
        ck_assert_msg(response.failure_count == cases[i].failures, "%s", text);
        cedar_response_finish(&response);
        cedar_policies_destroy(policies);
    }
}
END_TEST

START_TEST(equality_knows_all_types)
{
    static const struct expression_case cases[] = {
        {"1 == 1", TRUE_},
        {"1 == \"1\"", FALSE_},
        {"1 != \"1\"", TRUE_},
        {"true == 1", FALSE_},
        {"\"a\" == \"a\"", TRUE_},
        {"\"a\" == \"A\"", FALSE_},
        {"context.nul == \"a\\0b\"", TRUE_},
        {"context.nul == \"a\"", FALSE_},
        {"\"e\\u{301}\" == \"\\u{e9}\"", FALSE_},
        {"principal == User::\"alice\"", TRUE_},
        {"principal == NS::User::\"alice\"", FALSE_},
        {"User::\"x\" == User::\"x\"", TRUE_},
        {"[1, 2, 2] == [2, 1]", TRUE_},
        {"[1, 2] == [1, 3]", FALSE_},
        {"[] == []", TRUE_},
        {"[] == {}", FALSE_},
        {"{a: 1, \"b\": 2} == {b: 2, a: 1}", TRUE_},
        {"{a: 1} == {a: 1, b: 2}", FALSE_},
        {"{a: [1, {b: 2}]} == {a: [{b: 2}, 1]}", TRUE_},
        {"[context.n, context.n + 1] == [6, 5]", TRUE_},
        {"{a: context.n}.a == 5", TRUE_},
        {"decimal(\"1.0\") == decimal(\"1.00\")", TRUE_},
        {"decimal(\"1.0\") == 1", FALSE_},
        {"datetime(\"1970-01-01\") == duration(\"0ms\")", FALSE_},
        {"ip(\"1.2.3.4\") == ip(\"1.2.3.4/32\")", TRUE_},
        {"ip(\"10.0.0.0/8\") == ip(\"10.0.0.1/8\")", FALSE_},
        {"ip(\"::1\") == ip(\"0:0:0:0:0:0:0:1\")", TRUE_},
        {"context == context", TRUE_},
        {"context.nope == 1", ATTRIBUTE_},
    };
    EXPECT_OUTCOMES(cases);
}
END_TEST

START_TEST(order_takes_longs_and_times)
{
    static const struct expression_case cases[] = {
        {"1 < 2", TRUE_},
        {"2 < 2", FALSE_},
        {"2 <= 2", TRUE_},
        {"3 > 2", TRUE_},
        {"2 > 2", FALSE_},
        {"2 >= 2", TRUE_},
        {"1 >= 2", FALSE_},
        {"context.min < context.max", TRUE_},
        {"1 < \"2\"", TYPE_},
        {"\"1\" < \"2\"", TYPE_},
        {"true < false", TYPE_},
        {"principal < resource", TYPE_},
        {"decimal(\"1.0\") < decimal(\"2.0\")", TYPE_},
        {"datetime(\"2024-01-01\") < datetime(\"2024-01-02\")", TRUE_},
        {"duration(\"1h\") > duration(\"59m\")", TRUE_},
        {"duration(\"60m\") >= duration(\"1h\")", TRUE_},
        {"datetime(\"2024-01-01\") < duration(\"1d\")", TYPE_},
        {"1 < duration(\"1d\")", TYPE_},
    };
    EXPECT_OUTCOMES(cases);
}
END_TEST

START_TEST(arithmetic_is_exact_and_checked)
{
    static const struct expression_case cases[] = {
        {"1 + 2 * 3 == 7", TRUE_},
        {"(1 + 2) * 3 == 9", TRUE_},
        {"10 - 3 - 2 == 5", TRUE_},
        {"5 - 7 == -2", TRUE_},
        {"1 - -1 == 2", TRUE_},
        {"-context.n == -5", TRUE_},
        {"----5 == 5", TRUE_},
        {"007 == 7", TRUE_},
        {"-9223372036854775808 == context.min", TRUE_},
        {"9223372036854775807 == context.max", TRUE_},
        {"9223372036854775807 + 1 == 0", OVERFLOW_},
        {"context.max - -1 == 0", OVERFLOW_},
        {"context.min - 1 == 0", OVERFLOW_},
        {"-context.min == 0", OVERFLOW_},
        {"--9223372036854775808 == 0", OVERFLOW_},
        {"3037000500 * 3037000500 > 0", OVERFLOW_},
        {"3037000499 * 3037000499 == 9223372030926249001", TRUE_},
        {"context.min * -1 == 0", OVERFLOW_},
        {"1 + \"a\" == 1", TYPE_},
        {"\"a\" + \"b\" == \"ab\"", TYPE_},
        {"-true == 1", TYPE_},
        {"duration(\"1d\") + duration(\"1d\") == duration(\"2d\")", TYPE_},
    };
    EXPECT_OUTCOMES(cases);
}
END_TEST

START_TEST(sets_answer_by_value)
{
    static const struct expression_case cases[] = {
        {"[1, 2].contains(2)", TRUE_},
        {"[1, 2].contains(\"2\")", FALSE_},
        {"[].contains(1)", FALSE_},
        {"[[1, 2]].contains([2, 1, 1])", TRUE_},
        {"[{a: 1}].contains({a: 1})", TRUE_},
        {"context.set.contains(3)", TRUE_},
        {"[1, 2, 3, 4, 5, 6, 7, 8, 9, 10].contains(context.n)", TRUE_},
        {"[1, 2, 3, 4, 6, 7, 8, 9, 10, 11].contains(context.n)", FALSE_},
        {"1.contains(1)", TYPE_},
        {"[1, 2, 3].containsAll([3, 1])", TRUE_},
        {"[1].containsAll([1, 2])", FALSE_},
        {"[].containsAll([])", TRUE_},
        {"[1].containsAll(1)", TYPE_},
        {"[1, 2].containsAny([2, 3])", TRUE_},
        {"[1, 2].containsAny([3])", FALSE_},
        {"[1].containsAny([])", FALSE_},
        {"1.containsAny([1])", TYPE_},
        {"[].isEmpty()", TRUE_},
        {"[1].isEmpty()", FALSE_},
        {"{}.isEmpty()", TYPE_},
        {"[1, context.nope].contains(1)", ATTRIBUTE_},
        {"[1, 2,].contains(2)", TRUE_},
        {"[1].contains([1].contains)", TYPE_},
    };
    EXPECT_OUTCOMES(cases);
}
END_TEST

START_TEST(strings_decode_their_escapes)
{
    static const struct expression_case cases[] = {
        {"\"\\n\\r\\t\\\\\\0\\'\\\"\" == \"\\u{a}\\u{d}\\x09\\x5c\\x00\\x27\\u{22}\"", TRUE_},
        {"\"\\u{1F600}\" == \"\xf0\x9f\x98\x80\"", TRUE_},
        {"\"\\u{1_F6_00}\" == \"\xf0\x9f\x98\x80\"", TRUE_},
        {"\"\\u{00e9}\" == \"\xc3\xa9\"", TRUE_},
        {"\"\\u{20ac}\" == \"\xe2\x82\xac\"", TRUE_},
        {"\"a\nb\" == \"a\\nb\"", TRUE_},
        {"\"// no comment\" == \"// no \" ", FALSE_},
        {"\"\" == \"\"", TRUE_},
    };
    EXPECT_OUTCOMES(cases);
}
END_TEST

Suite *expression_suite(void)
{
    Suite *suite = suite_create("expressions");
    TCase *tests = tcase_create("expressions");
    tcase_add_test(tests, logic_is_boolean_and_stops_early);
    tcase_add_test(tests, if_evaluates_one_branch);
    tcase_add_test(tests, conditions_are_joined);
    tcase_add_test(tests, equality_knows_all_types);
    tcase_add_test(tests, order_takes_longs_and_times);
    tcase_add_test(tests, arithmetic_is_exact_and_checked);
    tcase_add_test(tests, sets_answer_by_value);
    tcase_add_test(tests, strings_decode_their_escapes);
    suite_add_tcase(suite, tests);
    return suite;
}
