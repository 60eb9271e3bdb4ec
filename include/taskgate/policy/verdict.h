/*
 * The verdict: the decision on one well-formed call by `expose`, rules and Cedar policies together.
 * It is hypothetical: it counts and logs nothing. The gateway itself decides gate by gate
 * (src/gateway/methods/tools_call.c), in the same order. Any thread.
 */
#pragma once

#include "taskgate/policy/policy.h"

enum verdict_outcome {
    VERDICT_FORWARD,
    VERDICT_APPROVE,
    VERDICT_DENY,    /* by a rule */
    VERDICT_REJECT,  /* by Cedar policies */
    VERDICT_HIDE,    /* by `expose` or `enabled` */
    VERDICT_INVALID, /* policy_refuses_arguments() */
};
#define VERDICT_COUNT 6
/* "forward", "approve", "deny", "reject", "hide", "invalid". */
const char *verdict_outcome_name(enum verdict_outcome outcome);
bool verdict_outcome_parse(struct str name, enum verdict_outcome *outcome);
/* The outcome of a decision. The name must be visible, and the Cedar policies must have been asked
 * where a rule leaves the decision to them. */
enum verdict_outcome verdict_outcome_of(const struct policy_decision *decision);

struct verdict {
    unsigned hangs_on; /* UNKNOWN_… bits; unless 0 nothing is known but the rule */
    enum verdict_outcome outcome;
    struct policy_decision decision; /* no rule where the name is hidden */
};

/* By `expose` and the rules alone: false when Cedar policies must be asked. */
bool verdict_of_rules(const struct policy *policy, const struct policy_request *request,
                      struct verdict *verdict);
/* The whole. `unknown` and `trace` as in policy_rehearse(). */
void verdict_of(const struct policy *policy, const struct policy_request *request,
                const struct policy_facts *facts, unsigned unknown, struct policy_trace *trace,
                struct verdict *verdict);
/* Whether a call would be treated alike: the outcome, and the workflow where a human decides. */
bool verdict_is_same(enum verdict_outcome left, struct str left_workflow,
                     enum verdict_outcome right, struct str right_workflow);
/* The name of the workflow that decides; empty where none does. */
struct str verdict_workflow(enum verdict_outcome outcome, const struct policy_decision *decision);
