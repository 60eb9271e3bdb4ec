/* Cedar policies behind a rule: the order of requests, errors, workflows, and a converter of
 * arguments that never makes entities. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"
#include "engine_rules.h"
#include "suites.h"
#include "support.h"
#include "taskgate/core/buffer.h"
#include "taskgate/core/memory.h"
#include "taskgate/json/text.h"

#define APPROVE "action == ThoughtGate::Action::\"Approve\""
#define CALL "action == ThoughtGate::Action::\"tools/call\""

#define ALL_BUT_SECRETS                                                                            \
    "permit(principal, action, resource); forbid(principal, action, resource)"                     \
    " when {resource.arguments has path && resource.arguments.path like \"/secret*\"};"

static const char rules[] = RULES_BEGIN;
static const char skipping[] = RULES_BEGIN "on_policy_error: skip\n";

/* 2026-01-04T13:30:00.250Z, a Sunday. */
#define SUNDAY INT64_C(1767533400250)

static struct policy_decision consult(const struct policy *policy, const struct config *config,
                                      const char *tool, const char *arguments,
                                      struct policy_trace *trace)
{
    struct policy_decision decision;
    struct policy_request request = {config_source_find(config, STR("up")), str_from(tool),
                                     str_from(arguments)};
    struct policy_facts facts = {
        .principal = {STR("auth:abc"), STR("inspector"), STR("0.9")},
        .hints = {.given = 1U << HINT_READ_ONLY | 1U << HINT_DESTRUCTIVE,
                  .truth = 1U << HINT_READ_ONLY},
        .now_ms = SUNDAY,
    };
    ck_assert(json_check(str_from(*arguments ? arguments : "{}"), NULL));
    policy_decide(policy, &request, &decision);
    policy_consult(policy, &request, &facts, trace, &decision);
    return decision;
}

static const struct {
    const char *cedar, *tool, *arguments;
    enum config_action action;
    const char *workflow;
} decisions[] = {
    /* times and spans are the language's own */
    {"permit(principal, " FORWARD ", resource) when { duration(\"-1d2h3m4s5ms\") < "
     "duration(\"0ms\") && context.time.datetime.toTime() == duration(\"13h30m250ms\") };",
     "p_a", "{}", ACTION_FORWARD, NULL},
    /* nothing permitted */
    {"", "p_x", "{}", ACTION_DENY, NULL},
    {"forbid(principal, action, resource);", "p_x", "{}", ACTION_DENY, NULL},
    /* the ladder */
    {"permit(principal, " FORWARD ", resource);", "p_x", "{}", ACTION_FORWARD, NULL},
    {"permit(principal, " APPROVE ", resource);", "p_x", "{}", ACTION_APPROVE, "default"},
    {"permit(principal, " CALL ", resource);", "p_x", "{}", ACTION_APPROVE, "default"},
    {"permit(principal, action, resource);", "p_x", "{}", ACTION_FORWARD, NULL},
    {"permit(principal, action, resource); forbid(principal, " FORWARD ", resource);", "p_x", "{}",
     ACTION_APPROVE, "default"},
    {"permit(principal, action, resource);"
     "forbid(principal, action in [ThoughtGate::Action::\"Forward\", "
     "ThoughtGate::Action::\"Approve\"], resource);",
     "p_x", "{}", ACTION_APPROVE, "default"},
    {"permit(principal, action == ThoughtGate::Action::\"mcp/method\", resource);", "p_x", "{}",
     ACTION_DENY, NULL},
    /* workflows: the annotation of a determining permit, else the rule's, else the default */
    {"permit(principal, " APPROVE ", resource);", "ops_x", "{}", ACTION_APPROVE, "ops"},
    {"@thoughtgate_approval(\"finance\") permit(principal, " APPROVE ", resource);", "ops_x", "{}",
     ACTION_APPROVE, "finance"},
    {"@thoughtgate_approval(\"finance\") permit(principal, " CALL ", resource);", "p_x", "{}",
     ACTION_APPROVE, "finance"},
    {"permit(principal, " APPROVE ", resource);"
     "@thoughtgate_approval(\"finance\") permit(principal, " APPROVE ", resource);"
     "@thoughtgate_approval(\"ops\") permit(principal, " APPROVE ", resource);",
     "p_x", "{}", ACTION_APPROVE, "finance"},
    {"@thoughtgate_approval(\"finance\") permit(principal, " APPROVE ", resource) when {false};"
     "permit(principal, " APPROVE ", resource);",
     "p_x", "{}", ACTION_APPROVE, "default"},
    {"@thoughtgate_approval(\"finance\") permit(principal, " FORWARD ", resource);", "p_x", "{}",
     ACTION_FORWARD, NULL},
    /* policy_id chooses by @id; a policy without one is asked by all; the default action asks all
     */
    {"@id(\"p\") permit(principal, " FORWARD ", resource);", "p_x", "{}", ACTION_FORWARD, NULL},
    {"@id(\"p\") permit(principal, " FORWARD ", resource);", "q_x", "{}", ACTION_DENY, NULL},
    {"@id(\"p\") permit(principal, " FORWARD ", resource);", "other", "{}", ACTION_FORWARD, NULL},
    {"permit(principal, action, resource); @id(\"p\") forbid(principal, action, resource);", "q_x",
     "{}", ACTION_FORWARD, NULL},
    {"@id(\"q\") permit(principal, action, resource); forbid(principal, action, resource);", "q_x",
     "{}", ACTION_DENY, NULL},
    /* facts that policies can ask about */
    {"permit(principal == ThoughtGate::App::\"auth:abc\", " FORWARD
     ", resource == ThoughtGate::ToolCall::\"p_x\") when {"
     "principal in ThoughtGate::Role::\"authorization\" && principal.name == \"auth:abc\" &&"
     "principal.identity == \"authorization\" && principal.client_name == \"inspector\" &&"
     "principal.client_version == \"0.9\" && resource.name == \"p_x\" &&"
     "resource.server == \"up\" && resource.arguments.a.b == 1 && context.policy_id == \"p\" &&"
     "context.source_id == \"up\" && context.time.hour == 13 && context.time.day_of_week == 0 &&"
     "context.time.timestamp == 1767533400 &&"
     "context.time.datetime == datetime(\"2026-01-04T13:30:00.250Z\") &&"
     "context.annotations.readOnlyHint && !context.annotations.destructiveHint &&"
     "!(context.annotations has idempotentHint) && !(context.annotations has openWorldHint)};",
     "p_x", "{\"a\": {\"b\": 1}}", ACTION_FORWARD, NULL},
    {"permit(principal, action, resource) when {context.policy_id == \"\"};", "other", "{}",
     ACTION_FORWARD, NULL},
    {"permit(principal, " FORWARD ", resource) when {resource.arguments.amount < 100};"
     "permit(principal, " APPROVE ", resource) when {resource.arguments.amount < 10000};",
     "p_x", "{\"amount\": 99}", ACTION_FORWARD, NULL},
    {"permit(principal, " FORWARD ", resource) when {resource.arguments.amount < 100};"
     "permit(principal, " APPROVE ", resource) when {resource.arguments.amount < 10000};",
     "p_x", "{\"amount\": 100}", ACTION_APPROVE, "default"},
    {"permit(principal, " FORWARD ", resource) when {resource.arguments.amount < 100};"
     "permit(principal, " APPROVE ", resource) when {resource.arguments.amount < 10000};",
     "p_x", "{\"amount\": 10000}", ACTION_DENY, NULL},
    /* an uncertain comparison permits nothing: a fraction is text, a too large number is text */
    {"permit(principal, " FORWARD ", resource) when {resource.arguments.amount < 100};", "p_x",
     "{\"amount\": 1.5}", ACTION_DENY, NULL},
    {"permit(principal, " FORWARD ", resource) when {resource.arguments.amount < 100};", "p_x",
     "{\"amount\": -9223372036854775809}", ACTION_DENY, NULL},
    {"permit(principal, " FORWARD ", resource) when {resource.arguments.amount < 100};", "p_x", "",
     ACTION_DENY, NULL},
    /* a forbid that cannot be evaluated counts as applying, a permit never */
    {"permit(principal, action, resource);"
     "forbid(principal, action, resource) when {resource.arguments.amount > 100};",
     "p_x", "{}", ACTION_DENY, NULL},
    {"permit(principal, action, resource);"
     "forbid(principal, " FORWARD ", resource) when {resource.arguments.amount > 100};",
     "p_x", "{}", ACTION_APPROVE, "default"},
    {"permit(principal, action, resource);"
     "permit(principal, action, resource) when {resource.arguments.amount > 100};",
     "p_x", "{}", ACTION_FORWARD, NULL},
    /* an argument that could be taken for the one that is asked for: the policy fails */
    {ALL_BUT_SECRETS, "p_x", "{\"path\": \"/tmp\"}", ACTION_FORWARD, NULL},
    {ALL_BUT_SECRETS, "p_x", "{\"path\": \"/tmp\", \"Path\": \"/secret\"}", ACTION_DENY, NULL},
    {ALL_BUT_SECRETS, "p_x", "{\"PATH\": \"/tmp\"}", ACTION_DENY, NULL},
    {ALL_BUT_SECRETS, "p_x", "{\"\\uff50ath\": \"/tmp\"}", ACTION_DENY, NULL},
    {ALL_BUT_SECRETS, "p_x", "{\"pat\u200Bh\": \"/tmp\"}", ACTION_DENY, NULL},
    {ALL_BUT_SECRETS, "p_x", "{\"paths\": \"/tmp\", \"Other\": 1, \"other\": 2}", ACTION_FORWARD,
     NULL},
    {ALL_BUT_SECRETS, "p_x", "{\"o\": {\"Path\": \"/secret\"}}", ACTION_FORWARD, NULL},
    {"permit(principal, action, resource) when {resource.arguments.o.dryRun};", "p_x",
     "{\"o\": {\"dryRun\": true}}", ACTION_FORWARD, NULL},
    {"permit(principal, action, resource) when {resource.arguments.o.dryRun};", "p_x",
     "{\"o\": {\"dryRun\": true, \"dryrun\": false}}", ACTION_DENY, NULL},
    {"permit(principal, action, resource) when {resource.arguments.o.dryRun};", "p_x",
     "{\"o\": {\"dryRun\": true, \"DryRun\": false}, \"O\": {}}", ACTION_DENY, NULL},
    {"permit(principal, action, resource) when {resource.arguments.o.dryRun};", "p_x",
     "{\"o\": {\"dryRun\": true}, \"O\": {}}", ACTION_DENY, NULL},
    {"permit(principal, action, resource);"
     "forbid(principal, action, resource) when {resource.arguments has o.force};",
     "p_x", "{\"o\": {\"Force\": true}}", ACTION_DENY, NULL},
    {"permit(principal, action, resource);"
     "forbid(principal, action, resource) when {resource.arguments has \"stra\u00DFe\"};",
     "p_x", "{\"STRASSE\": true}", ACTION_DENY, NULL},
    {"permit(principal, action, resource) when {resource.arguments[\"a b\"] == 1};", "p_x",
     "{\"a b\": 1, \"A B\": 2}", ACTION_DENY, NULL},
    /* in a list, too */
    {"permit(principal, action, resource) when {resource.arguments.v.contains({a: 1, A: 1})};",
     "p_x", "{\"v\": [{\"a\": 1, \"A\": 1}]}", ACTION_FORWARD, NULL},
    /* other rules are not theirs to decide */
    {"forbid(principal, action, resource);", "plain", "{}", ACTION_FORWARD, NULL},
};

START_TEST(policies_decide_in_their_order)
{
    const struct config *config;
    struct policy *policy = policy_with(rules, decisions[_i].cedar, &config);
    struct policy_decision decision =
        consult(policy, config, decisions[_i].tool, decisions[_i].arguments, NULL);
    ck_assert_msg(decision.action == decisions[_i].action, "%s",
                  config_action_name(decision.action));
    ck_assert(decision.by_policies == (strcmp(decisions[_i].tool, "plain") != 0));
    if (decisions[_i].workflow)
        ck_assert_str_eq(decision.workflow->name, decisions[_i].workflow);
    else
        ck_assert_ptr_null(decision.workflow);
    policy_destroy(policy);
}
END_TEST

START_TEST(an_error_may_be_skipped)
{
    const struct config *config;
    struct policy *policy =
        policy_with(skipping,
                    "permit(principal, action, resource);"
                    "forbid(principal, action, resource) when {resource.arguments.amount > 100};",
                    &config);
    ck_assert_int_eq(consult(policy, config, "p_x", "{}", NULL).action, ACTION_FORWARD);
    ck_assert_int_eq(consult(policy, config, "p_x", "{\"amount\": 101}", NULL).action, ACTION_DENY);
    policy_destroy(policy);
}
END_TEST

START_TEST(a_variant_is_an_error_with_a_reason)
{
    const struct config *config;
    struct policy_trace trace = {0};
    struct policy *policy = policy_with(
        rules,
        "@id(\"p\") permit(principal, action, resource) when {resource.arguments.path == 1};",
        &config);
    consult(policy, config, "p_x", "{\"path\": 1, \"pAth\": 2}", &trace);
    ck_assert_uint_eq(trace.count, 3);
    ck_assert_int_eq(trace.items[0].kind, FINDING_ERROR);
    ck_assert_str_eq(trace.items[0].error,
                     "another attribute differs only by case or look from \"path\"");
    policy_trace_finish(&trace);
    policy_destroy(policy);
}
END_TEST

START_TEST(a_trace_says_who_decided_and_what_failed)
{
    const struct config *config;
    struct policy_trace trace = {0};
    struct policy *policy =
        policy_with(rules,
                    "@id(\"p\")\n"
                    "permit(principal, " APPROVE ", resource);\n"
                    "forbid(principal, " FORWARD ", resource)\n"
                    "when {resource.arguments.secret == \"x\" || 1 + resource.arguments.n == 2};",
                    &config);
    consult(policy, config, "p_x", "{\"secret\": \"hunter2\", \"n\": \"hunter3\"}", &trace);
    ck_assert_uint_eq(trace.count, 2);
    ck_assert_int_eq(trace.items[0].kind, FINDING_ERROR);
    ck_assert_str_eq(trace.items[0].action, "Forward");
    ck_assert(trace.items[0].is_forbid);
    ck_assert(str_equal(trace.items[0].policy, STR("policy1")));
    ck_assert_uint_eq(trace.items[0].line, 4);
    ck_assert_ptr_null(strstr(trace.items[0].error, "hunter"));
    ck_assert_int_eq(trace.items[1].kind, FINDING_PERMIT);
    ck_assert_str_eq(trace.items[1].action, "Approve");
    ck_assert(str_equal(trace.items[1].policy, STR("p")));
    ck_assert_str_eq(trace.items[1].file, "THOUGHTGATE_POLICIES");
    ck_assert_uint_eq(trace.items[1].line, 1);
    ck_assert_ptr_null(trace.failure);
    policy_trace_finish(&trace);
    policy_destroy(policy);
}
END_TEST

/* ---- arguments ---- */

static char *nested(unsigned depth, char opening, char closing)
{
    char *text = memory_alloc(depth * 2 + 1);
    memset(text, opening, depth);
    memset(text + depth, closing, depth);
    return text;
}

START_TEST(arguments_too_deep_are_rejected)
{
    const struct config *config;
    struct policy *policy = policy_with(rules, "permit(principal, action, resource);", &config);
    for (unsigned depth = ENGINE_MAX_ARGUMENT_DEPTH - 1; depth <= 120; depth++) {
        struct policy_trace trace = {0};
        char *lists = nested(depth, '[', ']');
        char *arguments = memory_format("{\"a\": %s}", lists);
        bool fits = depth + 1 <= ENGINE_MAX_ARGUMENT_DEPTH;
        ck_assert_int_eq(consult(policy, config, "p_x", arguments, &trace).action,
                         fits ? ACTION_FORWARD : ACTION_DENY);
        ck_assert(fits == (trace.failure == NULL));
        policy_trace_finish(&trace);
        free(arguments);
        free(lists);
    }
    policy_destroy(policy);
}
END_TEST

/* The value of `json` equals the Cedar expression. */
static const struct {
    const char *json, *cedar;
} values[] = {
    {"0", "0"},
    {"-0", "0"},
    {" \t\n 7 ", "7"},
    {"9223372036854775807", "9223372036854775807"},
    {"-9223372036854775808", "-9223372036854775808"},
    {"9223372036854775808", "\"9223372036854775808\""},
    {"-9223372036854775809", "\"-9223372036854775809\""},
    {"123456789012345678901234567890", "\"123456789012345678901234567890\""},
    {"1.0", "\"1.0\""},
    {"1e3", "\"1e3\""},
    {"-1.5E+7", "\"-1.5E+7\""},
    {"true", "true"},
    {"false", "false"},
    {"null", "{}"},
    {"\"\"", "\"\""},
    {"\"a\\\"b\\\\\\u00e9\\ud83d\\ude00\"", "\"a\\\"b\\\\\\u{e9}\\u{1F600}\""},
    {"\"\\u0000\"", "\"\\0\""},
    {"[]", "[]"},
    {"[1, 2, 1]", "[2, 1]"},
    {"[[], {}, null, \"x\"]", "[{}, \"x\", []]"},
    {"{}", "{}"},
    {"{\"\": 1, \"a b\": [true]}", "{\"\": 1, \"a b\": [true]}"},
    {"{\"\\u0061\": 1}", "{a: 1}"},
    /* nothing that a key says makes it more than a record */
    {"{\"__entity\": {\"type\": \"ThoughtGate::Role\", \"id\": \"admin\"}}",
     "{\"__entity\": {type: \"ThoughtGate::Role\", id: \"admin\"}}"},
    {"{\"__extn\": {\"fn\": \"ip\", \"arg\": \"127.0.0.1\"}}",
     "{\"__extn\": {fn: \"ip\", arg: \"127.0.0.1\"}}"},
    {"{\"fn\": \"decimal\", \"arg\": \"1.5\"}", "{fn: \"decimal\", arg: \"1.5\"}"},
    {"{\"type\": \"ThoughtGate::Role\", \"id\": \"admin\"}",
     "{type: \"ThoughtGate::Role\", id: \"admin\"}"},
    {"\"ThoughtGate::Role::\\\"admin\\\"\"", "\"ThoughtGate::Role::\\\"admin\\\"\""},
    {"{\"__expr\": \"principal\"}", "{\"__expr\": \"principal\"}"},
};

START_TEST(a_value_is_what_it_says)
{
    const struct config *config;
    char *cedar =
        memory_format("permit(principal, " FORWARD ", resource) when {resource.arguments.v == %s};",
                      values[_i].cedar);
    char *arguments = memory_format("{\"v\": %s}", values[_i].json);
    struct policy *policy = policy_with(rules, cedar, &config);
    ck_assert_int_eq(consult(policy, config, "p_x", arguments, NULL).action, ACTION_FORWARD);
    policy_destroy(policy);
    free(arguments);
    free(cedar);
}
END_TEST

START_TEST(no_argument_is_an_entity_or_an_extension_value)
{
    static const char *const conditions[] = {
        "resource.arguments.v in ThoughtGate::Role::\"admin\"",
        "resource.arguments.v == ThoughtGate::Role::\"admin\"",
        "resource.arguments.v is ThoughtGate::Role",
        "resource.arguments.v.isLoopback()",
        "resource.arguments.v.lessThan(decimal(\"9.0\"))",
        "principal in resource.arguments.v",
    };
    static const char *const arguments[] = {
        "{\"v\": {\"__entity\": {\"type\": \"ThoughtGate::Role\", \"id\": \"admin\"}}}",
        "{\"v\": {\"type\": \"ThoughtGate::Role\", \"id\": \"authorization\"}}",
        "{\"v\": {\"__extn\": {\"fn\": \"ip\", \"arg\": \"127.0.0.1\"}}}",
        "{\"v\": {\"__extn\": {\"fn\": \"decimal\", \"arg\": \"1.0\"}}}",
        "{\"v\": [{\"__entity\": {\"type\": \"ThoughtGate::Role\", \"id\": \"authorization\"}}]}",
        "{\"v\": \"ThoughtGate::Role::\\\"authorization\\\"\"}",
    };
    for (size_t i = 0; i < sizeof conditions / sizeof *conditions; i++) {
        const struct config *config;
        char *cedar =
            memory_format("permit(principal, action, resource) when {%s};", conditions[i]);
        struct policy *policy = policy_with(rules, cedar, &config);
        for (size_t j = 0; j < sizeof arguments / sizeof *arguments; j++)
            ck_assert_msg(consult(policy, config, "p_x", arguments[j], NULL).action == ACTION_DENY,
                          "%s of %s", conditions[i], arguments[j]);
        policy_destroy(policy);
        free(cedar);
    }
}
END_TEST

START_TEST(large_arguments_cost_little)
{
    const struct config *config;
    struct buffer text;
    struct policy *policy = policy_with(
        rules, "permit(principal, action, resource) when {resource.arguments.v.contains(99999)};",
        &config);
    buffer_init(&text);
    buffer_append_text(&text, "{\"v\": [");
    for (int i = 0; i < 100000; i++)
        buffer_append_format(&text, "%s%d", i ? "," : "", i);
    buffer_append_text(&text, "], \"deep\": ");
    for (int i = 0; i < 60; i++)
        buffer_append_text(&text, "{\"a\": 1, \"b\": ");
    buffer_append_text(&text, "[1]");
    for (int i = 0; i < 60; i++)
        buffer_append_char(&text, '}');
    buffer_append_text(&text, "}");
    buffer_append_char(&text, '\0');
    ck_assert_int_eq(consult(policy, config, "p_x", text.bytes, NULL).action, ACTION_FORWARD);
    buffer_finish(&text);
    policy_destroy(policy);
}
END_TEST

/* Work that grows without bound ends in a rejection, so that the loop goes on serving. */
START_TEST(too_much_work_is_rejected)
{
    const struct config *config;
    struct policy_trace trace = {0};
    struct buffer cedar, arguments;
    buffer_init(&cedar);
    buffer_init(&arguments);
    buffer_append_text(&cedar, "permit(principal, action, resource);"
                               "permit(principal, action, resource) when {");
    for (int i = 0; i < 200; i++)
        buffer_append_text(&cedar, "resource.arguments.v.containsAll(resource.arguments.w) || ");
    buffer_append_text(&cedar, "false};");
    buffer_append_char(&cedar, '\0');
    buffer_append_text(&arguments, "{\"v\": [");
    for (int i = 0; i < 100000; i++)
        buffer_append_format(&arguments, "%s%d", i ? "," : "", i);
    buffer_append_text(&arguments, "], \"w\": [");
    for (int i = 0; i < 100000; i++)
        buffer_append_format(&arguments, "%s%d", i ? "," : "", i < 99999 ? i : -1);
    buffer_append_text(&arguments, "]}");
    buffer_append_char(&arguments, '\0');
    struct policy *policy = policy_with(rules, cedar.bytes, &config);
    ck_assert_int_eq(consult(policy, config, "p_x", arguments.bytes, &trace).action, ACTION_DENY);
    ck_assert_str_eq(trace.failure, "the policies need too much work");
    policy_trace_finish(&trace);
    policy_destroy(policy);
    /* Depth is another limit, and said to be the one. */
    buffer_clear(&cedar);
    buffer_append_text(&cedar, "permit(principal, action, resource) when { [");
    for (int i = 0; i < 130; i++)
        buffer_append_char(&cedar, '[');
    buffer_append_text(&cedar, "resource.arguments");
    for (int i = 0; i < 130; i++)
        buffer_append_char(&cedar, ']');
    buffer_append_text(&cedar, "].isEmpty() || true };");
    buffer_append_char(&cedar, '\0');
    policy = policy_with(rules, cedar.bytes, &config);
    ck_assert_int_eq(consult(policy, config, "p_x", "{}", &trace).action, ACTION_DENY);
    ck_assert_str_eq(trace.failure, "the policies nest sets and records too deeply");
    policy_trace_finish(&trace);
    policy_destroy(policy);
    buffer_finish(&arguments);
    buffer_finish(&cedar);
}
END_TEST

TCase *engine_case(void)
{
    TCase *tests = tcase_create("engine");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, policies_decide_in_their_order, 0,
                        sizeof decisions / sizeof *decisions);
    tcase_add_test(tests, an_error_may_be_skipped);
    tcase_add_test(tests, a_variant_is_an_error_with_a_reason);
    tcase_add_test(tests, a_trace_says_who_decided_and_what_failed);
    tcase_add_test(tests, arguments_too_deep_are_rejected);
    tcase_add_loop_test(tests, a_value_is_what_it_says, 0, sizeof values / sizeof *values);
    tcase_add_test(tests, no_argument_is_an_entity_or_an_extension_value);
    tcase_add_test(tests, large_arguments_cost_little);
    tcase_add_test(tests, too_much_work_is_rejected);
    return tests;
}
