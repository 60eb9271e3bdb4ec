/* The decision of the Cedar policies, and its record. */
#include "policy_check.h"

#include "taskgate/core/log.h"
#include "taskgate/core/metrics.h"
#include "taskgate/core/owned.h"
#include "taskgate/policy/gate.h"

/* The names of the policies that decided, or failed to, with commas. */
static void write_reasons(struct buffer *out, const struct policy_trace *trace)
{
    for (size_t i = 0; i < trace->count; i++) {
        const struct policy_finding *finding = &trace->items[i];
        buffer_append_format(out, "%s%s %.*s (%s%s)", out->length ? ", " : "",
                             finding->is_forbid ? "forbid" : "permit", STR_ARGS(finding->policy),
                             finding->action, finding->kind == FINDING_ERROR ? ", failed" : "");
    }
}

/* The agent learns only that the call was rejected. The operator may see why. */
static void log_rejection(const struct policy_request *request,
                          const struct policy_decision *decision, const struct policy_trace *trace)
{
    OWNED_BUFFER(reasons);
    write_reasons(&reasons, trace);
    log_info("Policies rejected a call", LOG_STR("tool", request->name),
             LOG_TEXT("source", request->source->id),
             LOG_TEXT("policy_id", decision->rule ? decision->rule->policy_id : NULL),
             LOG_STR("policies", buffer_str(&reasons)));
}

void policy_check(const struct snapshot *snapshot, const struct policy_request *request,
                  const struct policy_facts *facts, struct policy_decision *decision)
{
    struct policy_trace trace = {0};
    if (decision->action != ACTION_POLICY)
        return;
    policy_consult(snapshot->policy, request, facts, &trace, decision);
    metrics_count(METRIC_DECISIONS, policy_gate_label(POLICY_GATE_POLICY),
                  str_from(config_action_name(decision->action)));
    if (decision->action == ACTION_DENY)
        log_rejection(request, decision, &trace);
    policy_trace_finish(&trace);
}
