/* Runs the suites of the Cedar engine. */
#include "cedar_test.h"

#include <stdlib.h>

#include "taskgate/core/memory.h"

/* alice is in team, team in company; bob has neither parents nor tags. */
static const char entities_json[] =
    "[{\"uid\": {\"type\": \"User\", \"id\": \"alice\"},"
    "  \"attrs\": {\"age\": 30, \"boss\": {\"__entity\": {\"type\": \"User\", \"id\": \"bob\"}},"
    "              \"address\": {\"city\": \"Bern\", \"zip code\": \"3011\"}},"
    "  \"parents\": [{\"type\": \"Team\", \"id\": \"team\"}],"
    "  \"tags\": {\"role\": \"lead\", \"level\": 3}},"
    " {\"uid\": {\"type\": \"User\", \"id\": \"bob\"}, \"attrs\": {\"age\": 50}, \"parents\": []},"
    " {\"uid\": {\"type\": \"Team\", \"id\": \"team\"}, \"attrs\": {},"
    "  \"parents\": [{\"type\": \"Company\", \"id\": \"company\"}]},"
    " {\"uid\": {\"type\": \"Doc\", \"id\": \"d1\"},"
    "  \"attrs\": {\"owner\": {\"__entity\": {\"type\": \"User\", \"id\": \"alice\"}}},"
    "  \"parents\": []}]";

static const char context_json[] =
    "{\"n\": 5, \"s\": \"text\", \"b\": true, \"max\": 9223372036854775807,"
    " \"min\": -9223372036854775808, \"set\": [1, 2, 3], \"nul\": \"a\\u0000b\","
    " \"rec\": {\"a\": {\"b\": {\"c\": 1}}, \"x y\": 2},"
    " \"ip\": {\"__extn\": {\"fn\": \"ip\", \"arg\": \"10.1.2.3\"}},"
    " \"who\": [{\"__entity\": {\"type\": \"Team\", \"id\": \"team\"}}],"
    " \"mixed\": [{\"__entity\": {\"type\": \"Team\", \"id\": \"team\"}}, 1],"
    " \"ghost\": {\"__entity\": {\"type\": \"User\", \"id\": \"ghost\"}}}";

struct cedar_policies *must_parse(const char *text)
{
    struct buffer problems;
    buffer_init(&problems);
    struct cedar_source source = {.name = "t.cedar", .text = str_from(text)};
    struct cedar_policies *policies = cedar_policies_parse(&source, 1, &problems);
    ck_assert_msg(policies != NULL, "<%s> is refused: %.*s", text, STR_ARGS(buffer_str(&problems)));
    ck_assert_uint_eq(problems.length, 0);
    buffer_finish(&problems);
    return policies;
}

char *must_refuse(struct str text)
{
    struct buffer problems;
    buffer_init(&problems);
    struct cedar_source source = {.name = "t.cedar", .text = text};
    struct cedar_policies *policies = cedar_policies_parse(&source, 1, &problems);
    ck_assert_msg(policies == NULL, "<%.*s> is accepted", STR_ARGS(text));
    ck_assert_uint_gt(problems.length, 0);
    return buffer_take(&problems, NULL);
}

struct cedar_entities *must_read_entities(const char *json)
{
    struct cedar_entities *entities = cedar_entities_create();
    struct error error = {.message = ""};
    ck_assert_msg(cedar_entities_read_json(entities, str_from(json), &error) &&
                      cedar_entities_seal(entities, &error),
                  "%s", error.message);
    return entities;
}

struct cedar_request must_make_request(struct cedar_heap *heap, const char *context)
{
    struct cedar_request request = {
        .principal = cedar_uid(STR("User"), STR("alice")),
        .action = cedar_uid(STR("Action"), STR("view")),
        .resource = cedar_uid(STR("Doc"), STR("d1")),
    };
    if (context) {
        struct cedar_value value;
        struct error error = {.message = ""};
        ck_assert_msg(cedar_value_read_json(heap, str_from(context), &value, &error), "%s",
                      error.message);
        request.context = value.record;
    }
    return request;
}

enum outcome outcome_of(const char *expression)
{
    static const enum outcome failures[] = {
        [CEDAR_FAILURE_TYPE] = TYPE_,         [CEDAR_FAILURE_ATTRIBUTE] = ATTRIBUTE_,
        [CEDAR_FAILURE_TAG] = TAG_,           [CEDAR_FAILURE_ENTITY] = ENTITY_,
        [CEDAR_FAILURE_OVERFLOW] = OVERFLOW_, [CEDAR_FAILURE_CALL] = CALL_,
        [CEDAR_FAILURE_ARITY] = ARITY_,       [CEDAR_FAILURE_BUDGET] = BUDGET_,
        [CEDAR_FAILURE_DEPTH] = DEPTH_,
    };
    char *text = memory_format("permit(principal, action, resource) when { %s };", expression);
    struct cedar_policies *policies = must_parse(text);
    struct cedar_entities *entities = must_read_entities(entities_json);
    struct cedar_heap *heap = cedar_heap_create();
    struct cedar_request request = must_make_request(heap, context_json);
    struct cedar_response response;
    cedar_response_init(&response);
    cedar_authorize(policies, entities, &request, &response);
    enum outcome outcome = response.failure_count             ? failures[response.failures[0].code]
                           : response.decision == CEDAR_ALLOW ? TRUE_
                                                              : FALSE_;
    ck_assert_uint_eq(response.reason_count, outcome == TRUE_);
    cedar_response_finish(&response);
    cedar_heap_destroy(heap);
    cedar_entities_destroy(entities);
    cedar_policies_destroy(policies);
    free(text);
    return outcome;
}

void expect_outcomes(const struct expression_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        enum outcome outcome = outcome_of(cases[i].expression);
        ck_assert_msg(outcome == cases[i].outcome, "<%s> comes to %d, not %d", cases[i].expression,
                      (int)outcome, (int)cases[i].outcome);
    }
}

int main(void)
{
    static Suite *(*const suites[])(void) = {
        access_suite,  authorize_suite, entities_suite, expression_suite, extension_suite,
        guard_suite,   index_suite,     json_suite,     mutation_suite,   print_suite,
        refusal_suite, syntax_suite,    value_suite,
    };
    SRunner *runner = srunner_create(NULL);
    for (size_t i = 0; i < sizeof suites / sizeof *suites; i++)
        srunner_add_suite(runner, suites[i]());
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
