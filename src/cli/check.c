/* taskgate check: every problem of the configuration, or else its rules. */
#include "taskgate/cli/cli.h"
#include "taskgate/config/schema.h"

#include <inttypes.h>
#include <stdio.h>

#include "taskgate/config/duration.h"
#include "taskgate/config/memory_limit.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/core/visible.h"
#include "taskgate/json/members.h"

#include "judgement.h"
#include "options.h"
#include "terminal.h"

static void check_append_sources(struct buffer *out, const struct config_strings *sources)
{
    for (size_t i = 0; i < sources->count; i++)
        buffer_append_format(out, "%s%s", i > 0 ? ", " : "", sources->items[i]);
    if (sources->count == 0)
        buffer_append(out, STR("all"));
}

static void append_sources_json(struct buffer *out, const struct config_strings *sources)
{
    buffer_append_text(out, sources->count == 0 ? "null" : sources->count > 1 ? "[" : "");
    for (size_t i = 0; i < sources->count; i++) {
        buffer_append_text(out, i > 0 ? "," : "");
        buffer_append_json_string(out, str_from(sources->items[i]));
    }
    buffer_append_text(out, sources->count > 1 ? "]" : "");
}

/* ---- JSON ---- */

static const struct config_strings every_source = {NULL, 0};

/* `rule` NULL is the default action, which fits every tool. */
static void append_rule_json(struct buffer *out, const struct snapshot *snapshot,
                             const struct config_rule *rule)
{
    struct policy_decision decision;
    OWNED_BUFFER(source);
    OWNED_BUFFER(reason);
    struct str tool = str_from(rule ? rule->match : "*");
    judgement_of_rule(snapshot->config, rule, &decision);
    append_sources_json(&source, rule ? &rule->sources : &every_source);
    if (rule)
        buffer_append_text(&reason, rule->description ? rule->description : "");
    else
        buffer_append(&reason, STR("governance.defaults.action, if no rule matches"));
    judgement_write_json(out, tool, buffer_str(&source), &decision, buffer_str(&reason), STR_EMPTY);
}

static void append_memory_json(struct buffer *out, const struct config *config)
{
    json_add_key(out, "memory");
    buffer_append_char(out, '{');
    if (memory_limit_of(config) > 0)
        json_add_number(out, "limit_bytes", memory_limit_of(config));
    else
        json_add_value(out, "limit_bytes", STR("null"));
    json_add_number(out, "worst_case_bytes", memory_limit_worst(config));
    json_add_number(out, "bodies_bytes", config->limits.bodies_bytes);
    json_add_number(out, "result_bytes", config->limits.result_bytes);
    json_add_number(out, "connections", config->limits.connections);
    buffer_append_char(out, '}');
}

static void check_append_json(struct buffer *out, const struct snapshot *snapshot)
{
    const struct config *config = snapshot->config;
    buffer_append_char(out, '{');
    json_add_text(out, "file", config->path);
    buffer_append(out, STR(",\"rules\":["));
    for (size_t i = 0; i < config->rule_count; i++) {
        append_rule_json(out, snapshot, &config->rules[i]);
        buffer_append_char(out, ',');
    }
    append_rule_json(out, snapshot, NULL);
    buffer_append(out, STR("]"));
    append_memory_json(out, config);
    if (config->shadow)
        json_add_text(out, "shadow", config->shadow_path);
    buffer_append(out, STR("}\n"));
}

/* ---- a table ---- */

static void add_rule(struct table *table, const struct config *config,
                     const struct config_rule *rule)
{
    struct policy_decision decision;
    OWNED_BUFFER(text);
    char timeout[64];
    judgement_of_rule(config, rule, &decision);
    if (rule)
        buffer_append_format(&text, "%zu", decision.rule_index);
    table_add(table, rule ? buffer_str(&text) : STR("-"));
    buffer_clear(&text);
    buffer_append_format(&text, "%s%s", rule ? rule->match : "anything else",
                         rule && rule->has_principals ? " (for some callers)" : "");
    table_add(table, buffer_str(&text));
    buffer_clear(&text);
    check_append_sources(&text, rule ? &rule->sources : &every_source);
    table_add(table, buffer_str(&text));
    table_add(table, str_from(config_action_name(decision.action)));
    buffer_clear(&text);
    if (decision.workflow) {
        duration_format(config_decide_within_ms(config, decision.workflow), timeout);
        buffer_append_format(&text, "%s (%s)", decision.workflow->name, timeout);
    }
    table_add(table, decision.workflow ? buffer_str(&text) : STR("-"));
    table_add(table, str_from(rule && rule->description ? rule->description : ""));
}

static void append_memory(struct buffer *out, const struct config *config)
{
    char limit[MEMORY_LIMIT_TEXT_BYTES], worst[MEMORY_LIMIT_TEXT_BYTES];
    char bodies[MEMORY_LIMIT_TEXT_BYTES], result[MEMORY_LIMIT_TEXT_BYTES];
    memory_limit_format(memory_limit_of(config), limit);
    memory_limit_format(memory_limit_worst(config), worst);
    memory_limit_format(config->limits.bodies_bytes, bodies);
    memory_limit_format(config->limits.result_bytes, result);
    buffer_append_format(
        out,
        "\nMemory: %s%s; clients can make the gateway hold %s:\nlimits.bodies_bytes %s, "
        "limits.result_bytes %s, limits.connections %" PRId64 "\n",
        memory_limit_of(config) ? "a limit of " : "no limit", memory_limit_of(config) ? limit : "",
        worst, bodies, result, config->limits.connections);
}

static void append_table(struct buffer *out, const struct snapshot *snapshot)
{
    static const char *const headings[] = {"RULE",   "TOOL",     "SOURCE",
                                           "ACTION", "WORKFLOW", "DESCRIPTION"};
    const struct config *config = snapshot->config;
    struct table table;
    buffer_append(out, STR("The configuration "));
    visible_append(out, str_from(config->path));
    buffer_append(out, STR(" is valid. The first rule that matches a tool decides:\n\n"));
    table_init(&table, sizeof headings / sizeof *headings, headings);
    for (size_t i = 0; i < config->rule_count; i++)
        add_rule(&table, config, &config->rules[i]);
    add_rule(&table, config, NULL);
    table_write(&table, out);
    table_finish(&table);
    for (size_t i = 0; i < config->force_required.count; i++) {
        buffer_append_text(out, i == 0 ? "\nAlways announced as required: " : ", ");
        visible_append(out, str_from(config->force_required.items[i]));
    }
    buffer_append_text(out, config->force_required.count ? "\n" : "");
    append_memory(out, config);
    if (!config->shadow)
        return;
    buffer_append(out, STR("\nThe shadow "));
    visible_append(out, str_from(config->shadow_path));
    buffer_append(out, STR(" judges calls as well, and decides nothing.\n"));
}

/* It is true of every source that says nothing of its owners, and so no mistake: the gateway does
 * not log it, and --strict does not count it. */
static void advise(const struct config *config)
{
    struct config_problems problems = {0};
    OWNED_BUFFER(text);
    for (size_t i = 0; i < config->source_count; i++) {
        const struct config_source *source = &config->sources[i];
        if (!source->enabled || source->auth.issuer || source->has_identity)
            continue;
        OWNED char *message = memory_format(
            "sources[%zu]: a task outlives its owner's token, and a client with a new token does "
            "not find it; add auth, or write `identity: authorization`",
            i);
        config_problems_add(&problems, true, config->path, source->line, source->column, message);
    }
    config_problems_write(&problems, &text);
    fwrite(text.bytes ? text.bytes : "", 1, text.length, stderr);
    config_problems_finish(&problems);
}

int cli_check(int argc, char **argv)
{
    const char *path = NULL;
    bool json = false, strict = false;
    size_t warnings;
    const struct option options[] = {
        {"config", "FILE", "the configuration; by default one of the usual places", &path},
        {"json", NULL, "print the rules as JSON", .flag = &json},
        {"strict", NULL, "count warnings as errors", .flag = &strict},
    };
    const struct command command = {
        .usage = "taskgate check [--config FILE] [--strict] [--json]",
        .synopsis = "Reads the configuration and reports every mistake on stderr, as\n"
                    "FILE:LINE:COLUMN. Starts nothing.",
        COMMAND_OPTIONS(options),
    };
    enum options_outcome outcome = options_read(&command, argc, argv, NULL);
    if (outcome != OPTIONS_READ)
        return options_exit_code(outcome);
    struct snapshot *snapshot = judgement_load(path, &warnings);
    if (!snapshot)
        return CLI_USAGE;
    advise(snapshot->config);
    if (strict && warnings > 0) {
        snapshot_unref(snapshot);
        return CLI_USAGE;
    }
    OWNED_BUFFER(text);
    if (json)
        check_append_json(&text, snapshot);
    else
        append_table(&text, snapshot);
    bool written = terminal_write(&text);
    snapshot_unref(snapshot);
    return written ? CLI_DONE : CLI_FAILURE;
}

/* ---- taskgate schema ---- */

int cli_schema(int argc, char **argv)
{
    const struct command command = {
        .usage = "taskgate schema",
        .synopsis = "Prints the JSON Schema (draft 7) of the configuration file. What it refuses,\n"
                    "taskgate check refuses; rules over several keys are check's alone.",
    };
    enum options_outcome outcome = options_read(&command, argc, argv, NULL);
    if (outcome != OPTIONS_READ)
        return options_exit_code(outcome);
    OWNED_BUFFER(text);
    config_write_schema(&text);
    return terminal_write(&text) ? CLI_DONE : CLI_FAILURE;
}
