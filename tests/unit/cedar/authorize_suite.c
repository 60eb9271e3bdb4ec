/* Decisions: winning and skipped policies, the order, and the bound on work. */
#include "cedar_test.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

static const char both[] = "permit(principal, action, resource);"
                           "permit(principal, action, resource) when { context.nope };"
                           "forbid(principal, action, resource) when { context.n > 3 };"
                           "forbid(principal == User::\"bob\", action, resource);"
                           "permit(principal in Team::\"x\", action, resource);"
                           "permit(principal is User, action == Action::\"view\", resource);"
                           "forbid(principal, action, resource) when { context.n > 4 };";

#define NAMES_BYTES 256

/* The numbers of the policies, "0 5". */
static const char *names(const struct cedar_policy *const *policies, size_t count,
                         char text[NAMES_BYTES])
{
    size_t length = 0;
    text[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        struct str name = cedar_policy_name(policies[i]);
        ck_assert(str_starts_with(name, STR("policy")));
        length += (size_t)snprintf(text + length, NAMES_BYTES - length, "%s%.*s", i ? " " : "",
                                   (int)name.length - 6, name.bytes + 6);
    }
    return text;
}

static void expect(const struct cedar_policies *policies, struct cedar_response *response,
                   const char *context, enum cedar_decision decision, const char *reasons)
{
    char text[NAMES_BYTES];
    struct cedar_heap *heap = cedar_heap_create();
    struct cedar_request request = must_make_request(heap, context);
    cedar_authorize(policies, NULL, &request, response);
    ck_assert_int_eq(response->decision, decision);
    ck_assert_str_eq(names(response->reasons, response->reason_count, text), reasons);
    ck_assert(!response->exhausted);
    cedar_heap_destroy(heap);
}

START_TEST(forbid_wins_and_errors_are_skipped)
{
    struct cedar_policies *policies = must_parse(both);
    struct cedar_response response;
    cedar_response_init(&response);
    expect(policies, &response, "{\"n\": 1}", CEDAR_ALLOW, "0 5");
    ck_assert_uint_eq(response.failure_count, 1);
    ck_assert(response.failures[0].policy == cedar_policies_at(policies, 1));
    expect(policies, &response, "{\"n\": 4}", CEDAR_DENY, "2");
    expect(policies, &response, "{\"n\": 5}", CEDAR_DENY, "2 6");
    expect(policies, &response, "{}", CEDAR_ALLOW, "0 5");
    ck_assert_uint_eq(response.failure_count, 3);
    expect(policies, &response, NULL, CEDAR_ALLOW, "0 5");
    cedar_response_finish(&response);
    cedar_policies_destroy(policies);
}
END_TEST

START_TEST(nothing_is_allowed_by_default)
{
    struct cedar_response response;
    cedar_response_init(&response);
    struct cedar_policies *policies = must_parse("");
    expect(policies, &response, NULL, CEDAR_DENY, "");
    cedar_policies_destroy(policies);
    policies = must_parse("forbid(principal, action, resource) when { false };");
    expect(policies, &response, NULL, CEDAR_DENY, "");
    cedar_policies_destroy(policies);
    policies = must_parse("permit(principal, action, resource) when { context.nope };");
    expect(policies, &response, NULL, CEDAR_DENY, "");
    ck_assert_uint_eq(response.failure_count, 1);
    cedar_policies_destroy(policies);
    cedar_response_finish(&response);
}
END_TEST

START_TEST(failures_say_why_and_where)
{
    static const struct {
        const char *expression, *message;
        unsigned column;
    } cases[] = {
        {"context.nope", "there is no attribute \"nope\"", 9},
        {"1 + true == 2", "type error: expected long, found bool", 3},
        {"context in principal", "type error: expected entity, found record", 9},
        {"principal in 1", "type error: expected entity or set, found long", 11},
        {"1.a", "type error: expected entity or record, found long", 3},
        {"\"a\" < \"b\"", "type error: expected long or datetime or duration, found string", 5},
        {"principal.a", "the entity with this attribute or tag does not exist", 11},
        {"9223372036854775807 + 1 == 1", "the result does not fit into 64 bits", 21},
        {"ip(\"secret\").isIpv4()", "ip refuses its argument", 1},
        {"ip(\"::1\").isIpv4(1)", "isIpv4 takes another number of arguments", 11},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[256];
        snprintf(text, sizeof text, "permit(principal, action, resource) when {\n%s };",
                 cases[i].expression);
        struct cedar_policies *policies = must_parse(text);
        struct cedar_response response;
        cedar_response_init(&response);
        expect(policies, &response, "{}", CEDAR_DENY, "");
        ck_assert_uint_eq(response.failure_count, 1);
        struct buffer message;
        buffer_init(&message);
        cedar_failure_write(&response.failures[0], &message);
        buffer_append_char(&message, '\0');
        ck_assert_str_eq(message.bytes, cases[i].message);
        struct cedar_position position = cedar_failure_position(&response.failures[0]);
        ck_assert_uint_eq(position.line, 2);
        ck_assert_msg(position.column == cases[i].column, "%s: column %u", cases[i].expression,
                      position.column);
        buffer_finish(&message);
        cedar_response_finish(&response);
        cedar_policies_destroy(policies);
    }
}
END_TEST

static bool is_named(const struct cedar_policy *policy, void *data)
{
    struct str id;
    return cedar_policy_annotation(policy, STR("id"), &id) && str_equal(id, str_from(data));
}

START_TEST(a_caller_chooses_whom_to_ask)
{
    struct cedar_policies *policies = must_parse("@id(\"a\") permit(principal, action, resource);"
                                                 "@id(\"b\") forbid(principal, action, resource);"
                                                 "permit(principal, action, resource);");
    struct cedar_request request = must_make_request(NULL, NULL);
    struct cedar_response response;
    cedar_response_init(&response);
    char a[] = "a", b[] = "b", c[] = "c", text[NAMES_BYTES];
    request.asks = is_named;
    request.asks_data = a;
    cedar_authorize(policies, NULL, &request, &response);
    ck_assert_int_eq(response.decision, CEDAR_ALLOW);
    ck_assert_str_eq(names(response.reasons, response.reason_count, text), "0");
    request.asks_data = b;
    cedar_authorize(policies, NULL, &request, &response);
    ck_assert_int_eq(response.decision, CEDAR_DENY);
    ck_assert_str_eq(names(response.reasons, response.reason_count, text), "1");
    request.asks_data = c;
    cedar_authorize(policies, NULL, &request, &response);
    ck_assert_int_eq(response.decision, CEDAR_DENY);
    ck_assert_uint_eq(response.reason_count, 0);
    cedar_response_finish(&response);
    cedar_policies_destroy(policies);
}
END_TEST

/* The steps that a condition takes, found by halving. */
static uint64_t steps_of(const char *text, const struct cedar_record *context)
{
    struct cedar_policies *policies = must_parse(text);
    struct cedar_request request = must_make_request(NULL, NULL);
    struct cedar_response response;
    uint64_t low = 0, high = CEDAR_DEFAULT_BUDGET;
    request.context = context;
    cedar_response_init(&response);
    while (low + 1 < high) {
        request.budget = low + (high - low) / 2;
        cedar_authorize(policies, NULL, &request, &response);
        *(response.exhausted ? &low : &high) = request.budget;
    }
    cedar_response_finish(&response);
    cedar_policies_destroy(policies);
    return high;
}

START_TEST(a_pattern_and_an_element_that_is_there_twice_cost_their_length)
{
    struct buffer text, big;
    buffer_init(&text);
    buffer_init(&big);
    for (int i = 0; i < 64000; i++)
        buffer_append_char(&big, 'a');
    struct cedar_heap *heap = cedar_heap_create();
    struct cedar_member member = {STR("big"), cedar_string(buffer_str(&big))};
    struct cedar_value context;
    ck_assert(cedar_record(heap, &member, 1, &context));

    buffer_append_text(&text, "permit(principal, action, resource) when { \"\" like \"");
    for (int i = 0; i < 1000; i++)
        buffer_append_text(&text, "*a");
    buffer_append_text(&text, "\" };");
    buffer_append_char(&text, '\0');
    ck_assert_uint_ge(steps_of(text.bytes, NULL), 4000);

    buffer_clear(&text);
    buffer_append_text(&text, "permit(principal, action, resource) when { [");
    for (int i = 0; i < 100; i++)
        buffer_append_text(&text, i ? ", context.big" : "context.big");
    buffer_append_text(&text, "].isEmpty() };");
    buffer_append_char(&text, '\0');
    ck_assert_uint_ge(steps_of(text.bytes, context.record), 100 * 1000);
    cedar_heap_destroy(heap);
    buffer_finish(&big);
    buffer_finish(&text);
}
END_TEST

START_TEST(an_exhausted_budget_denies)
{
    /* The forbid stands after a policy that takes too long: allowing would be wrong. */
    struct cedar_policies *policies = must_parse("permit(principal, action, resource);"
                                                 "permit(principal, action, resource) when {"
                                                 " 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 == 9 };"
                                                 "forbid(principal, action, resource);");
    struct cedar_request request = must_make_request(NULL, NULL);
    struct cedar_response response;
    cedar_response_init(&response);
    request.budget = 5;
    cedar_authorize(policies, NULL, &request, &response);
    ck_assert_int_eq(response.decision, CEDAR_DENY);
    ck_assert(response.exhausted);
    ck_assert_uint_eq(response.failure_count, 1);
    ck_assert_int_eq(response.failures[0].code, CEDAR_FAILURE_BUDGET);
    ck_assert(response.failures[0].policy == cedar_policies_at(policies, 1));
    request.budget = 0;
    cedar_authorize(policies, NULL, &request, &response);
    ck_assert(!response.exhausted);
    ck_assert_uint_eq(response.failure_count, 0);
    ck_assert_int_eq(response.decision, CEDAR_DENY);
    cedar_response_finish(&response);
    cedar_policies_destroy(policies);
}
END_TEST

START_TEST(large_values_cost_budget)
{
    static const char *const conditions[] = {
        "context.s like \"*x*\"",  "context == {}",     "context.s == \"x\"",
        "[1].contains(context.s)", "[context.s] == []", "{a: context.s} == {}",
        "decimal(context.s) == 1",
    };
    static char text[65536];
    memset(text, '1', sizeof text);
    struct cedar_heap *heap = cedar_heap_create();
    struct cedar_member member = {.name = STR("s"),
                                  .value = cedar_string(str_slice(text, sizeof text))};
    struct cedar_value context;
    ck_assert(cedar_record(heap, &member, 1, &context));
    struct cedar_request request = must_make_request(NULL, NULL);
    request.context = context.record;
    struct cedar_response response;
    cedar_response_init(&response);
    for (size_t i = 0; i < sizeof conditions / sizeof *conditions; i++) {
        char policy[256];
        snprintf(policy, sizeof policy, "permit(principal, action, resource) when { %s };",
                 conditions[i]);
        struct cedar_policies *policies = must_parse(policy);
        request.budget = 500;
        cedar_authorize(policies, NULL, &request, &response);
        ck_assert_msg(response.exhausted, "%s costs too little", conditions[i]);
        request.budget = 5000;
        cedar_authorize(policies, NULL, &request, &response);
        ck_assert_msg(!response.exhausted, "%s costs too much", conditions[i]);
        cedar_policies_destroy(policies);
    }
    cedar_response_finish(&response);
    cedar_heap_destroy(heap);
}
END_TEST

/* ---- Threads --------------------------------------------------------------------------- */

struct shared {
    const struct cedar_policies *policies;
    const struct cedar_entities *entities;
};

static void *decide_often(void *data)
{
    const struct shared *shared = data;
    struct cedar_heap *heap = cedar_heap_create();
    struct cedar_response response;
    cedar_response_init(&response);
    size_t wrong = 0;
    for (int i = 0; i < 200; i++) {
        struct cedar_request request = must_make_request(heap, i % 2 ? "{\"n\": 1}" : "{\"n\": 4}");
        cedar_authorize(shared->policies, shared->entities, &request, &response);
        wrong += response.decision != (i % 2 ? CEDAR_ALLOW : CEDAR_DENY);
        cedar_heap_reset(heap);
    }
    cedar_response_finish(&response);
    cedar_heap_destroy(heap);
    return wrong ? data : NULL;
}

START_TEST(threads_share_policies_and_entities)
{
    struct cedar_policies *policies = must_parse(both);
    struct cedar_entities *entities =
        must_read_entities("[{\"uid\": {\"type\": \"User\", \"id\": \"alice\"}, \"attrs\": {},"
                           "  \"parents\": [{\"type\": \"Team\", \"id\": \"x\"}]}]");
    struct shared shared = {.policies = policies, .entities = entities};
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, decide_often, &shared), 0);
    for (int i = 0; i < 4; i++) {
        void *wrong;
        ck_assert_int_eq(pthread_join(threads[i], &wrong), 0);
        ck_assert_ptr_null(wrong);
    }
    cedar_entities_destroy(entities);
    cedar_policies_destroy(policies);
}
END_TEST

Suite *authorize_suite(void)
{
    Suite *suite = suite_create("authorize");
    TCase *tests = tcase_create("authorize");
    tcase_add_test(tests, forbid_wins_and_errors_are_skipped);
    tcase_add_test(tests, nothing_is_allowed_by_default);
    tcase_add_test(tests, failures_say_why_and_where);
    tcase_add_test(tests, a_caller_chooses_whom_to_ask);
    tcase_add_test(tests, an_exhausted_budget_denies);
    tcase_add_test(tests, a_pattern_and_an_element_that_is_there_twice_cost_their_length);
    tcase_add_test(tests, large_values_cost_budget);
    tcase_add_test(tests, threads_share_policies_and_entities);
    suite_add_tcase(suite, tests);
    return suite;
}
