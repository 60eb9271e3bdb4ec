/* The whole verdict on a call, and the known part of it if facts are missing. */
#include <check.h>
#include <string.h>

#include "suites.h"
#include "support.h"
#include "taskgate/core/metrics.h"
#include "taskgate/policy/verdict.h"

#define FORWARD "action == ThoughtGate::Action::\"Forward\""
#define APPROVE "action == ThoughtGate::Action::\"Approve\""
#define SMALL " when { resource.arguments.amount < 100 };"

static const char rules[] =
    "schema: 1\n"
    "sources:\n"
    "  - {id: up, kind: mcp, url: 'http://a/', expose: {mode: blocklist, tools: [hidden]}}\n"
    "  - {id: off, kind: mcp, url: 'http://b/', enabled: false}\n"
    "governance:\n"
    "  defaults: {action: deny}\n"
    "  rules:\n"
    "    - {match: 'read', action: forward}\n"
    "    - {match: 'write', action: approve, approval: ops}\n"
    "    - {match: 'pay', action: policy, policy_id: p}\n"
    "    - {match: 'wide_write', action: approve, approval: ops, case_variants: allow}\n"
    "    - {match: 'wide_pay', action: policy, policy_id: p, case_variants: allow}\n"
    "approval: {default: {}, ops: {}}\n";

enum { KNOWN, NO_ARGUMENTS = UNKNOWN_ARGUMENTS, NO_CALLER = UNKNOWN_CALLER };
#define NEITHER (UNKNOWN_ARGUMENTS | UNKNOWN_CALLER)

static const struct {
    const char *cedar, *source, *tool;
    unsigned unknown;
    unsigned hangs_on;
    enum verdict_outcome outcome;
    const char *workflow;
} rows[] = {
    /* rules alone: nothing need be known */
    {"", "up", "hidden", NEITHER, 0, VERDICT_HIDE, ""},
    {"", "off", "read", NEITHER, 0, VERDICT_HIDE, ""},
    {"", "up", "read", NEITHER, 0, VERDICT_FORWARD, ""},
    {"", "up", "write", NEITHER, 0, VERDICT_APPROVE, "ops"},
    {"", "up", "other", NEITHER, 0, VERDICT_DENY, ""},
    /* policies that look at nothing of the call */
    {"", "up", "pay", NEITHER, 0, VERDICT_REJECT, ""},
    {"permit(principal, action, resource);", "up", "pay", NEITHER, 0, VERDICT_FORWARD, ""},
    {"permit(principal is ThoughtGate::App, " APPROVE ", resource)"
     " when { resource.name == \"pay\" && context.policy_id == \"p\" };",
     "up", "pay", NEITHER, 0, VERDICT_APPROVE, "default"},
    /* arguments */
    {"permit(principal, " FORWARD ", resource)" SMALL, "up", "pay", KNOWN, 0, VERDICT_FORWARD, ""},
    {"permit(principal, " FORWARD ", resource)" SMALL, "up", "pay", NO_ARGUMENTS, NO_ARGUMENTS, 0,
     ""},
    {"permit(principal, " FORWARD ", resource) when { resource has arguments.amount };", "up",
     "pay", NO_ARGUMENTS, NO_ARGUMENTS, 0, ""},
    {"permit(principal, " FORWARD ", resource) when { resource has arguments };", "up", "pay",
     NO_ARGUMENTS, 0, VERDICT_FORWARD, ""},
    /* an unreached policy is not asked */
    {"permit(principal, " FORWARD ", resource)"
     " when { resource.name == \"x\" && resource.arguments.amount < 100 };",
     "up", "pay", NO_ARGUMENTS, 0, VERDICT_REJECT, ""},
    {"permit(principal, action, resource);"
     "forbid(principal, action, resource) when { resource.arguments.amount > 100 };",
     "up", "pay", NO_ARGUMENTS, NO_ARGUMENTS, 0, ""},
    {"permit(principal, action, resource)" SMALL "forbid(principal, action, resource);", "up",
     "pay", NO_ARGUMENTS, 0, VERDICT_REJECT, ""},
    {"forbid(principal, action, resource)" SMALL, "up", "pay", NO_ARGUMENTS, 0, VERDICT_REJECT, ""},
    /* a forbid that surely fails counts, with any unknown facts */
    {"permit(principal, action, resource)" SMALL
     "forbid(principal, action, resource) when { resource.nothing };",
     "up", "pay", NO_ARGUMENTS, 0, VERDICT_REJECT, ""},
    /* two permits: one is enough, but for the workflow that the other may name */
    {"permit(principal, " APPROVE ", resource); permit(principal, " APPROVE ", resource)" SMALL,
     "up", "pay", NO_ARGUMENTS, 0, VERDICT_APPROVE, "default"},
    {"permit(principal, " APPROVE ", resource);"
     "@thoughtgate_approval(\"ops\") permit(principal, " APPROVE ", resource)" SMALL,
     "up", "pay", NO_ARGUMENTS, NO_ARGUMENTS, 0, ""},
    /* the caller, the time, and the hints on the tool */
    {"permit(principal == ThoughtGate::App::\"auth:abc\", " FORWARD ", resource);", "up", "pay",
     NO_ARGUMENTS, 0, VERDICT_FORWARD, ""},
    {"permit(principal == ThoughtGate::App::\"auth:abc\", " FORWARD ", resource);", "up", "pay",
     NO_CALLER, NO_CALLER, 0, ""},
    {"permit(principal in ThoughtGate::Role::\"session\", " FORWARD ", resource);", "up", "pay",
     NO_CALLER, NO_CALLER, 0, ""},
    {"permit(principal, " FORWARD ", resource) when { principal.client_name == \"x\" };", "up",
     "pay", NO_CALLER, NO_CALLER, 0, ""},
    {"permit(principal, " FORWARD ", resource) when { context.time.hour < 24 };", "up", "pay",
     NO_CALLER, NO_CALLER, 0, ""},
    {"permit(principal, " FORWARD ", resource) when { context.annotations has readOnlyHint };",
     "up", "pay", NO_CALLER, NO_CALLER, 0, ""},
    {"permit(principal, " FORWARD ", resource) when { context.time.hour < 24 };", "up", "pay",
     NO_ARGUMENTS, 0, VERDICT_FORWARD, ""},
};

START_TEST(a_verdict_says_what_can_be_said)
{
    const struct config *config;
    struct policy *policy = policy_with(rules, rows[_i].cedar, &config);
    struct policy_request request = {
        config_source_find(config, str_from(rows[_i].source)), str_from(rows[_i].tool),
        rows[_i].unknown & UNKNOWN_ARGUMENTS ? STR_EMPTY : STR("{\"amount\": 5}")};
    struct policy_facts facts = {.principal = {STR("auth:abc"), STR("x"), STR_EMPTY}};
    struct verdict verdict;
    verdict_of(policy, &request, &facts, rows[_i].unknown, NULL, &verdict);
    ck_assert_uint_eq(verdict.hangs_on, rows[_i].hangs_on);
    if (rows[_i].hangs_on) {
        ck_assert_int_eq(verdict.decision.action, ACTION_POLICY);
    } else {
        ck_assert_int_eq(verdict.outcome, rows[_i].outcome);
        ck_assert(str_equal(verdict_workflow(verdict.outcome, &verdict.decision),
                            str_from(rows[_i].workflow)));
    }
    policy_destroy(policy);
}
END_TEST

static const struct {
    const char *tool, *arguments;
    enum verdict_outcome outcome;
} variants[] = {
    {"read", "{\"path\": 1, \"Path\": 2}", VERDICT_FORWARD},
    {"other", "{\"path\": 1, \"Path\": 2}", VERDICT_DENY},
    {"hidden", "{\"path\": 1, \"Path\": 2}", VERDICT_HIDE},
    {"write", "{\"path\": 1, \"Path\": 2}", VERDICT_INVALID},
    {"write", "{\"o\": [{\"path\": 1, \"\\u017F\": 2, \"S\": 3}]}", VERDICT_INVALID},
    {"write", "{\"path\": 1, \"o\": {\"Path\": 2}}", VERDICT_APPROVE},
    {"pay", "{\"path\": 1, \"Path\": 2}", VERDICT_INVALID},
    {"wide_write", "{\"path\": 1, \"Path\": 2}", VERDICT_APPROVE},
    {"wide_pay", "{\"path\": 1, \"Path\": 2}", VERDICT_FORWARD},
    {"wide_pay", "{\"amount\": 1, \"Amount\": 2}", VERDICT_REJECT},
};

START_TEST(keys_that_fold_alike_are_judged_by_nobody_unless_the_rule_says_so)
{
    const struct config *config;
    struct policy *policy =
        policy_with(rules,
                    "permit(principal, action, resource);"
                    "forbid(principal, action, resource) when {"
                    "resource.arguments has amount && resource.arguments.amount > 100};",
                    &config);
    struct policy_request request = {config_source_find(config, STR("up")),
                                     str_from(variants[_i].tool), str_from(variants[_i].arguments)};
    struct policy_facts facts = {.principal.owner = STR("anonymous")};
    struct verdict verdict;
    verdict_of(policy, &request, &facts, 0, NULL, &verdict);
    ck_assert_str_eq(verdict_outcome_name(verdict.outcome),
                     verdict_outcome_name(variants[_i].outcome));
    policy_destroy(policy);
}
END_TEST

START_TEST(a_rehearsal_counts_nothing)
{
    const struct config *config;
    struct policy *policy =
        policy_with(rules, "permit(principal, action, resource)" SMALL, &config);
    struct policy_request request = {config_source_find(config, STR("up")), STR("pay"),
                                     STR("{\"amount\": \"x\"}")};
    struct policy_facts facts = {.principal.owner = STR("anonymous")};
    struct policy_trace trace = {0};
    struct verdict verdict;
    struct buffer text;
    metrics_finish();
    verdict_of(policy, &request, &facts, 0, &trace, &verdict);
    ck_assert_int_eq(verdict.outcome, VERDICT_REJECT);
    ck_assert_uint_eq(trace.count, 3);
    ck_assert_str_eq(trace.items[0].error, "type error: expected long, found string");
    buffer_init(&text);
    metrics_write(&text, false);
    buffer_append_char(&text, '\0');
    ck_assert_ptr_null(strstr(text.bytes, "cedar_policy_errors_total{"));
    ck_assert_ptr_null(strstr(text.bytes, "cedar_evaluations_total{"));
    buffer_finish(&text);
    policy_trace_finish(&trace);
    policy_destroy(policy);
}
END_TEST

START_TEST(outcomes_have_names)
{
    enum verdict_outcome outcome;
    for (unsigned i = 0; i < VERDICT_COUNT; i++) {
        ck_assert(verdict_outcome_parse(str_from(verdict_outcome_name((enum verdict_outcome)i)),
                                        &outcome));
        ck_assert_uint_eq(outcome, i);
    }
    ck_assert(!verdict_outcome_parse(STR("policy"), &outcome));
    ck_assert(verdict_is_same(VERDICT_DENY, STR("a"), VERDICT_DENY, STR("b")));
    ck_assert(!verdict_is_same(VERDICT_APPROVE, STR("a"), VERDICT_APPROVE, STR("b")));
    ck_assert(!verdict_is_same(VERDICT_DENY, STR_EMPTY, VERDICT_REJECT, STR_EMPTY));
}
END_TEST

TCase *verdict_case(void)
{
    TCase *tests = tcase_create("verdict");
    tcase_add_loop_test(tests, a_verdict_says_what_can_be_said, 0, sizeof rows / sizeof *rows);
    tcase_add_loop_test(tests, keys_that_fold_alike_are_judged_by_nobody_unless_the_rule_says_so, 0,
                        sizeof variants / sizeof *variants);
    tcase_add_test(tests, a_rehearsal_counts_nothing);
    tcase_add_test(tests, outcomes_have_names);
    return tests;
}
