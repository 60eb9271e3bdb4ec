/* One case: rules and policies judge the call, and the outcome is compared with the expectation. */
#include <stdlib.h>
#include <string.h>

#include "taskgate/core/memory.h"
#include "taskgate/policy/gate.h"

#include "policy_test.h"

/* A case without a time has the same one every day: a Monday, at noon. */
#define USUAL_TIME "2026-01-05T12:00:00Z"

static enum test_decision policy_test_run_decision_of(const struct consultation *consultation)
{
    const struct policy_decision *decision = &consultation->decision;
    if (consultation->gate &&
        strcmp(consultation->gate, policy_gate_name(POLICY_GATE_VISIBILITY)) == 0)
        return TEST_HIDDEN;
    if (consultation_is_invalid(consultation))
        return TEST_INVALID;
    if (decision->action == ACTION_DENY)
        return decision->by_policies ? TEST_REJECT : TEST_DENY;
    return decision->action == ACTION_FORWARD ? TEST_FORWARD : TEST_APPROVE;
}

/* ---- coverage ---- */

static void note_reached(struct test_file *file, const struct test_outcome *outcome)
{
    const struct config *config = file->snapshot->config;
    const struct cedar_policies *policies = policy_cedar(file->snapshot->policy);
    const struct policy_trace *trace = &outcome->consultation.trace;
    if (outcome->decision == TEST_HIDDEN)
        return;
    const struct config_rule *rule = outcome->ruled.rule;
    file->rules[rule ? (size_t)(rule - config->rules) : config->rule_count] = true;
    for (size_t i = 0; i < cedar_policies_count(policies); i++) {
        for (size_t k = 0; k < trace->count; k++)
            file->policies[i] =
                file->policies[i] || trace->items[k].cedar == cedar_policies_at(policies, i);
    }
}

/* ---- comparison ---- */

static void policy_test_run_differ(struct test_outcome *outcome, const char *what, char *expected,
                                   char *actual)
{
    outcome->differences[outcome->difference_count++] =
        (struct test_difference){what, expected, actual};
}

static char *policy_test_run_describe_rule(const struct test_file *file,
                                           const struct config_rule *rule)
{
    if (!rule)
        return memory_copy_text("the default action");
    return memory_format("%s (%s:%d)", rule->match, file->target, rule->line);
}

static void compare_rule(const struct test_file *file, const struct test_case *one,
                         struct test_outcome *outcome)
{
    bool is_same = outcome->decision != TEST_HIDDEN && outcome->ruled.rule == one->rule;
    if (one->has_rule && !is_same)
        policy_test_run_differ(outcome, "rule", policy_test_run_describe_rule(file, one->rule),
                               outcome->decision == TEST_HIDDEN
                                   ? memory_copy_text("none, it is hidden")
                                   : policy_test_run_describe_rule(file, outcome->ruled.rule));
}

static void compare_workflow(const struct test_case *one, struct test_outcome *outcome)
{
    const struct config_workflow *actual =
        outcome->decision == TEST_APPROVE ? outcome->consultation.decision.workflow : NULL;
    if (one->workflow && one->workflow != actual)
        policy_test_run_differ(outcome, "workflow", memory_copy_text(one->workflow->name),
                               memory_copy_text(actual ? actual->name : "none"));
}

/* Permits decide a call that passes, and forbids a rejected one. Errors have a key of their own. */
static bool counts(const struct test_outcome *outcome, const struct policy_finding *finding,
                   bool errors)
{
    if (errors || finding->kind == FINDING_ERROR)
        return errors && finding->kind == FINDING_ERROR;
    return (finding->kind == FINDING_FORBID) == (outcome->decision == TEST_REJECT);
}

/* Whether each name names a policy that counts, and each policy that counts has a name. */
static bool policy_test_run_fits(const struct test_outcome *outcome, const struct test_names *names,
                                 bool errors)
{
    const struct policy_trace *trace = &outcome->consultation.trace;
    for (size_t i = 0; i < names->names.count; i++) {
        bool is_there = false;
        for (size_t k = 0; k < trace->count; k++)
            is_there = is_there || (counts(outcome, &trace->items[k], errors) &&
                                    test_names_fit(names->names.items[i], trace->items[k].cedar));
        if (!is_there)
            return false;
    }
    for (size_t k = 0; k < trace->count; k++) {
        bool is_named = !counts(outcome, &trace->items[k], errors);
        for (size_t i = 0; i < names->names.count; i++)
            is_named = is_named || test_names_fit(names->names.items[i], trace->items[k].cedar);
        if (!is_named)
            return false;
    }
    return true;
}

/* A policy is asked once for each action, but named once. */
static char *list_findings(const struct test_outcome *outcome, bool errors)
{
    const struct policy_trace *trace = &outcome->consultation.trace;
    struct buffer text;
    buffer_init(&text);
    for (size_t i = 0; i < trace->count; i++) {
        const struct policy_finding *finding = &trace->items[i];
        bool is_new = counts(outcome, finding, errors);
        for (size_t k = 0; k < i; k++)
            is_new = is_new && !(counts(outcome, &trace->items[k], errors) &&
                                 trace->items[k].cedar == finding->cedar);
        struct str name = test_name_of(finding->cedar);
        if (is_new)
            buffer_append_format(&text, "%s%.*s (%s:%u:%u)", text.length ? ", " : "",
                                 STR_ARGS(name), finding->file, finding->line, finding->column);
    }
    if (!text.length)
        buffer_append_text(&text, "none");
    return buffer_take(&text, NULL);
}

static char *list_names(const struct test_names *names)
{
    struct buffer text;
    buffer_init(&text);
    for (size_t i = 0; i < names->names.count; i++)
        buffer_append_format(&text, "%s%s", i > 0 ? ", " : "", names->names.items[i]);
    if (!text.length)
        buffer_append_text(&text, "none");
    return buffer_take(&text, NULL);
}

static void compare_names(const struct test_names *names, const char *what, bool errors,
                          struct test_outcome *outcome)
{
    if (names->is_given && !policy_test_run_fits(outcome, names, errors))
        policy_test_run_differ(outcome, what, list_names(names), list_findings(outcome, errors));
}

/* ---- running ---- */

bool test_case_run(struct test_file *file, const struct test_case *one,
                   struct test_outcome *outcome)
{
    const struct consultation_options options = {
        .arguments = one->arguments,
        .principal = one->principal,
        .at = one->at ? one->at : USUAL_TIME,
        .annotations = one->annotations,
    };
    *outcome = (struct test_outcome){.difference_count = 0};
    if (!consultation_init(&outcome->consultation, &options))
        return false;
    struct policy_request request = {.source = one->source,
                                     .name = str_from(one->tool),
                                     .verified = outcome->consultation.request.verified};
    policy_decide(file->snapshot->policy, &request, &outcome->ruled);
    consultation_hold(&outcome->consultation, file->snapshot, one->source, request.name,
                      &outcome->ruled);
    outcome->decision = policy_test_run_decision_of(&outcome->consultation);
    note_reached(file, outcome);
    if (outcome->decision != one->decision)
        policy_test_run_differ(outcome, "decision",
                               memory_copy_text(test_decision_name(one->decision)),
                               memory_copy_text(test_decision_name(outcome->decision)));
    compare_rule(file, one, outcome);
    compare_workflow(one, outcome);
    compare_names(&one->policies, "policies", false, outcome);
    compare_names(&one->errors, "errors", true, outcome);
    return true;
}

void test_outcome_finish(struct test_outcome *outcome)
{
    for (size_t i = 0; i < outcome->difference_count; i++) {
        free(outcome->differences[i].expected);
        free(outcome->differences[i].actual);
    }
    consultation_finish(&outcome->consultation);
}
