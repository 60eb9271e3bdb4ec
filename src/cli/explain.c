/* taskgate explain: the decision of the rules on one tool, and the reason. */
#include "taskgate/cli/cli.h"

#include <stdio.h>

#include "taskgate/config/duration.h"
#include "taskgate/core/visible.h"

#include "consultation.h"
#include "electorate_view.h"
#include "eras_view.h"
#include "judgement.h"
#include "options.h"
#include "shadow_view.h"
#include "terminal.h"

/* The source that is asked about; NULL after a word on stderr. */
static const struct config_source *explain_choose_source(const struct config *config,
                                                         const char *id)
{
    struct buffer ids;
    buffer_init(&ids);
    for (size_t i = 0; i < config->source_count; i++)
        buffer_append_format(&ids, "%s%s", i > 0 ? ", " : "", config->sources[i].id);
    const struct config_source *source = NULL;
    if (id)
        source = config_source_find(config, str_from(id));
    else if (config->source_count == 1)
        source = &config->sources[0];
    if (!source && id)
        options_complain("there is no source %s; there are: %.*s", id, STR_ARGS(buffer_str(&ids)));
    else if (!source)
        options_complain("there are several sources; name one with --source: %.*s",
                         STR_ARGS(buffer_str(&ids)));
    buffer_finish(&ids);
    return source;
}

static void append_row(struct buffer *out, const char *name, struct str value)
{
    buffer_append_format(out, "%-11s", name);
    visible_append(out, value);
    buffer_append_char(out, '\n');
}

/* The clients that are served although the server does not speak their protocol. */
static struct str bridge_of(const struct config_source *source)
{
    static const char *const texts[] = {
        [BRIDGE_OFF] = "off",
        [BRIDGE_LEGACY] = "legacy clients, where the server speaks modern alone",
        [BRIDGE_MODERN] = "modern clients, where the server speaks legacy alone",
        [BRIDGE_LEGACY | BRIDGE_MODERN] = "clients of either protocol",
    };
    return str_from(texts[source->bridge]);
}

static void explain_append_text(struct buffer *out, const struct snapshot *snapshot,
                                const struct config_source *source, const char *tool,
                                const struct policy_decision *decision, struct str reason)
{
    struct buffer text;
    char timeout[64], valid_for[64];
    buffer_init(&text);
    append_row(out, "Tool", str_from(tool));
    append_row(out, "Source", str_from(source->id));
    append_row(out, "Bridge", bridge_of(source));
    if (decision->rule)
        buffer_append_format(&text, "%zu: %s (%s:%d)", decision->rule_index, decision->rule->match,
                             snapshot->config->path, decision->rule->line);
    append_row(out, "Rule", decision->rule ? buffer_str(&text) : STR("none: the default action"));
    append_row(out, "Action", str_from(config_action_name(decision->action)));
    if (decision->workflow) {
        duration_format(config_decide_within_ms(snapshot->config, decision->workflow), timeout);
        duration_format(decision->workflow->valid_for_ms, valid_for);
        buffer_clear(&text);
        buffer_append_format(&text, "%s (%s to decide, then %s to begin the call)",
                             decision->workflow->name, timeout, valid_for);
        append_row(out, "Workflow", buffer_str(&text));
        buffer_clear(&text);
        electorate_view_write_text(&text, snapshot->config, decision->workflow);
        append_row(out, "Decided by", buffer_str(&text));
    }
    enum policy_annotation with = policy_annotate(decision, true, false, ANNOTATION_FORBIDDEN);
    enum policy_annotation without = policy_annotate(decision, false, false, ANNOTATION_FORBIDDEN);
    buffer_clear(&text);
    buffer_append_text(&text, policy_annotation_name(with));
    if (with != without)
        buffer_append_format(&text, " if the server has tasks, %s if it has none",
                             policy_annotation_name(without));
    append_row(out, "Announced", buffer_str(&text));
    append_row(out, "Why", reason);
    buffer_finish(&text);
}

/* Everything that is said of the tool, and of one call of it where there is one. */
static void explain_append_explanation(struct buffer *out, const struct snapshot *snapshot,
                                       const struct config_source *source, const char *tool,
                                       const struct policy_decision *ruled,
                                       const struct consultation *consultation, bool json)
{
    struct buffer reason = {0}, quoted = {0}, more = {0};
    const struct policy_request request = {.source = source,
                                           .name = str_from(tool),
                                           .verified = consultation ? consultation->request.verified
                                                                    : NULL};
    judgement_write_reason(&reason, snapshot, source, str_from(tool), ruled);
    if (json) {
        struct policy_decision shown = *ruled;
        if (consultation) /* with one call in view, the workflow is that of the call */
            shown.workflow = consultation->decision.workflow;
        if (consultation)
            consultation_write_json(&more, consultation);
        if (shown.workflow)
            electorate_view_write_json(&more, snapshot->config, shown.workflow);
        eras_view_write_json(&more, snapshot, source, str_from(tool), ruled);
        shadow_view_write_json(&more, snapshot, &request, consultation);
        buffer_append_json_string(&quoted, str_from(source->id));
        judgement_write_json(out, str_from(tool), buffer_str(&quoted), &shown, buffer_str(&reason),
                             buffer_str(&more));
        buffer_append_char(out, '\n');
    } else {
        explain_append_text(out, snapshot, source, tool, ruled, buffer_str(&reason));
        eras_view_write_text(out, snapshot, source, str_from(tool), ruled);
        if (consultation)
            consultation_write_text(out, consultation);
        else if (policy_hangs_on_caller(snapshot->policy, &request))
            append_row(out, "Decision", STR("depends on the caller: give --principal"));
        else if (ruled->action == ACTION_POLICY)
            append_row(out, "Decision", STR("depends on the call: give --args and --principal"));
        shadow_view_write_text(out, snapshot, &request, consultation);
    }
    buffer_finish(&more);
    buffer_finish(&quoted);
    buffer_finish(&reason);
}

static int explain(const struct snapshot *snapshot, const char *tool, const char *source_id,
                   const struct consultation_options *options, bool json)
{
    const struct config_source *source = explain_choose_source(snapshot->config, source_id);
    struct consultation consultation;
    if (!source)
        return CLI_USAGE;
    int code = CLI_USAGE;
    if (consultation_init(&consultation, options)) {
        struct policy_request request = {
            .source = source, .name = str_from(tool), .verified = consultation.request.verified};
        struct policy_decision ruled;
        struct buffer text;
        bool is_wanted = consultation_is_wanted(options);
        buffer_init(&text);
        policy_decide(snapshot->policy, &request, &ruled);
        if (is_wanted)
            consultation_hold(&consultation, snapshot, source, request.name, &ruled);
        explain_append_explanation(&text, snapshot, source, tool, &ruled,
                                   is_wanted ? &consultation : NULL, json);
        code = terminal_write(&text) ? CLI_DONE : CLI_FAILURE;
        buffer_finish(&text);
    }
    consultation_finish(&consultation);
    return code;
}

int cli_explain(int argc, char **argv)
{
    const char *path = NULL, *source = NULL, *tool = NULL;
    struct consultation_options call = {0};
    bool json = false;
    const struct option options[] = {
        {"args", "JSON", "the arguments of a call, for Cedar policies", &call.arguments, NULL},
        {"principal", "WHO", "the caller: an owner, or {\"subject\", \"groups\", …}",
         &call.principal, NULL},
        {"at", "TIME", "the time of the call; by default now", &call.at, NULL},
        {"annotations", "JSON", "the server's hints, such as {\"readOnlyHint\": true}",
         &call.annotations, NULL},
        {"source", "ID", "the source of the tool, if there are several", &source, NULL},
        {"config", "FILE", "the configuration; by default one of the usual places", &path, NULL},
        {"json", NULL, "print JSON", NULL, &json},
    };
    const struct command command = {
        .usage = "taskgate explain TOOL [--args JSON] [--principal WHO] [--at TIME]\n"
                 "       [--annotations JSON] [--source ID] [--config FILE] [--json]",
        .synopsis =
            "Shows the decision of the rules on one tool: the rule, the action and workflow,\n"
            "the announcement, the reason, and what clients of both eras of the protocol get.\n"
            "With the facts of one call it also shows the decision on that call, and the\n"
            "Cedar policies that made it.",
        .options = options,
        .option_count = sizeof options / sizeof *options,
        .operands_min = 1,
        .operands_max = 1,
        .operand_name = "TOOL",
    };
    enum options_outcome outcome = options_read(&command, argc, argv, &tool);
    if (outcome != OPTIONS_READ)
        return options_exit_code(outcome);
    struct snapshot *snapshot = judgement_load(path, NULL);
    if (!snapshot)
        return CLI_USAGE;
    int code = explain(snapshot, tool, source, &call, json);
    snapshot_unref(snapshot);
    return code;
}
