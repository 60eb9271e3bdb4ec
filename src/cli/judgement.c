/* Loading for commands, and one decision as JSON and as a sentence. */
#include "judgement.h"

#include <stdio.h>

#include "taskgate/config/duration.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/members.h"

void judgement_of_rule(const struct config *config, const struct config_rule *rule,
                       struct policy_decision *decision)
{
    *decision = (struct policy_decision){
        .action = rule ? rule->action : config->default_action,
        .rule = rule,
        .rule_index = rule ? (size_t)(rule - config->rules) : 0,
    };
    if (decision->action == ACTION_APPROVE || decision->action == ACTION_POLICY)
        decision->workflow = config_workflow_of(config, rule);
}

struct snapshot *judgement_load(const char *path, size_t *warnings)
{
    struct config_problems problems = {0};
    struct config *config = config_load(path, NULL, &problems);
    struct snapshot *snapshot = config ? snapshot_create(config, &problems) : NULL;
    OWNED_BUFFER(text);
    config_problems_write(&problems, &text);
    fwrite(text.bytes ? text.bytes : "", 1, text.length, stderr);
    if (warnings)
        *warnings = problems.count - problems.errors;
    config_problems_finish(&problems);
    return snapshot;
}

static void append_annotation(struct buffer *out, const struct policy_decision *decision)
{
    enum policy_annotation with = policy_annotate(decision, true, false, ANNOTATION_FORBIDDEN);
    enum policy_annotation without = policy_annotate(decision, false, false, ANNOTATION_FORBIDDEN);
    buffer_append_format(
        out, "{\"upstream_tasks\":\"%s\",\"no_upstream_tasks\":\"%s\",\"plain\":\"%s\"}",
        policy_annotation_name(with), policy_annotation_name(without),
        policy_annotation_name(policy_annotate_plain(decision, without)));
}

void judgement_add_rule(struct buffer *out, const struct policy_decision *decision)
{
    json_add_key(out, "rule");
    if (!decision->rule) {
        buffer_append_text(out, "null");
        return;
    }
    buffer_append_char(out, '{');
    json_add_number(out, "index", (int64_t)decision->rule_index);
    json_add_text(out, "match", decision->rule->match);
    json_add_number(out, "line", decision->rule->line);
    buffer_append_char(out, '}');
}

void judgement_write_json(struct buffer *out, struct str tool, struct str source,
                          const struct policy_decision *decision, struct str reason,
                          struct str more)
{
    buffer_append_char(out, '{');
    json_add_str(out, "tool", tool);
    json_add_value(out, "source", source);
    judgement_add_rule(out, decision);
    json_add_text(out, "action", config_action_name(decision->action));
    json_add_text_or_null(out, "workflow", decision->workflow ? decision->workflow->name : NULL);
    json_add_key(out, "annotation");
    append_annotation(out, decision);
    json_add_str(out, "reason", reason);
    buffer_append(out, more);
    buffer_append_char(out, '}');
}

static void append_workflow(struct buffer *out, const struct config *config,
                            const struct config_workflow *workflow)
{
    char asked[64], longest[64];
    int64_t holds_ms = config_decide_within_ms(config, workflow);
    buffer_append_format(out, " through the workflow %s", workflow->name);
    if (holds_ms == workflow->timeout_ms)
        return;
    duration_format(workflow->timeout_ms, asked);
    duration_format(holds_ms, longest);
    buffer_append_format(out, ", whose timeout of %s is cut to the longest life of a task, %s",
                         asked, longest);
}

void judgement_write_reason(struct buffer *out, const struct snapshot *snapshot,
                            const struct config_source *source, struct str tool,
                            const struct policy_decision *decision)
{
    if (decision->rule)
        buffer_append_format(out,
                             "governance.rules[%zu] (\"%s\", line %d) is the first that matches",
                             decision->rule_index, decision->rule->match, decision->rule->line);
    else
        buffer_append(out, STR("no rule matches, so governance.defaults.action holds"));
    buffer_append_format(out, ": %s", config_action_name(decision->action));
    if (decision->workflow)
        append_workflow(out, snapshot->config, decision->workflow);
    if (decision->rule && decision->rule->description)
        buffer_append_format(out, " (%s)", decision->rule->description);
    if (decision->rule && decision->rule->requires_tasks)
        buffer_append(out, STR("; require_tasks refuses clients without tasks"));
    if (decision->force_required)
        buffer_append(out, STR("; task_annotation_overrides.force_required announces it as "
                               "required"));
    if (source && !source->enabled)
        buffer_append_format(out, "; but the source %s is disabled, so clients do not reach it",
                             source->id);
    else if (source && !policy_is_visible(snapshot->policy, source, tool))
        buffer_append_format(out, "; but sources[].expose of %s hides it from clients", source->id);
}
