/* Texts that are policies, and their properties. */
#include "cedar_test.h"

#include <stdlib.h>

#include "taskgate/core/memory.h"

START_TEST(forms_of_policies_are_accepted)
{
    static const struct {
        const char *text;
        size_t count;
    } cases[] = {
        {"", 0},
        {"  \n\t// nothing but a comment", 0},
        {"permit(principal,action,resource);", 1},
        {"permit ( principal , action , resource , ) ;", 1},
        {"permit(principal,action,resource);forbid(principal,action,resource);", 2},
        {"permit(principal,action,resource)\xe3\x80\x80;\xc2\xa0\xe2\x80\xa8\xc2\x85", 1},
        {"permit(principal // one\r, action // two\n, resource);", 1},
        {"permit(principal == User::\"a\", action == Action::\"b\", resource == Doc::\"c\");", 1},
        {"permit(principal == ((User::\"a\")), action in ([(Action::\"b\")]), resource);", 1},
        {"permit(principal in A::B::C::\"a\", action in Action::\"b\", resource in D::\"c\");", 1},
        {"permit(principal == A :: // space\n B::\"a\", action, resource);", 1},
        {"permit(principal is User, action in [], resource is A::Doc in Folder::\"f\");", 1},
        {"permit(principal,action in [NS::Action::\"a\",Action::\"b\",],resource);", 1},
        {"permit(principal == permit::\"a\", action, resource is context);", 1},
        {"@a permit(principal,action,resource);", 1},
        {"@a(\"x\") @ if (\"\\u{1F600}\") @in permit(principal,action,resource);", 1},
        {"permit(principal,action,resource) when { principal.permit.when.context == 1 };", 1},
        {"permit(principal,action,resource) when { {principal: 1, \"if\": 2, a: 3,} == {} };", 1},
        {"permit(principal,action,resource) when { -principal.b * -1 - 2 == 1 };", 1},
        {"permit(principal,action,resource) when { [].isEmpty };", 1},
        {"permit(principal,action,resource) when { ip(\"1.1.1.1\",).isIpv4() };", 1},
        {"permit(principal,action,resource) when { principal::\"x\" == action::\"y\" };", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cedar_policies *policies = must_parse(cases[i].text);
        ck_assert_msg(cedar_policies_count(policies) == cases[i].count, "%s", cases[i].text);
        cedar_policies_destroy(policies);
    }
}
END_TEST

START_TEST(policies_tell_about_themselves)
{
    struct cedar_policies *policies =
        must_parse("permit(principal, action, resource);\n"
                   "// a comment\n"
                   "  @id(\"big-spender\") @thoughtgate_approval(\"fin\\u{61}nce\") @bare\n"
                   "  forbid(principal, action, resource) when { true };\n");
    ck_assert_uint_eq(cedar_policies_count(policies), 2);
    const struct cedar_policy *first = cedar_policies_at(policies, 0);
    const struct cedar_policy *second = cedar_policies_at(policies, 1);
    struct str value = STR("untouched");
    ck_assert(str_equal(cedar_policy_name(first), STR("policy0")));
    ck_assert(str_equal(cedar_policy_name(second), STR("policy1")));
    ck_assert_int_eq(cedar_policy_effect(first), CEDAR_PERMIT);
    ck_assert_int_eq(cedar_policy_effect(second), CEDAR_FORBID);
    ck_assert(!cedar_policy_annotation(first, STR("id"), &value));
    ck_assert(str_equal(value, STR("untouched")));
    ck_assert(cedar_policy_annotation(second, STR("id"), &value));
    ck_assert(str_equal(value, STR("big-spender")));
    ck_assert(cedar_policy_annotation(second, STR("thoughtgate_approval"), &value));
    ck_assert(str_equal(value, STR("finance")));
    ck_assert(cedar_policy_annotation(second, STR("bare"), &value));
    ck_assert_uint_eq(value.length, 0);
    struct cedar_position position = cedar_policy_position(second);
    ck_assert_str_eq(position.source, "t.cedar");
    ck_assert_uint_eq(position.line, 3);
    ck_assert_uint_eq(position.column, 3);
    ck_assert(str_starts_with(cedar_policy_text(second), STR("@id(")));
    ck_assert(str_ends_with(cedar_policy_text(second), STR("{ true };")));
    ck_assert(str_equal(cedar_policy_text(first), STR("permit(principal, action, resource);")));
    cedar_policies_destroy(policies);
}
END_TEST

START_TEST(sources_are_numbered_on)
{
    struct cedar_source sources[] = {
        {.name = "a.cedar", .text = STR("permit(principal,action,resource);")},
        {.name = "b.cedar", .text = STR("")},
        {.name = "c.cedar", .text = STR("\nforbid(principal,action,resource);")},
    };
    struct buffer problems;
    buffer_init(&problems);
    struct cedar_policies *policies = cedar_policies_parse(sources, 3, &problems);
    ck_assert_ptr_nonnull(policies);
    ck_assert_uint_eq(cedar_policies_count(policies), 2);
    const struct cedar_policy *second = cedar_policies_at(policies, 1);
    ck_assert(str_equal(cedar_policy_name(second), STR("policy1")));
    ck_assert_str_eq(cedar_policy_position(second).source, "c.cedar");
    ck_assert_uint_eq(cedar_policy_position(second).line, 2);
    cedar_policies_destroy(policies);
    buffer_finish(&problems);
}
END_TEST

/* `count` times `opening`, `middle`, `count` times `closing`, as a condition. */
static char *nested(size_t count, const char *opening, const char *middle, const char *closing)
{
    struct buffer text;
    buffer_init(&text);
    buffer_append_text(&text, "permit(principal,action,resource) when { ");
    for (size_t i = 0; i < count; i++)
        buffer_append_text(&text, opening);
    buffer_append_text(&text, middle);
    for (size_t i = 0; i < count; i++)
        buffer_append_text(&text, closing);
    buffer_append_text(&text, " };");
    return buffer_take(&text, NULL);
}

START_TEST(depth_is_bounded)
{
    static const struct {
        size_t good, bad;
        const char *opening, *middle, *closing;
    } cases[] = {
        {150, 250, "(", "true", ")"},       {100, 250, "[", "1", "]"},
        {60, 250, "{a: (", "1", ")}"},      {150, 250, "if true then ", "true", " else false"},
        {500, 2000, "", "context", ".a"},   {500, 2000, "1 + ", "1", ""},
        {150, 250, "!(", "true", ")"},      {5000, 0, "true && ", "true", ""},
        {5000, 0, "false || ", "true", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text = nested(cases[i].good, cases[i].opening, cases[i].middle, cases[i].closing);
        struct cedar_policies *policies = must_parse(text);
        struct cedar_request request = must_make_request(NULL, NULL);
        struct cedar_response response;
        cedar_response_init(&response);
        cedar_authorize(policies, NULL, &request, &response);
        cedar_response_finish(&response);
        cedar_policies_destroy(policies);
        free(text);
        if (cases[i].bad == 0)
            continue;
        text = nested(cases[i].bad, cases[i].opening, cases[i].middle, cases[i].closing);
        free(must_refuse(str_from(text)));
        free(text);
    }
}
END_TEST

Suite *syntax_suite(void)
{
    Suite *suite = suite_create("syntax");
    TCase *tests = tcase_create("syntax");
    tcase_add_test(tests, forms_of_policies_are_accepted);
    tcase_add_test(tests, policies_tell_about_themselves);
    tcase_add_test(tests, sources_are_numbered_on);
    tcase_add_test(tests, depth_is_bounded);
    suite_add_tcase(suite, tests);
    return suite;
}
