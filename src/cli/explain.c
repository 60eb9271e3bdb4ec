/* taskgate explain: what the rules come to for one tool, and why. */
#include "taskgate/cli/cli.h"

#include <stdio.h>

#include "taskgate/config/duration.h"

#include "judgement.h"
#include "options.h"
#include "terminal.h"

/* The source that is asked about; NULL after a word on stderr. */
static const struct config_source *choose_source(const struct config *config, const char *id)
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
        options_complain("there is no source %s; known are: %.*s", id, STR_ARGS(buffer_str(&ids)));
    else if (!source)
        options_complain("there are several sources; name one with --source: %.*s",
                         STR_ARGS(buffer_str(&ids)));
    buffer_finish(&ids);
    return source;
}

static void append_row(struct buffer *out, const char *name, struct str value)
{
    buffer_append_format(out, "%-11s", name);
    terminal_append_text(out, value);
    buffer_append_char(out, '\n');
}

static void append_text(struct buffer *out, const struct snapshot *snapshot,
                        const struct config_source *source, const char *tool,
                        const struct policy_decision *decision, struct str reason)
{
    struct buffer text;
    char timeout[64];
    buffer_init(&text);
    append_row(out, "Tool", str_from(tool));
    append_row(out, "Source", str_from(source->id));
    if (decision->rule)
        buffer_append_format(&text, "%zu: %s (%s:%d)", decision->rule_index, decision->rule->match,
                             snapshot->config->path, decision->rule->line);
    append_row(out, "Rule", decision->rule ? buffer_str(&text) : STR("none: the default action"));
    append_row(out, "Action", str_from(config_action_name(decision->action)));
    if (decision->workflow) {
        duration_format(decision->workflow->timeout_ms, timeout);
        buffer_clear(&text);
        buffer_append_format(&text, "%s (%s to decide)", decision->workflow->name, timeout);
        append_row(out, "Workflow", buffer_str(&text));
    }
    buffer_clear(&text);
    buffer_append_format(
        &text, "%s when the server has tasks, %s when it has none",
        policy_annotation_name(policy_annotate(decision, true, false, ANNOTATION_FORBIDDEN)),
        policy_annotation_name(policy_annotate(decision, false, false, ANNOTATION_FORBIDDEN)));
    append_row(out, "Announced", buffer_str(&text));
    append_row(out, "Why", reason);
    buffer_finish(&text);
}

static int explain(const struct snapshot *snapshot, const char *tool, const char *source_id,
                   bool json)
{
    const struct config_source *source = choose_source(snapshot->config, source_id);
    if (!source)
        return CLI_USAGE;
    struct policy_request request = {.source = source, .name = str_from(tool)};
    struct policy_decision decision;
    policy_decide(snapshot->policy, &request, &decision);
    struct buffer text, reason, quoted;
    buffer_init(&text);
    buffer_init(&reason);
    buffer_init(&quoted);
    judgement_write_reason(&reason, snapshot, source, request.name, &decision);
    if (json) {
        buffer_append_json_string(&quoted, str_from(source->id));
        judgement_write_json(&text, request.name, buffer_str(&quoted), &decision,
                             buffer_str(&reason));
        buffer_append_char(&text, '\n');
    } else {
        append_text(&text, snapshot, source, tool, &decision, buffer_str(&reason));
    }
    bool written = terminal_write(&text);
    buffer_finish(&quoted);
    buffer_finish(&reason);
    buffer_finish(&text);
    return written ? CLI_DONE : CLI_FAILURE;
}

int cli_explain(int argc, char **argv)
{
    const char *path = NULL, *source = NULL, *tool = NULL;
    bool json = false;
    const struct option options[] = {
        {"source", "ID", "the server that has the tool, when there are several", &source, NULL},
        {"config", "FILE", "the configuration; else the usual places are searched", &path, NULL},
        {"json", NULL, "print JSON", NULL, &json},
    };
    const struct command command = {
        .usage = "taskgate explain TOOL [--source ID] [--config FILE] [--json]",
        .synopsis =
            "Says what the rules come to for one tool: which rule decides, which action and\n"
            "workflow, what the tool is announced as, and why.",
        .options = options,
        .option_count = sizeof options / sizeof *options,
        .operands_min = 1,
        .operands_max = 1,
        .operand_name = "TOOL",
    };
    switch (options_read(&command, argc, argv, &tool)) {
    case OPTIONS_HELPED:
        return CLI_DONE;
    case OPTIONS_WRONG:
        return CLI_USAGE;
    case OPTIONS_READ:
        break;
    }
    struct snapshot *snapshot = judgement_load(path, NULL);
    if (!snapshot)
        return CLI_USAGE;
    int code = explain(snapshot, tool, source, json);
    snapshot_unref(snapshot);
    return code;
}
