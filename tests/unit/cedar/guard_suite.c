/* Policies passed over by their first comparison: nothing else may be seen of it. */
#include "cedar_test.h"

#include <stdlib.h>

#include "taskgate/core/memory.h"

static const char *const firsts[] = {
    "context.s == \"text\"",
    "context.s == \"other\"",
    "\"text\" == context.s",
    "context.s == \"\"",
    "context.n == \"5\"",
    "context.set == \"text\"",
    "context.nul == \"a\\0b\"",
    "context.nul == \"a\"",
    "context.missing == \"text\"",
    "principal.age == \"30\"",
    "principal.missing == \"x\"",
    "resource.owner == \"alice\"",
    "action.name == \"view\"",
    "context == \"text\"",
    "context.s != \"other\"",
    "(context.s == \"text\" && context.b) && true",
    "(context.s == \"other\" && context.missing) && true",
};

/* Behind `true` nothing is guarded. */
START_TEST(a_guarded_policy_comes_to_the_same)
{
    char *unguarded = memory_format("true && (%s)", firsts[_i]);
    char *continued = memory_format("%s && context.missing", firsts[_i]);
    char *continued_unguarded = memory_format("true && (%s) && context.missing", firsts[_i]);
    ck_assert_int_eq(outcome_of(firsts[_i]), outcome_of(unguarded));
    ck_assert_int_eq(outcome_of(continued), outcome_of(continued_unguarded));
    free(continued_unguarded);
    free(continued);
    free(unguarded);
}
END_TEST

static void expect(const struct cedar_policies *policies, const char *context, const char *reasons,
                   size_t failures)
{
    struct cedar_entities *entities = cedar_entities_create();
    struct cedar_heap *heap = cedar_heap_create();
    struct cedar_response response;
    struct buffer names;
    buffer_init(&names);
    cedar_response_init(&response);
    ck_assert(cedar_entities_seal(entities, NULL));
    struct cedar_request request = must_make_request(heap, context);
    cedar_authorize(policies, entities, &request, &response);
    for (size_t i = 0; i < response.reason_count; i++)
        buffer_append_format(&names, "%.*s ", STR_ARGS(cedar_policy_name(response.reasons[i])));
    ck_assert_msg(str_equal(buffer_str(&names), str_from(reasons)), "%s: %.*s", context,
                  STR_ARGS(buffer_str(&names)));
    ck_assert_uint_eq(response.failure_count, failures);
    buffer_finish(&names);
    cedar_response_finish(&response);
    cedar_heap_destroy(heap);
    cedar_entities_destroy(entities);
}

START_TEST(each_policy_has_its_own_guard)
{
    struct cedar_policies *policies =
        must_parse("permit(principal, action, resource) when { context.a == \"x\" };"
                   "permit(principal, action, resource) when { context.a == \"y\" };"
                   "permit(principal, action, resource) when { context.b == \"x\" };"
                   "permit(principal, action, resource) unless { context.a == \"x\" };"
                   "permit(principal, action, resource) when { true } when { context.a == \"y\" };"
                   "permit(principal, action, resource) when { context.a == \"y\" } when { true };"
                   "permit(principal, action, resource) when { principal.a == \"x\" };"
                   "permit(principal, action, resource);");
    expect(policies, "{\"a\": \"x\", \"b\": \"x\"}", "policy0 policy2 policy7 ", 1);
    expect(policies, "{\"a\": \"y\", \"b\": 1}", "policy1 policy3 policy4 policy5 policy7 ", 1);
    expect(policies, "{\"a\": true, \"b\": \"\"}", "policy3 policy7 ", 1);
    expect(policies, "{\"b\": \"x\"}", "policy2 policy7 ", 6);
    expect(policies, NULL, "policy7 ", 7);
    cedar_policies_destroy(policies);
}
END_TEST

static size_t failures_of(const struct cedar_policies *policies, struct cedar_request request,
                          bool without_shortcuts)
{
    struct cedar_entities *entities = must_read_entities(
        "[{\"uid\": {\"type\": \"User\", \"id\": \"alice\"}, \"attrs\": {\"team\": \"b\"},"
        " \"parents\": []}]");
    struct cedar_response response;
    cedar_response_init(&response);
    request.without_shortcuts = without_shortcuts;
    cedar_authorize(policies, entities, &request, &response);
    ck_assert_uint_eq(response.reason_count, 0);
    size_t failures = response.failure_count;
    cedar_response_finish(&response);
    cedar_entities_destroy(entities);
    return failures;
}

/* It would be passed over, and the caller of a simulation told that nothing depends on it. */
START_TEST(a_guard_on_what_is_unknown_or_ambiguous_lets_the_policy_tell)
{
    struct cedar_policies *policies =
        must_parse("permit(principal, action, resource) when { principal.team == \"a\" };"
                   "permit(principal, action, resource) when { context.text == \"a\" };"
                   "permit(principal, action, resource) when { context.names.path == \"a\" };"
                   "permit(principal, action, resource) when { context.path == \"a\" };");
    struct cedar_heap *heap = cedar_heap_create();
    struct cedar_value names, context;
    struct cedar_member folded[] = {{STR("path"), cedar_string(STR("b"))},
                                    {STR("Path"), cedar_string(STR("a"))},
                                    {STR("text"), cedar_unknown()}};
    ck_assert(cedar_record_of_names(heap, folded, 2, &names));
    ck_assert(cedar_record_of_names(heap, folded, 3, &context));
    struct cedar_request request = must_make_request(heap, NULL);
    request.context = context.record;
    request.principal_is_unknown = true;
    ck_assert_uint_eq(failures_of(policies, request, true), 4);
    ck_assert_uint_eq(failures_of(policies, request, false), 4);
    request.principal_is_unknown = false;
    ck_assert_uint_eq(failures_of(policies, request, true), 3);
    ck_assert_uint_eq(failures_of(policies, request, false), 3);
    cedar_heap_destroy(heap);
    cedar_policies_destroy(policies);
}
END_TEST

/* There is room for eight attributes; a policy on a ninth is evaluated. */
START_TEST(more_attributes_than_there_is_room_for)
{
    struct buffer text;
    buffer_init(&text);
    for (int i = 0; i < 20; i++)
        buffer_append_format(
            &text, "permit(principal, action, resource) when { context.a%d == \"%d\" };", i, i);
    buffer_append_char(&text, '\0');
    struct cedar_policies *policies = must_parse(text.bytes);
    expect(policies, "{\"a3\": \"3\", \"a4\": \"3\", \"a15\": \"15\", \"a16\": \"15\"}",
           "policy3 policy15 ", 16);
    cedar_policies_destroy(policies);
    buffer_finish(&text);
}
END_TEST

Suite *guard_suite(void)
{
    Suite *suite = suite_create("guards");
    TCase *tests = tcase_create("guards");
    tcase_add_loop_test(tests, a_guarded_policy_comes_to_the_same, 0,
                        (int)(sizeof firsts / sizeof *firsts));
    tcase_add_test(tests, each_policy_has_its_own_guard);
    tcase_add_test(tests, a_guard_on_what_is_unknown_or_ambiguous_lets_the_policy_tell);
    tcase_add_test(tests, more_attributes_than_there_is_room_for);
    suite_add_tcase(suite, tests);
    return suite;
}
