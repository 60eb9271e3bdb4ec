/* Texts that are not policies: the place, the mistake, and the expectation. */
#include "cedar_test.h"

#include <stdlib.h>
#include <string.h>

#define HEAD "permit(principal, action, resource)"

/* A text, and the line that must be among its problems. */
struct refusal {
    const char *text, *problem;
};

static void expect_refusals(const struct refusal *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char *problems = must_refuse(str_from(cases[i].text));
        ck_assert_msg(strstr(problems, cases[i].problem) != NULL, "<%s>: got %s", cases[i].text,
                      problems);
        free(problems);
    }
}
#define EXPECT_REFUSALS(cases) expect_refusals(cases, sizeof(cases) / sizeof *(cases))

START_TEST(heads_are_strict)
{
    static const struct refusal cases[] = {
        {"Permit(principal, action, resource);",
         "t.cedar:1:1: unexpected \"Permit\"; expected \"permit\" or \"forbid\"\n"},
        {"permit(principal, action);", "t.cedar:1:25: unexpected \")\"; expected \",\", \"==\""},
        {"permit(action, principal, resource);",
         "1:8: unexpected \"action\"; expected \"principal\""},
        {"permit(principal, action, resource, context);",
         "1:37: unexpected \"context\"; expected \")\""},
        {"permit(principal, action, resource)", "1:36: unexpected the end of the text; expected "
                                                "\"when\", \"unless\" or \";\"\n"},
        {"permit(principal = User::\"a\", action, resource);", "1:18: unexpected \"=\""},
        {"permit(principal == resource, action, resource);",
         "1:29: unexpected \",\"; expected \"::\" and an id in quotes"},
        {"permit(principal: User, action, resource);", "1:17: unexpected \":\""},
        {"permit(principal in [User::\"a\"], action, resource);",
         "1:21: unexpected \"[\"; expected an entity"},
        {"permit(principal in G::\"g\" is User, action, resource);", "1:28: unexpected \"is\""},
        {"permit(principal is User::\"a\", action, resource);",
         "1:27: unexpected a string; expected a name"},
        {"permit(principal is User == User::\"a\", action, resource);", "1:26: unexpected \"==\""},
        {"permit(principal == User::{id: \"a\"}, action, resource);", "1:27: unexpected \"{\""},
        {"permit(principal == if::\"a\", action, resource);", "1:21: \"if\" is a reserved word"},
        {"permit(principal == __cedar::U::\"a\", action, resource);",
         "1:21: \"__cedar\" is a reserved"},
        {"permit(principal == \"a\", action, resource);", "expected an entity: TYPE::\"id\""},
        {"permit(principal, action == [Action::\"a\"], resource);", "1:29: unexpected \"[\""},
        {"permit(principal, action in Foo::\"a\", resource);",
         "1:29: this is no action; expected Action::\"\xe2\x80\xa6\""},
        {"permit(principal, action is Action, resource);", "1:26: unexpected \"is\""},
        {"permit(principal == ?principal, action, resource);",
         "1:21: templates are not supported: \"?principal\"; expected an entity"},
        {"@id(\"a\") @id(\"b\") permit(principal, action, resource);",
         "1:11: the annotation \"id\" stands twice"},
        {"@\"id\"(\"a\") permit(principal, action, resource);",
         "1:2: unexpected a string; expected the name"},
        {"@id() permit(principal, action, resource);",
         "1:5: unexpected \")\"; expected the annotation's value"},
        {"# c\npermit(principal, action, resource);", "1:1: unexpected \"#\""},
        {HEAD " when {};", "1:43: unexpected \"}\"; expected an operand"},
        {HEAD " when {1.5 < 2};",
         "1:45: unexpected \"5\"; expected an attribute or a method; for a "
         "fraction write decimal(\"1.5\")"},
        {HEAD " if { true };", "1:37: unexpected \"if\"; expected \"when\""},
        {HEAD "\n  when true;", "2:8: unexpected \"true\"; expected \"{\""},
        {HEAD " when { true ;", "1:49: unexpected \";\"; expected \"}\" or an operator"},
        {"\xef\xbb\xbf" HEAD ";", "1:1: unexpected a character that no token has"},
    };
    EXPECT_REFUSALS(cases);
}
END_TEST

START_TEST(expressions_are_strict)
{
    static const struct refusal cases[] = {
        {HEAD " when { 1 == 1 == true };", "1:51: unexpected \"==\"; expected one relation"},
        {HEAD " when { 1 < 2 < 3 };", "expected one relation"},
        {HEAD " when { principal has a has b };", "expected one relation"},
        {HEAD " when { a is B in C::\"c\" in D::\"d\" };", "expected one relation"},
        {HEAD " when { 1 = 1 };", "expected \"==\" to compare"},
        {HEAD " when { true & true };", "unexpected \"&\""},
        {HEAD " when { true && };", "1:52: unexpected \"}\"; expected an operand"},
        {HEAD " when { 10 / 2 == 5 };", "1:47: there is no operator \"/\"; expected \"*\""},
        {HEAD " when { 10 % 2 == 5 };", "there is no operator \"%\""},
        {HEAD " when { +5 == 5 };", "unexpected \"+\""},
        {HEAD " when { !!!!!true };", "\"!\" stands at most 4 times"},
        {HEAD " when { -----1 == 1 };", "\"-\" stands at most 4 times"},
        {HEAD " when { -!true };", "unexpected \"!\"; expected an operand"},
        {HEAD " when { !-1 };", "unexpected \"-\"; expected an operand"},
        {HEAD " when { 9223372036854775808 == 0 };", "1:44: this number does not fit"},
        {HEAD " when { -9223372036854775809 == 0 };", "this number does not fit"},
        {HEAD " when { -9223372036854775808.x == 0 };", "this number does not fit"},
        {HEAD " when { 99999999999999999999 == 0 };", "this number does not fit"},
        {HEAD " when { 1.5 == 1 };", "1:46: unexpected \"5\"; expected an attribute"},
        {HEAD " when { 0x10 == 16 };", "1:45: unexpected \"x10\""},
        {HEAD " when { if true then 1 };", "expected \"else\""},
        {HEAD " when { 1 + if true then 1 else 2 == 2 };", "put \"if\" in parentheses"},
        {HEAD " when { 'a' == 'a' };", "unexpected \"'\""},
        {HEAD " when { principal.in == 1 };", "1:54: \"in\" is a reserved word; expected [\"in\"]"},
        {HEAD " when { principal.1 == 1 };", "unexpected \"1\"; expected an attribute"},
        {HEAD " when { principal[1] };", "expected an attribute in quotes"},
        {HEAD " when { principal[(\"a\")] };", "expected an attribute in quotes"},
        {HEAD " when { {in: 1} == {} };", "\"in\" is a reserved word"},
        {HEAD " when { {1: 2} == {} };", "expected an attribute (a name or a string)"},
        {HEAD " when { {a: 1 b: 2} == {} };", "expected \",\" or \"}\""},
        {HEAD " when { {a: 1, \"a\": 2} == {} };", "with the attribute \"a\" twice"},
        {HEAD " when { {a: 1, a: context} == {} };", "with the attribute \"a\" twice"},
        {HEAD " when { [,].isEmpty() };", "unexpected \",\"; expected an operand"},
        {HEAD " when { [1 2].isEmpty() };", "expected \",\" or \"]\""},
        {HEAD " when { context has \"a\".b };", "unexpected \".\""},
        {HEAD " when { context has in };", "\"in\" is a reserved word"},
        {HEAD " when { context has (n) };", "expected an attribute: a name or a string"},
        {HEAD " when { context has true };", "\"true\" is a reserved word"},
        {HEAD " when { context has a[\"b\"] };", "unexpected \"[\""},
        {HEAD " when { principal is User::\"a\" };", "unexpected a string"},
        {HEAD " when { principal is (User) };", "unexpected \"(\"; expected a name"},
        {HEAD " when { \"a\" like 1 };", "expected a pattern in quotes"},
        {HEAD " when { \"a\" like \"b\" + \"c\" };", "unexpected \"+\""},
        {HEAD " when { foo(1) };", "1:44: there is no function \"foo\""},
        {HEAD " when { a::ip(\"x\") };", "there is no function \"a::ip\""},
        {HEAD " when { contains([1], 1) };", "\"contains\" is a method"},
        {HEAD " when { isIpv4(ip(\"1.2.3.4\")) };", "\"isIpv4\" is a method"},
        {HEAD " when { \"1.2.3.4\".ip() };", "\"ip\" is a function"},
        {HEAD " when { principal.foo() };", "there is no method \"foo\""},
        {HEAD " when { [1].contains(1, 2) };", "2 arguments for \"contains\"; expected 1"},
        {HEAD " when { principal.hasTag() };", "0 arguments for \"hasTag\"; expected 1"},
        {HEAD " when { principal() };", "only functions and methods are called"},
        {HEAD " when { (1 + 1)(2) };", "only functions and methods are called"},
        {HEAD " when { User::alice };", "there is no variable \"User::alice\""},
        {HEAD " when { tru };", "there is no variable \"tru\""},
        {HEAD " when { foo.bar };", "there is no variable \"foo\""},
        {HEAD " when { then };", "\"then\" is a reserved word"},
        {HEAD " when { principal == ?principal };", "templates are not supported"},
        {HEAD " when { (true };", "unexpected \"}\"; expected \")\""},
    };
    EXPECT_REFUSALS(cases);
}
END_TEST

START_TEST(literals_are_strict)
{
    static const struct refusal cases[] = {
        {HEAD " when { \"\\x80\" == \"\" };", "1:45: \\x goes up to \\x7f"},
        {HEAD " when { \"a\\x1\" == \"\" };", "1:46: \\x needs two hexadecimal digits"},
        {HEAD " when { \"\\u{d800}\" == \"\" };", "this is no Unicode character"},
        {HEAD " when { \"\\u{110000}\" == \"\" };", "this is no Unicode character"},
        {HEAD " when { \"\\u{}\" == \"\" };", "one to six hexadecimal digits"},
        {HEAD " when { \"\\u{0000061}\" == \"\" };", "one to six hexadecimal digits"},
        {HEAD " when { \"\\u{_61}\" == \"\" };", "takes hexadecimal digits"},
        {HEAD " when { \"\\u{61\" == \"\" };", "needs its closing brace"},
        {HEAD " when { \"\\u61\" == \"\" };", "\\u needs its digits in braces"},
        {HEAD " when { \"\\*\" == \"\" };", "this is no escape"},
        {HEAD " when { \"\\q\" == \"\" };", "this is no escape"},
        {HEAD " when { \"a\\\nb\" == \"\" };", "a string without its closing quote"},
        {HEAD " when { \"a\rb\" == \"\" };", "a carriage return cannot stand in a string"},
        {HEAD " when { \"a };", "1:44: unexpected a string without its closing quote"},
        {HEAD " when { \"a\" like \"\\q\" };", "1:54: this is no escape"},
        {"@id(\"\\q\") " HEAD ";", "1:6: this is no escape"},
        {HEAD " when { User::\"\\q\" == 1 };", "this is no escape"},
    };
    EXPECT_REFUSALS(cases);
}
END_TEST

START_TEST(all_problems_are_reported)
{
    char *problems = must_refuse(STR("permit(principal, action, resource) when { foo(1) && bar };\n"
                                     "permit(principal action, resource);\n"
                                     "permit(principal, action, resource);\n"
                                     "  allow(principal, action, resource);\n"
                                     "forbid(principal, action, resource) when { \xc3\xa9 };"));
    ck_assert_str_eq(
        problems, "t.cedar:1:44: there is no function \"foo\"; expected ip, decimal, datetime "
                  "or duration\n"
                  "t.cedar:1:54: there is no variable \"bar\"; expected principal, action, "
                  "resource or context, or an id in quotes behind \"::\"\n"
                  "t.cedar:2:18: unexpected \"action\"; expected \",\", \"==\", \"in\" or \"is\" "
                  "behind principal\n"
                  "t.cedar:4:3: unexpected \"allow\"; expected \"permit\" or \"forbid\"\n"
                  "t.cedar:5:44: unexpected a character that no token has; expected an "
                  "operand\n");
    free(problems);
}
END_TEST

START_TEST(columns_count_characters)
{
    char *problems = must_refuse(STR("// \xc3\xa9\n@a(\"\xc3\xa9\xf0\x9f\x98\x80\") allow;"));
    ck_assert_msg(strstr(problems, "t.cedar:2:10: unexpected \"allow\"") != NULL, "%s", problems);
    free(problems);
}
END_TEST

START_TEST(problems_are_limited)
{
    struct buffer text;
    buffer_init(&text);
    for (int i = 0; i < 150; i++)
        buffer_append_text(&text, "allow;\n");
    char *problems = must_refuse(buffer_str(&text));
    ck_assert_ptr_nonnull(strstr(problems, "t.cedar:100:1:"));
    ck_assert_ptr_null(strstr(problems, "t.cedar:101:1:"));
    ck_assert_ptr_nonnull(strstr(problems, "50 more problems\n"));
    free(problems);
    buffer_finish(&text);
}
END_TEST

START_TEST(bytes_outside_utf8_are_refused)
{
    char *problems = must_refuse(STR("// \xc3\xa9\xe2\x82\xac\n \xff permit"));
    ck_assert_str_eq(problems, "t.cedar:2:2: this is not UTF-8\n");
    free(problems);
    problems = must_refuse(STR("permit(principal,action,resource)\0;"));
    ck_assert_ptr_nonnull(strstr(problems, "1:34: unexpected a character that no token has"));
    free(problems);
}
END_TEST

Suite *refusal_suite(void)
{
    Suite *suite = suite_create("refusals");
    TCase *tests = tcase_create("refusals");
    tcase_add_test(tests, heads_are_strict);
    tcase_add_test(tests, expressions_are_strict);
    tcase_add_test(tests, literals_are_strict);
    tcase_add_test(tests, all_problems_are_reported);
    tcase_add_test(tests, columns_count_characters);
    tcase_add_test(tests, problems_are_limited);
    tcase_add_test(tests, bytes_outside_utf8_are_refused);
    suite_add_tcase(suite, tests);
    return suite;
}
