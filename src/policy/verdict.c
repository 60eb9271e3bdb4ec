/* One call through all gates at once. */
#include "taskgate/policy/verdict.h"

#include "taskgate/core/assert.h"

static const char *const outcome_names[VERDICT_COUNT] = {
    [VERDICT_FORWARD] = "forward", [VERDICT_APPROVE] = "approve", [VERDICT_DENY] = "deny",
    [VERDICT_REJECT] = "reject",   [VERDICT_HIDE] = "hide",       [VERDICT_INVALID] = "invalid",
};

const char *verdict_outcome_name(enum verdict_outcome outcome)
{
    ASSERT_NUMBERS(outcome, <, VERDICT_COUNT);
    return outcome_names[outcome];
}

bool verdict_outcome_parse(struct str name, enum verdict_outcome *outcome)
{
    for (unsigned i = 0; i < VERDICT_COUNT; i++) {
        if (str_equal(name, str_from(outcome_names[i]))) {
            *outcome = (enum verdict_outcome)i;
            return true;
        }
    }
    return false;
}

enum verdict_outcome verdict_outcome_of(const struct policy_decision *decision)
{
    switch (decision->action) {
    case ACTION_FORWARD:
        return VERDICT_FORWARD;
    case ACTION_APPROVE:
        return VERDICT_APPROVE;
    case ACTION_DENY:
    case ACTION_POLICY: /* not asked: nothing is permitted */
        break;
    }
    return decision->by_policies ? VERDICT_REJECT : VERDICT_DENY;
}

bool verdict_of_rules(const struct policy *policy, const struct policy_request *request,
                      struct verdict *verdict)
{
    *verdict = (struct verdict){.outcome = VERDICT_HIDE};
    if (!policy_is_visible(policy, request->source, request->name))
        return true;
    policy_decide(policy, request, &verdict->decision);
    if (policy_refuses_arguments(request, &verdict->decision, NULL)) {
        verdict->outcome = VERDICT_INVALID;
        return true;
    }
    verdict->outcome = verdict_outcome_of(&verdict->decision);
    return verdict->decision.action != ACTION_POLICY;
}

void verdict_of(const struct policy *policy, const struct policy_request *request,
                const struct policy_facts *facts, unsigned unknown, struct policy_trace *trace,
                struct verdict *verdict)
{
    bool is_decided = verdict_of_rules(policy, request, verdict);
    if (verdict->outcome != VERDICT_HIDE && (unknown & UNKNOWN_CALLER) &&
        policy_hangs_on_caller(policy, request)) {
        verdict->hangs_on = UNKNOWN_CALLER;
        return;
    }
    if (is_decided)
        return;
    verdict->hangs_on = policy_rehearse(policy, request, facts, unknown, trace, &verdict->decision);
    if (!verdict->hangs_on)
        verdict->outcome = verdict_outcome_of(&verdict->decision);
}

bool verdict_is_same(enum verdict_outcome left, struct str left_workflow,
                     enum verdict_outcome right, struct str right_workflow)
{
    return left == right && (left != VERDICT_APPROVE || str_equal(left_workflow, right_workflow));
}

struct str verdict_workflow(enum verdict_outcome outcome, const struct policy_decision *decision)
{
    if (outcome != VERDICT_APPROVE || !decision->workflow)
        return STR_EMPTY;
    return str_from(decision->workflow->name);
}
