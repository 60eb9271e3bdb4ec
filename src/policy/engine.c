/* The policies of a configuration: parsed, checked, told apart by their annotations. */
#include "engine.h"

#include <stdlib.h>
#include <string.h>

#include "engine_internal.h"
#include "taskgate/core/memory.h"

#define WORKFLOW_ANNOTATION STR("thoughtgate_approval")

/* "NAME:LINE:COLUMN: MESSAGE", by the name of a source. `line` ends with a NUL. */
static bool add_placed(struct config_problems *problems, const char *name, struct str line)
{
    struct str rest, row, column;
    uint64_t row_number, column_number;
    size_t length = strlen(name);
    if (line.length <= length || !str_starts_with(line, str_from(name)) ||
        line.bytes[length] != ':')
        return false;
    rest = str_slice(line.bytes + length + 1, line.length - length - 1);
    if (!str_cut(rest, ':', &row, &rest) || !str_cut(rest, ':', &column, &rest) ||
        !str_to_u64(row, &row_number) || !str_to_u64(column, &column_number))
        return false;
    config_problems_add(problems, false, name, (int)row_number, (int)column_number,
                        str_trim(rest).bytes);
    return true;
}

/* Each line of `text` is a problem of its own, which says where it is. */
static void add_lines(const struct config *config, struct config_problems *problems,
                      struct str text)
{
    struct str line;
    while (text.length) {
        str_cut(text, '\n', &line, &text);
        char *message = memory_copy_str(line);
        bool is_added = line.length == 0;
        for (size_t i = 0; !is_added && i < config->policy_count; i++)
            is_added = add_placed(problems, config->policies[i].name, str_from(message));
        if (!is_added)
            config_problems_add(problems, false, NULL, 0, 0, message);
        free(message);
    }
}

static struct cedar_policies *parse(const struct config *config, struct config_problems *problems)
{
    struct cedar_source *sources = memory_alloc_array(config->policy_count, sizeof *sources);
    struct buffer text;
    for (size_t i = 0; i < config->policy_count; i++)
        sources[i] =
            (struct cedar_source){config->policies[i].name,
                                  str_slice(config->policies[i].text, config->policies[i].length)};
    buffer_init(&text);
    struct cedar_policies *policies = cedar_policies_parse(sources, config->policy_count, &text);
    add_lines(config, problems, buffer_str(&text));
    buffer_finish(&text);
    free(sources);
    return policies;
}

static void complain(struct config_problems *problems, bool is_warning,
                     const struct cedar_policy *policy, const char *message)
{
    struct cedar_position position = cedar_policy_position(policy);
    config_problems_add(problems, is_warning, position.source, (int)position.line,
                        (int)position.column, message);
}

const struct config_workflow *engine_workflow_of(const struct engine *engine,
                                                 const struct cedar_policy *policy)
{
    struct str name;
    if (!cedar_policy_annotation(policy, WORKFLOW_ANNOTATION, &name))
        return NULL;
    return config_workflow_find(engine->config, name);
}

/* With a missing workflow nobody could decide. */
static bool check_workflow(const struct engine *engine, const struct cedar_policy *policy,
                           struct config_problems *problems)
{
    struct str name;
    if (!cedar_policy_annotation(policy, WORKFLOW_ANNOTATION, &name))
        return true;
    if (!config_workflow_find(engine->config, name)) {
        char *message =
            memory_format("V-006 undefined workflow \"%.*s\" in @thoughtgate_approval; name one of "
                          "the key approval",
                          STR_ARGS(name));
        complain(problems, false, policy, message);
        free(message);
        return false;
    }
    if (cedar_policy_effect(policy) == CEDAR_FORBID)
        complain(
            problems, true, policy,
            "@thoughtgate_approval has no effect on a forbid; only a permit leads to approval");
    return true;
}

bool engine_asks(const struct cedar_policy *policy, const char *policy_id)
{
    struct str id;
    return !policy_id || !cedar_policy_annotation(policy, STR("id"), &id) ||
           str_equal(id, str_from(policy_id));
}

/* A rule without any permit rejects every call: probably a mistake. */
static void check_rules(const struct engine *engine, struct config_problems *problems)
{
    size_t count = cedar_policies_count(engine->policies);
    for (size_t i = 0; i < engine->config->rule_count; i++) {
        const struct config_rule *rule = &engine->config->rules[i];
        bool asks = rule->action != ACTION_POLICY || !rule->policy_id || count == 0;
        for (size_t j = 0; j < count && !asks; j++) {
            const struct cedar_policy *policy = cedar_policies_at(engine->policies, j);
            asks =
                cedar_policy_effect(policy) == CEDAR_PERMIT && engine_asks(policy, rule->policy_id);
        }
        if (asks)
            continue;
        char *message =
            memory_format("governance.rules[%zu].policy_id: no permit has @id(\"%s\"), and none is "
                          "without an @id, so every call is rejected",
                          i, rule->policy_id);
        config_problems_add(problems, true, engine->config->path, rule->line, rule->column,
                            message);
        free(message);
    }
}

struct engine *engine_create(const struct config *config, struct config_problems *problems)
{
    struct engine *engine = memory_alloc(sizeof *engine);
    bool good;
    engine->config = config;
    engine->policies = parse(config, problems);
    good = engine->policies != NULL;
    for (size_t i = 0; engine->policies && i < cedar_policies_count(engine->policies); i++)
        good = check_workflow(engine, cedar_policies_at(engine->policies, i), problems) && good;
    if (good) {
        check_rules(engine, problems);
        vocabulary_check(config, engine->policies, problems);
        return engine;
    }
    engine_destroy(engine);
    return NULL;
}

void engine_destroy(struct engine *engine)
{
    if (!engine)
        return;
    cedar_policies_destroy(engine->policies);
    free(engine);
}

size_t engine_policy_count(const struct engine *engine)
{
    return cedar_policies_count(engine->policies);
}

const struct cedar_policies *engine_policies(const struct engine *engine)
{
    return engine->policies;
}
