/* Warnings of what is allowed, and hardly meant: rules that are never asked, nobody who may
 * approve, a token that can be guessed, replicas without a common key. */
#include <stdlib.h>
#include <string.h>

#include "taskgate/core/map.h"
#include "taskgate/core/memory.h"
#include "validate.h"

#define TOKEN_VARIABLE "THOUGHTGATE_ADMIN_TOKEN"
#define URL_VARIABLE "THOUGHTGATE_STORE_URL"

/* ---- rules that are never asked ---- */

static bool matches_everything(const char *glob)
{
    return *glob && strspn(glob, "*") == strlen(glob);
}

static bool has_source(const struct config_strings *sources, const char *id)
{
    for (size_t i = 0; i < sources->count; i++) {
        if (strcmp(sources->items[i], id) == 0)
            return true;
    }
    return false;
}

/* Whether `first` is for every server that `later` is for. */
static bool covers_sources(const struct config_rule *first, const struct config_rule *later)
{
    if (first->sources.count == 0)
        return true;
    for (size_t i = 0; i < later->sources.count; i++) {
        if (!has_source(&first->sources, later->sources.items[i]))
            return false;
    }
    return later->sources.count > 0;
}

static void warn_of_unreached(const struct draft *draft, size_t index, size_t first)
{
    const struct config *config = draft->config;
    const struct node *rules = node_get(node_get(draft->root, "governance"), "rules");
    char *path = memory_format("governance.rules[%zu].match", index);
    report_warning(&draft->report, node_get(rules->values[index], "match"), path,
                   "put it before that rule, or take it out",
                   "the rule is never asked: governance.rules[%zu] (\"%s\", line %d) comes first",
                   first, config->rules[first].match, config->rules[first].line);
    free(path);
}

/* A rule stands behind another in vain when that one matches every tool, or the same ones. Globs
 * that overlap otherwise are not compared. */
static void check_reach(const struct draft *draft)
{
    const struct config *config = draft->config;
    struct map *same = map_create(); /* a glob for all servers, to its rule */
    size_t *catch_all = memory_alloc_array(config->rule_count, sizeof *catch_all);
    size_t catch_all_count = 0;
    for (size_t i = 0; i < config->rule_count; i++) {
        const struct config_rule *rule = &config->rules[i];
        if (!rule->match)
            continue;
        const struct config_rule *first = map_get(same, str_from(rule->match));
        for (size_t j = 0; !first && j < catch_all_count; j++) {
            if (covers_sources(&config->rules[catch_all[j]], rule))
                first = &config->rules[catch_all[j]];
        }
        if (first) {
            warn_of_unreached(draft, i, (size_t)(first - config->rules));
            continue;
        }
        if (rule->has_principals)
            continue;
        if (matches_everything(rule->match))
            catch_all[catch_all_count++] = i;
        if (rule->sources.count == 0)
            map_put(same, str_from(rule->match), &config->rules[i]);
    }
    free(catch_all);
    map_destroy(same, NULL);
}

/* ---- nobody who may approve ---- */

static bool validate_advice_needs_human(enum config_action action)
{
    return action == ACTION_APPROVE || action == ACTION_POLICY;
}

/* Nobody reads the reason of a call that is not held. */
static void check_reasons(const struct draft *draft)
{
    const struct config *config = draft->config;
    const struct node *rules = node_get(node_get(draft->root, "governance"), "rules");
    for (size_t i = 0; i < config->rule_count; i++) {
        const struct config_rule *rule = &config->rules[i];
        if (rule->agent_reason == AGENT_REASON_OFF || validate_advice_needs_human(rule->action))
            continue;
        char *path = memory_format("governance.rules[%zu].reason", i);
        report_warning(&draft->report, node_get(rules->values[i], "reason"), path, "take it out",
                       "the key has no effect with action: %s", config_action_name(rule->action));
        free(path);
    }
}

static bool may_wait(const struct config *config)
{
    bool waits = validate_advice_needs_human(config->default_action);
    for (size_t i = 0; i < config->rule_count; i++)
        waits = waits || validate_advice_needs_human(config->rules[i].action);
    return waits;
}

/* Without any token, one that approves is made at the start. */
static bool has_approver(const struct draft *draft)
{
    const struct config *config = draft->config;
    const char *own = draft->environment(TOKEN_VARIABLE);
    bool has = config->token_count == 0 || (own && *own) ||
               (config->oidc.is_on && config->oidc.approvers.count > 0);
    for (size_t i = 0; i < config->token_count; i++)
        has = has || (config->tokens[i].roles & ROLE_APPROVER);
    for (size_t i = 0; i < config->person_count; i++)
        has = has || (config->people[i].certificate && config->admin_tls.client_ca &&
                      (config->people[i].roles & ROLE_APPROVER));
    return has;
}

/* ---- replicas that cannot read each other's states ---- */

static bool may_serve_modern(const struct config *config)
{
    for (size_t i = 0; i < config->source_count; i++) {
        const struct config_source *source = &config->sources[i];
        if (source->eras != CONFIG_ERA_LEGACY || (source->bridge & BRIDGE_MODERN))
            return true;
    }
    return false;
}

/* Without one key for all, each replica makes one of its own. */
static void check_state_key(const struct draft *draft)
{
    static const char of_clients[] =
        "without state_key each replica has a key of its own, and refuses "
        "the requestState that another one has given a modern client";
    static const char of_operators[] = "without state_key each replica has a key of its own, and "
                                       "refuses a sign-in that has begun at another one";
    static const char hint[] = "give all replicas one key: state_key: {env: VARIABLE}";
    const struct config *config = draft->config;
    const struct node *url = node_get(node_get(draft->root, "store"), "url");
    bool serves_modern = may_serve_modern(config);
    const char *why = serves_modern ? of_clients : of_operators;
    if (!config->store_url || config->state_key_env || (!serves_modern && !config->oidc.is_on))
        return;
    if (node_is_null(url))
        problems_warning(draft->report.problems, (struct place){.file = URL_VARIABLE}, "store.url",
                         hint, "%s", why);
    else
        report_warning(&draft->report, url, "store.url", hint, "%s", why);
}

void validate_advice(const struct draft *draft)
{
    const char *own = draft->environment(TOKEN_VARIABLE);
    const struct node *admin = node_get(draft->root, "admin");
    if (draft->is_shadow)
        return;
    check_reach(draft);
    check_reasons(draft);
    check_state_key(draft);
    if (may_wait(draft->config) && !has_approver(draft) && !draft->needs_no_secrets)
        report_warning(&draft->report, node_get(admin, "tokens"), "admin.tokens",
                       "give one the role approver",
                       "nobody may approve, so every call that needs a human expires");
    if (own && *own && strlen(own) < CONFIG_TOKEN_MIN)
        problems_warning(draft->report.problems, (struct place){.file = TOKEN_VARIABLE}, NULL,
                         CONFIG_TOKEN_HINT, "the token is so short that it can be guessed");
}
