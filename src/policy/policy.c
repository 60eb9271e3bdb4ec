/* Decisions: configuration and index in, one action out. */
#include <stdlib.h>

#include "engine.h"
#include "index.h"
#include "taskgate/config/glob.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/map.h"
#include "taskgate/core/memory.h"
#include "taskgate/json/fold.h"
#include "taskgate/policy/gate.h"
#include "taskgate/policy/pins.h"
#include "taskgate/policy/policy.h"

struct principals;

/* Globs on subjects and groups, by rule. */

struct globs {
    struct glob **items;
    size_t count;
};

struct rule_principals {
    bool is_set;
    struct globs subjects, groups;
};

struct principals {
    size_t count; /* of the configuration's rules */
    struct rule_principals *rules;
};

static bool globs_init(struct globs *globs, const struct config_strings *texts, struct error *error)
{
    globs->items = memory_alloc_array(texts->count, sizeof(struct glob *));
    for (; globs->count < texts->count; globs->count++) {
        const char *text = texts->items[globs->count];
        globs->items[globs->count] = glob_compile(str_from(text), error);
        if (!globs->items[globs->count])
            return error_prefix(error, text);
    }
    return true;
}

static void globs_finish(struct globs *globs)
{
    for (size_t i = 0; i < globs->count; i++)
        glob_destroy(globs->items[i]);
    free(globs->items);
}

static void principals_destroy(struct principals *principals);

/* NULL with an error when a glob is wrong. */
static struct principals *principals_create(const struct config *config, struct error *error)
{
    struct principals *principals = memory_alloc(sizeof *principals);
    bool good = true;
    principals->count = config->rule_count;
    principals->rules = memory_alloc_array(config->rule_count, sizeof *principals->rules);
    for (size_t i = 0; good && i < config->rule_count; i++) {
        const struct config_rule *rule = &config->rules[i];
        struct rule_principals *own = &principals->rules[i];
        own->is_set = rule->has_principals;
        good = globs_init(&own->subjects, &rule->subjects, error) &&
               globs_init(&own->groups, &rule->groups, error);
    }
    if (good)
        return principals;
    principals_destroy(principals);
    return NULL;
}

/* NULL is allowed */
static void principals_destroy(struct principals *principals)
{
    if (!principals)
        return;
    for (size_t i = 0; i < principals->count; i++) {
        globs_finish(&principals->rules[i].subjects);
        globs_finish(&principals->rules[i].groups);
    }
    free(principals->rules);
    free(principals);
}

static bool any_matches(const struct globs *globs, struct str text)
{
    for (size_t i = 0; i < globs->count; i++) {
        if (glob_matches(globs->items[i], text))
            return true;
    }
    return false;
}

static bool is_in_a_group(const struct globs *globs, const struct config_strings *groups)
{
    for (size_t i = 0; i < groups->count; i++) {
        if (any_matches(globs, str_from(groups->items[i])))
            return true;
    }
    return false;
}

/* Whether the rule is for this caller; NULL is one that nobody has verified. */
static bool principals_fit(const struct principals *principals, size_t rule,
                           const struct policy_verified *verified)
{
    const struct rule_principals *own = &principals->rules[rule];
    if (!own->is_set)
        return true;
    if (!verified)
        return false;
    return (own->subjects.count == 0 || any_matches(&own->subjects, verified->subject)) &&
           (own->groups.count == 0 || is_in_a_group(&own->groups, &verified->groups));
}

/* policy_principal_bits() */
static bool principals_bits(const struct principals *principals,
                            const struct policy_verified *verified, uint64_t *bits)
{
    unsigned next = 0;
    *bits = 0;
    for (size_t i = 0; i < principals->count; i++) {
        if (!principals->rules[i].is_set)
            continue;
        if (next == 64)
            return false;
        if (principals_fit(principals, i, verified))
            *bits |= UINT64_C(1) << next;
        next++;
    }
    return true;
}

/* The names of the gates. */

static const struct {
    const char *name, *label;
} gates[] = {
    [POLICY_GATE_VISIBILITY] = {"visibility", "gate1"},
    [POLICY_GATE_GOVERNANCE] = {"governance", "gate2"},
    [POLICY_GATE_POLICY] = {"policy", "gate3"},
    [POLICY_GATE_APPROVAL] = {"approval", "gate4"},
};

const char *policy_gate_name(enum policy_gate gate)
{
    ASSERT_NUMBERS(gate, <, sizeof gates / sizeof *gates);
    return gates[gate].name;
}

struct str policy_gate_label(enum policy_gate gate)
{
    return str_from(gates[gate].label);
}

/* A list of patterns, compiled. */
struct patterns {
    struct glob **globs;
    size_t count;
    struct index *index;
};

/* Those of one source. */
struct source_patterns {
    struct patterns expose, extensions_allow, extensions_deny;
};

struct policy {
    struct config *config;
    struct patterns rules;
    struct principals *principals;
    unsigned char **rules_of_source; /* source × rule: whether the rule is for the source */
    struct source_patterns *sources; /* beside config.sources */
    struct patterns methods;
    struct map *force_required; /* name → any pointer */
    struct engine *engine;
};

static void patterns_finish(struct patterns *patterns)
{
    index_destroy(patterns->index);
    for (size_t i = 0; i < patterns->count; i++)
        glob_destroy(patterns->globs[i]);
    free(patterns->globs);
}

static bool add_pattern(struct patterns *patterns, const char *text, struct error *error)
{
    struct glob *glob = glob_compile(str_from(text), error);
    if (!glob)
        return error_prefix(error, text);
    patterns->globs =
        memory_grow_array(patterns->globs, patterns->count + 1, sizeof(struct glob *));
    patterns->globs[patterns->count++] = glob;
    return true;
}

static bool patterns_init(struct patterns *patterns, const struct config_strings *texts,
                          struct error *error)
{
    for (size_t i = 0; i < texts->count; i++) {
        if (!add_pattern(patterns, texts->items[i], error))
            return false;
    }
    patterns->index = index_create(patterns->globs, patterns->count);
    return true;
}

static bool source_init(struct source_patterns *patterns, const struct config_source *source,
                        struct error *error)
{
    return patterns_init(&patterns->expose, &source->expose, error) &&
           patterns_init(&patterns->extensions_allow, &source->extensions_allow, error) &&
           patterns_init(&patterns->extensions_deny, &source->extensions_deny, error);
}

static bool rules_init(struct policy *policy, struct error *error)
{
    const struct config *config = policy->config;
    for (size_t i = 0; i < config->rule_count; i++) {
        if (!add_pattern(&policy->rules, config->rules[i].match, error))
            return false;
    }
    policy->rules.index = index_create(policy->rules.globs, policy->rules.count);
    policy->principals = principals_create(config, error);
    return policy->principals != NULL;
}

static bool is_for_source(const struct config_rule *rule, const struct config_source *source)
{
    for (size_t i = 0; i < rule->sources.count; i++) {
        if (str_equal(str_from(rule->sources.items[i]), str_from(source->id)))
            return true;
    }
    return rule->sources.count == 0;
}

static void filters_init(struct policy *policy)
{
    const struct config *config = policy->config;
    policy->rules_of_source =
        memory_alloc_array(config->source_count, sizeof *policy->rules_of_source);
    for (size_t i = 0; i < config->source_count; i++) {
        policy->rules_of_source[i] = memory_alloc_array(config->rule_count, 1);
        for (size_t j = 0; j < config->rule_count; j++)
            policy->rules_of_source[i][j] = is_for_source(&config->rules[j], &config->sources[i]);
    }
}

struct policy *policy_create(struct config *config, struct config_problems *problems)
{
    struct error error = {""};
    struct policy *policy = memory_alloc(sizeof *policy);
    policy->config = config_ref(config);
    policy->force_required = map_create();
    for (size_t i = 0; i < config->force_required.count; i++)
        map_put(policy->force_required, str_from(config->force_required.items[i]), policy);
    policy->sources = memory_alloc_array(config->source_count, sizeof *policy->sources);
    filters_init(policy);
    bool is_valid = rules_init(policy, &error) &&
                    patterns_init(&policy->methods, &config->methods_allow, &error);
    for (size_t i = 0; is_valid && i < config->source_count; i++)
        is_valid = source_init(&policy->sources[i], &config->sources[i], &error);
    if (is_valid)
        policy->engine = engine_create(config, problems);
    else
        config_problems_add(problems, false, config->path, 0, 0, error.message);
    if (policy->engine)
        return policy;
    policy_destroy(policy);
    return NULL;
}

void policy_destroy(struct policy *policy)
{
    if (!policy)
        return;
    for (size_t i = 0; i < policy->config->source_count; i++) {
        patterns_finish(&policy->sources[i].expose);
        patterns_finish(&policy->sources[i].extensions_allow);
        patterns_finish(&policy->sources[i].extensions_deny);
        free(policy->rules_of_source[i]);
    }
    free(policy->sources);
    free(policy->rules_of_source);
    patterns_finish(&policy->rules);
    principals_destroy(policy->principals);
    patterns_finish(&policy->methods);
    map_destroy(policy->force_required, NULL);
    engine_destroy(policy->engine);
    config_unref(policy->config);
    free(policy);
}

size_t policy_count(const struct policy *policy)
{
    return engine_policy_count(policy->engine);
}

const struct cedar_policies *policy_cedar(const struct policy *policy)
{
    return engine_policies(policy->engine);
}

/* The source's number in this policy's configuration, also when the caller's comes from
 * another load of the file; source_count when there is none of that name. */
static size_t policy_number_of(const struct policy *policy, const struct config_source *source)
{
    const struct config *config = policy->config;
    for (size_t i = 0; i < config->source_count; i++) {
        if (source == &config->sources[i])
            return i;
    }
    /* It is of a configuration from before a reload. */
    const struct config_source *own = config_source_find(config, str_from(source->id));
    return own ? (size_t)(own - config->sources) : config->source_count;
}

/* To which rules a call may belong. */
struct caller_filter {
    const struct policy *policy;
    const struct policy_verified *verified;
};

static bool is_for_caller(const void *context, size_t rule)
{
    const struct caller_filter *filter = context;
    return principals_fit(filter->policy->principals, rule, filter->verified);
}

/* A call that would be forwarded waits for people. */
static void hold_changed(const struct policy *policy, struct policy_decision *decision)
{
    const struct config_rule *rule = decision->rule;
    if (!decision->is_changed || decision->action != ACTION_FORWARD)
        return;
    decision->workflow = config_workflow_of(policy->config, rule && rule->approval ? rule : NULL);
    decision->action = decision->workflow ? ACTION_APPROVE : ACTION_DENY;
}

static bool is_changed(const struct config_source *source, const struct policy_request *request)
{
    if (request->is_no_tool || source->pins[DEFINITION_TOOL] != PIN_APPROVE)
        return false;
    const struct pin_name name = {str_from(source->id), DEFINITION_TOOL, request->name};
    return pins_is_changed(&name, request->definition);
}

void policy_decide(const struct policy *policy, const struct policy_request *request,
                   struct policy_decision *decision)
{
    const struct config *config = policy->config;
    size_t source = policy_number_of(policy, request->source);
    *decision = (struct policy_decision){
        .action = config->default_action,
        .force_required = map_get(policy->force_required, request->name) != NULL,
        .execution = config->execution,
    };
    if (source == config->source_count) {
        decision->action = ACTION_DENY; /* no rule can allow anything there */
        return;
    }
    const struct caller_filter caller = {policy, request->verified};
    const struct index_filter filter = {policy->rules_of_source[source], is_for_caller, &caller};
    if (index_first(policy->rules.index, request->name, &filter, &decision->rule_index)) {
        decision->rule = &config->rules[decision->rule_index];
        decision->action = decision->rule->action;
        if (decision->rule->has_execution)
            decision->execution = decision->rule->execution;
    }
    if (decision->action == ACTION_APPROVE || decision->action == ACTION_POLICY)
        decision->workflow = config_workflow_of(config, decision->rule);
    decision->is_changed = is_changed(&config->sources[source], request);
    hold_changed(policy, decision);
}

bool policy_hangs_on_caller(const struct policy *policy, const struct policy_request *request)
{
    size_t source = policy_number_of(policy, request->source), rule;
    if (source == policy->config->source_count)
        return false;
    const struct index_filter filter = {.allowed = policy->rules_of_source[source]};
    return index_first(policy->rules.index, request->name, &filter, &rule) &&
           policy->config->rules[rule].has_principals;
}

bool policy_principal_bits(const struct policy *policy, const struct policy_verified *verified,
                           uint64_t *bits)
{
    return principals_bits(policy->principals, verified, bits);
}

void policy_consult(const struct policy *policy, const struct policy_request *request,
                    const struct policy_facts *facts, struct policy_trace *trace,
                    struct policy_decision *decision)
{
    const struct inquiry inquiry = {.request = request, .facts = facts, .trace = trace};
    if (decision->action == ACTION_POLICY)
        engine_decide(policy->engine, &inquiry, decision);
    hold_changed(policy, decision);
}

unsigned policy_rehearse(const struct policy *policy, const struct policy_request *request,
                         const struct policy_facts *facts, unsigned unknown,
                         struct policy_trace *trace, struct policy_decision *decision)
{
    const struct inquiry inquiry = {request, facts, trace, .is_rehearsal = true, unknown};
    if (decision->action != ACTION_POLICY)
        return 0;
    unsigned hangs_on = engine_decide(policy->engine, &inquiry, decision);
    hold_changed(policy, decision);
    return hangs_on;
}

bool policy_is_exposed(const struct policy *policy, const struct config_source *source,
                       struct str name)
{
    size_t number = policy_number_of(policy, source), position;
    if (number == policy->config->source_count || !policy->config->sources[number].enabled)
        return false;
    enum config_expose_mode mode = policy->config->sources[number].expose_mode;
    if (mode == EXPOSE_ALL)
        return true;
    bool is_listed = index_first(policy->sources[number].expose.index, name, NULL, &position);
    return is_listed == (mode == EXPOSE_ALLOWLIST);
}

/* Whether the definition is shown, which `expose` does not hide. */
static bool policy_is_shown(const struct policy *policy, const struct config_source *source,
                            enum definition_kind kind, struct str name,
                            const struct policy_entry *entry)
{
    const struct config_source *own = &policy->config->sources[policy_number_of(policy, source)];
    bool must_be_accepted = kind != DEFINITION_TOOL && own->pins[kind] == PIN_APPROVE;
    if (!own->hide_flagged && !must_be_accepted)
        return true;
    const struct pin_name pin = {str_from(own->id), kind, name};
    bool is_flagged = own->hide_flagged && (pins_flags(&pin) | (entry ? entry->flags : 0)) != 0;
    return !is_flagged &&
           !(must_be_accepted && pins_is_changed(&pin, entry ? entry->digest : NULL));
}

bool policy_is_visible(const struct policy *policy, const struct config_source *source,
                       struct str tool)
{
    return policy_is_exposed(policy, source, tool) &&
           policy_is_shown(policy, source, DEFINITION_TOOL, tool, NULL);
}

bool policy_is_prompt_visible(const struct policy *policy, const struct config_source *source,
                              struct str prompt, const struct policy_entry *entry)
{
    return policy_is_exposed(policy, source, prompt) &&
           policy_is_shown(policy, source, DEFINITION_PROMPT, prompt, entry);
}

bool policy_is_skill_visible(const struct policy *policy, const struct config_source *source,
                             struct str uri, const struct policy_entry *entry)
{
    return policy_is_shown(policy, source, DEFINITION_SKILL, uri, entry);
}

bool policy_allows_method(const struct policy *policy, struct str method)
{
    size_t position;
    return index_first(policy->methods.index, method, NULL, &position);
}

enum policy_extension policy_extension(const struct policy *policy,
                                       const struct config_source *source, struct str name)
{
    size_t number = policy_number_of(policy, source), position;
    if (number == policy->config->source_count ||
        index_first(policy->sources[number].extensions_deny.index, name, NULL, &position))
        return POLICY_EXTENSION_DENIED;
    return index_first(policy->sources[number].extensions_allow.index, name, NULL, &position)
               ? POLICY_EXTENSION_ALLOWED
               : POLICY_EXTENSION_UNNAMED;
}

/* Arguments that two readers could understand in two ways, where somebody decides by them. */

bool policy_refuses_arguments(const struct policy_request *request,
                              const struct policy_decision *decision, struct error *error)
{
    bool is_judged = decision->action == ACTION_APPROVE || decision->action == ACTION_POLICY;
    bool is_allowed = decision->rule && decision->rule->case_variants == CASE_VARIANTS_ALLOW;
    return is_judged && !is_allowed && request->arguments.length > 0 &&
           fold_finds_variants(request->arguments, error);
}
