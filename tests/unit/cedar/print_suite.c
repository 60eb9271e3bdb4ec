/* Policies printed: the text that comes out, and that it says the same. */
#include "cedar_test.h"

#include <stdlib.h>
#include <string.h>

#include "taskgate/core/memory.h"
#include "taskgate/policy/cedar.h"

static char *print(const char *text)
{
    struct cedar_policies *policies = must_parse(text);
    struct buffer out;
    buffer_init(&out);
    cedar_policies_print(policies, &out);
    cedar_policies_destroy(policies);
    return buffer_take(&out, NULL);
}

static void expect_printed(const char *text, const char *expected)
{
    char *once = print(text);
    ck_assert_str_eq(once, expected);
    char *twice = print(once);
    ck_assert_str_eq(twice, expected);
    free(twice);
    free(once);
}

static void expect_condition(const char *expression, const char *expected)
{
    char *text = memory_format("permit(principal,action,resource)when{%s};", expression);
    char *printed = memory_format("permit(principal, action, resource)\nwhen { %s };\n", expected);
    expect_printed(text, printed);
    free(printed);
    free(text);
}

START_TEST(policies_are_laid_out_alike)
{
    expect_printed("", "");
    expect_printed(" permit ( principal , action,resource,); // gone",
                   "permit(principal, action, resource);\n");
    expect_printed("forbid(principal==A::B :: \"x\",action,resource);\n\n\n"
                   "@ id (\"a\\u{62}\")@if permit(principal,action,resource)unless{!false};",
                   "forbid(principal == A::B::\"x\", action, resource);\n"
                   "\n"
                   "@id(\"ab\")\n"
                   "@if\n"
                   "permit(principal, action, resource)\n"
                   "unless { !false };\n");
    expect_printed("permit(principal,action,resource)when{true}unless{1==2}when{false};",
                   "permit(principal, action, resource)\n"
                   "when { true }\n"
                   "unless { 1 == 2 }\n"
                   "when { false };\n");
}
END_TEST

START_TEST(every_scope_is_printed)
{
    static const char *const heads[] = {
        "permit(principal in G::\"g\", action == Action::\"a\", resource is D)",
        "permit(principal is U, action in Action::\"a\", resource is D in F::\"f\")",
        "permit(principal is U in G::\"g\", action in [], resource == D::\"\")",
        "forbid(principal, action in [N::Action::\"a\", Action::\"b\"], resource in F::\"f\")",
    };
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        char *text = memory_format("%s;\n", heads[i]);
        expect_printed(text, text);
        free(text);
    }
    expect_printed("permit(principal==((U::\"a\")),action in([Action::\"a\",]),resource);",
                   "permit(principal == U::\"a\", action in Action::\"a\", resource);\n");
}
END_TEST

START_TEST(parentheses_stand_where_they_must)
{
    static const struct {
        const char *expression, *printed;
    } cases[] = {
        {"((true))", "true"},
        {"(true&&false)&&(true&&(false))", "true && false && true && false"},
        {"(true||false)||true", "true || false || true"},
        {"(true||false)&&true", "(true || false) && true"},
        {"true||(false&&true)", "true || false && true"},
        {"(1+2)-3==1-(2-3)", "1 + 2 - 3 == 1 - (2 - 3)"},
        {"(1*2)+3==1*(2+3)", "1 * 2 + 3 == 1 * (2 + 3)"},
        {"(2*3)*4==2*(3*4)", "2 * 3 * 4 == 2 * (3 * 4)"},
        {"(1<2)==true", "(1 < 2) == true"},
        {"(if true then 1 else 2)+1==2", "(if true then 1 else 2) + 1 == 2"},
        {"if(if true then true else false)then 1==1 else if true then true else false",
         "if if true then true else false then 1 == 1 else if true then true else false"},
        {"[(if true then 1 else context.a)]==[1]", "[if true then 1 else context.a] == [1]"},
        {"!(true)", "!true"},
        {"!(context.a)", "!context.a"},
        {"!(true&&true)", "!(true && true)"},
        {"!!!!(!(!true))", "!!!!(!!true)"},
        {"!(!true)", "!!true"},
        {"- -5==5", "--5 == 5"},
        {"-(5)==-5", "-(5) == -5"},
        {"----5==-(-(-(-(-5))))", "----5 == ----(-5)"},
        {"-(-(5))==5", "--(5) == 5"},
        {"-context.a==-(1+2)", "-context.a == -(1 + 2)"},
        {"!(-5==5)", "!(-5 == 5)"},
        {"-5.a==(-5).a", "-5.a == (-5).a"},
        {"(-5)[\"a\"]==5", "(-5).a == 5"},
        {"1- -9223372036854775808==0", "1 - -9223372036854775808 == 0"},
        {"(principal in resource)==(principal is A::B in [resource])",
         "(principal in resource) == (principal is A::B in [resource])"},
        {"(context has a.b.c)&&context has\"if\"", "context has a.b.c && context has \"if\""},
        {"(context like\"a\")like\"b\"", "(context like \"a\") like \"b\""},
        {"(principal.a has b)has c", "(principal.a has b) has c"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_condition(cases[i].expression, cases[i].printed);
}
END_TEST

START_TEST(operands_are_printed_as_they_were_written)
{
    static const struct {
        const char *expression, *printed;
    } cases[] = {
        {"[2,1,2,]==[]", "[2, 1, 2] == []"},
        {"{b:1,\"a\":[{}],\"if\":2,\"\":3}=={}", "{b: 1, a: [{}], \"if\": 2, \"\": 3} == {}"},
        {"ip(\"10.0.0.0/8\").isInRange((ip(\"::1\")))",
         "ip(\"10.0.0.0/8\").isInRange(ip(\"::1\"))"},
        {"datetime(\"2024-01-01\").offset(duration(\"1d\"))<datetime(\"x\").toDate()",
         "datetime(\"2024-01-01\").offset(duration(\"1d\")) < datetime(\"x\").toDate()"},
        {"decimal(\"1.50\").lessThan(context.d)", "decimal(\"1.50\").lessThan(context.d)"},
        {"ip(\"a\",\"b\")==1", "ip(\"a\", \"b\") == 1"},
        {"principal.hasTag(\"a\")&&principal.getTag(context.t).isEmpty()",
         "principal.hasTag(\"a\") && principal.getTag(context.t).isEmpty()"},
        {"[1].contains(1)||[1].containsAny([])||[].containsAll([1])",
         "[1].contains(1) || [1].containsAny([]) || [].containsAll([1])"},
        {"context[\"a b\"][\"c\"].contains.has_", "context[\"a b\"].c.contains.has_"},
        {"(1+2).a==(principal in action).b", "(1 + 2).a == (principal in action).b"},
        {"A::B::\"x\\u{22}\"==action", "A::B::\"x\\\"\" == action"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_condition(cases[i].expression, cases[i].printed);
}
END_TEST

START_TEST(nothing_in_a_string_hides)
{
    static const struct {
        const char *expression, *printed;
    } cases[] = {
        {"\"a\\nb\\r\\t\\0\\'\\\\\"==\"\nx\"", "\"a\\nb\\r\\t\\0'\\\\\" == \"\\nx\""},
        {"\"\\x1b[31m\\x7f\"==\"\\u{85}\xc2\xa0\"", "\"\\u{1b}[31m\\u{7f}\" == \"\\u{85}\\u{a0}\""},
        {"\"\xe2\x80\xae\"==\"\xef\xbb\xbf\"", "\"\\u{202e}\" == \"\\u{feff}\""},
        {"\"\xc3\xa9\xe6\x97\xa5\xf0\x9f\x98\x80\"==\"\\u{e9}\\u{65e5}\\u{1f600}\"",
         "\"\xc3\xa9\xe6\x97\xa5\xf0\x9f\x98\x80\" == \"\xc3\xa9\xe6\x97\xa5\xf0\x9f\x98\x80\""},
        {"\"a*\"like\"**a\\*\\\\*\\n\\u{2a}\"", "\"a*\" like \"**a\\*\\\\*\\n*\""},
        {"\"\"like\"\"", "\"\" like \"\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_condition(cases[i].expression, cases[i].printed);
}
END_TEST

START_TEST(long_ones_take_several_lines)
{
    expect_printed("permit(principal is Company::Department::Employee in Company::Team::\"a team\","
                   "action in [Action::\"read\",Action::\"write\"],resource);",
                   "permit(\n"
                   "  principal is Company::Department::Employee in Company::Team::\"a team\",\n"
                   "  action in [Action::\"read\", Action::\"write\"],\n"
                   "  resource\n"
                   ");\n");
    expect_printed("forbid(principal,action,resource)unless{principal has department.name&&"
                   "(principal.department.name==\"finance\"||principal.department.name==\"audit\")"
                   "&&context.time.hour>8}when{context.note==\"a text that is too long to stand in"
                   " one line with the word that must stand in front of it\"};",
                   "forbid(principal, action, resource)\n"
                   "unless {\n"
                   "  principal has department.name &&\n"
                   "  (principal.department.name == \"finance\" || principal.department.name =="
                   " \"audit\") &&\n"
                   "  context.time.hour > 8\n"
                   "}\n"
                   "when {\n"
                   "  context.note == \"a text that is too long to stand in one line with the word"
                   " that must stand in front of it\"\n"
                   "};\n");
}
END_TEST

/* A chain in parentheses within a chain is the same chain, in several lines as in one. */
START_TEST(links_of_a_chain_have_a_line_each)
{
    expect_printed(
        "permit(principal,action,resource)when{(context.a.rather.long.path.to.something&&"
        "context.b.rather.long.path.to.something)&&(true||false)};",
        "permit(principal, action, resource)\n"
        "when {\n"
        "  context.a.rather.long.path.to.something &&\n"
        "  context.b.rather.long.path.to.something &&\n"
        "  (true || false)\n"
        "};\n");
}
END_TEST

/* The printer writes values that the parser computed in their written form, which must not grow
 * without end. */
START_TEST(chains_of_constant_calls_are_bounded)
{
    struct buffer text;
    buffer_init(&text);
    buffer_append_text(&text, "permit(principal,action,resource)when{datetime(\"1970-01-01\")");
    for (int i = 0; i < 5000; i++)
        buffer_append_text(&text, ".toDate()");
    buffer_append_text(&text, "==1};");
    char *problems = must_refuse(buffer_str(&text));
    ck_assert_ptr_nonnull(strstr(problems, "an expression of more than 1000 steps"));
    free(problems);
    buffer_finish(&text);
}
END_TEST

Suite *print_suite(void)
{
    Suite *suite = suite_create("print");
    TCase *tests = tcase_create("print");
    tcase_add_test(tests, policies_are_laid_out_alike);
    tcase_add_test(tests, every_scope_is_printed);
    tcase_add_test(tests, parentheses_stand_where_they_must);
    tcase_add_test(tests, operands_are_printed_as_they_were_written);
    tcase_add_test(tests, nothing_in_a_string_hides);
    tcase_add_test(tests, long_ones_take_several_lines);
    tcase_add_test(tests, links_of_a_chain_have_a_line_each);
    tcase_add_test(tests, chains_of_constant_calls_are_bounded);
    suite_add_tcase(suite, tests);
    return suite;
}
