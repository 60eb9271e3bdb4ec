/* The shadow's verdict in a line. */
#include "shadow_view.h"

#include "taskgate/core/visible.h"
#include "taskgate/policy/verdict.h"

/* False when it depends on the call, and there is no call. */
static bool shadow_view_judge(const struct snapshot *snapshot, const struct policy_request *request,
                              const struct consultation *consultation, struct verdict *verdict)
{
    if (verdict_of_rules(snapshot->shadow, request, verdict))
        return true;
    if (!consultation)
        return false;
    struct policy_request call = *request;
    call.arguments = consultation->request.arguments;
    verdict_of(snapshot->shadow, &call, &consultation->facts, 0, NULL, verdict);
    return true;
}

void shadow_view_write_text(struct buffer *out, const struct snapshot *snapshot,
                            const struct policy_request *request,
                            const struct consultation *consultation)
{
    struct verdict verdict;
    if (!snapshot->shadow)
        return;
    buffer_append_format(out, "%-11s", "Shadow");
    if (!shadow_view_judge(snapshot, request, consultation, &verdict)) {
        buffer_append_text(out, "depends on the call: give --args and --principal\n");
        return;
    }
    const struct config_rule *rule = verdict.decision.rule;
    struct str workflow = verdict_workflow(verdict.outcome, &verdict.decision);
    buffer_append_text(out, verdict_outcome_name(verdict.outcome));
    if (workflow.length) {
        buffer_append_text(out, " through the workflow ");
        visible_append(out, workflow);
    }
    if (verdict.outcome == VERDICT_HIDE) {
        buffer_append_text(out, ", by sources[].expose");
    } else if (rule) {
        buffer_append_format(out, ", by rule %zu: ", verdict.decision.rule_index);
        visible_append(out, str_from(rule->match));
        buffer_append_text(out, " (");
        visible_append(out, str_from(snapshot->config->shadow_path));
        buffer_append_format(out, ":%d)", rule->line);
    } else {
        buffer_append_text(out, ", by the default action");
    }
    buffer_append_char(out, '\n');
}

void shadow_view_write_json(struct buffer *out, const struct snapshot *snapshot,
                            const struct policy_request *request,
                            const struct consultation *consultation)
{
    struct verdict verdict;
    if (!snapshot->shadow)
        return;
    bool is_known = shadow_view_judge(snapshot, request, consultation, &verdict);
    const struct config_rule *rule = verdict.decision.rule;
    struct str workflow = verdict_workflow(verdict.outcome, &verdict.decision);
    buffer_append_text(out, ",\"shadow\":{\"decision\":");
    buffer_append_format(out, is_known ? "\"%s\"" : "null", verdict_outcome_name(verdict.outcome));
    buffer_append_text(out, ",\"rule\":");
    if (rule) {
        buffer_append_format(out, "{\"index\":%zu,\"match\":", verdict.decision.rule_index);
        buffer_append_json_string(out, str_from(rule->match));
        buffer_append_format(out, ",\"line\":%d}", rule->line);
    } else {
        buffer_append_text(out, "null");
    }
    buffer_append_text(out, ",\"workflow\":");
    if (is_known && workflow.length)
        buffer_append_json_string(out, workflow);
    else
        buffer_append_text(out, "null");
    buffer_append_char(out, '}');
}
