/* The configuration as a value: its life, and its lookups. */
#include <stdlib.h>
#include <string.h>

#include "config_private.h"
#include "taskgate/config/config.h"
#include "taskgate/config/definitions.h"
#include "taskgate/config/glob.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/memory.h"

/* The words of definitions. */

static const char *const kinds[DEFINITION_KINDS] = {"tool", "prompt", "skill"};

const char *definition_kind_name(enum definition_kind kind)
{
    ASSERT_NUMBERS(kind, <, DEFINITION_KINDS);
    return kinds[kind];
}

bool definition_kind_parse(struct str name, enum definition_kind *kind)
{
    for (unsigned i = 0; i < DEFINITION_KINDS; i++) {
        if (str_equal(name, str_from(kinds[i]))) {
            *kind = (enum definition_kind)i;
            return true;
        }
    }
    return false;
}

const char *definition_flag_name(enum definition_flag flag)
{
    static const char *const names[DEFINITION_FLAG_COUNT] = {
#define FLAG_ROW(symbol, name, meaning) [FLAG_BIT_##symbol] = (name),
        DEFINITION_FLAGS(FLAG_ROW)
#undef FLAG_ROW
    };
    ASSERT_NUMBERS(flag, <, DEFINITION_FLAG_COUNT);
    return names[flag];
}

static const char *const action_names[] = {
    [ACTION_FORWARD] = "forward",
    [ACTION_APPROVE] = "approve",
    [ACTION_DENY] = "deny",
    [ACTION_POLICY] = "policy",
};

const char *config_action_name(enum config_action action)
{
    ASSERT_NUMBERS(action, <, sizeof action_names / sizeof *action_names);
    return action_names[action];
}

const char *config_risk_name(enum config_risk risk)
{
    static const char *const names[] = {
        [RISK_UNSAID] = NULL, [RISK_LOW] = "low", [RISK_MEDIUM] = "medium", [RISK_HIGH] = "high"};
    ASSERT_NUMBERS(risk, <, sizeof names / sizeof *names);
    return names[risk];
}

const char *config_role_name(enum config_role role)
{
    switch (role) {
    case ROLE_VIEWER:
        return "viewer";
    case ROLE_APPROVER:
        return "approver";
    case ROLE_CALLER:
        return "caller";
    case ROLE_AUDITOR:
        break;
    }
    return "auditor";
}

const char *config_notify_event_name(enum config_notify_event event)
{
    switch (event) {
    case NOTIFY_CREATED:
        return "created";
    case NOTIFY_DECIDED:
        return "decided";
    case NOTIFY_EXPIRED:
        return "expired";
    case NOTIFY_ENDED:
        break;
    case NOTIFY_REMINDED:
        return "reminded";
    case NOTIFY_ESCALATED:
        return "escalated";
    case NOTIFY_VOTED:
        return "voted";
    case NOTIFY_ANCHORED:
        return "anchored";
    }
    return "ended";
}

static const struct str pseudo_tool_names[] = {
#define PSEUDO_TOOL_ROW(symbol, name) {name, sizeof(name) - 1},
#include "taskgate/config/pseudo_tools_table.h"
#undef PSEUDO_TOOL_ROW
};

const char *config_pseudo_tool_name(enum config_pseudo_tool tool)
{
    ASSERT_NUMBERS(tool, <, sizeof pseudo_tool_names / sizeof *pseudo_tool_names);
    return pseudo_tool_names[tool].bytes;
}

enum config_pseudo_tool config_pseudo_tool_find(struct str name)
{
    unsigned i = 0;
    while (i < PSEUDO_TOOL_COUNT && !str_equal(name, pseudo_tool_names[i]))
        i++;
    return (enum config_pseudo_tool)i;
}

bool config_pseudo_offers(const struct config_pseudo *pseudo, enum config_pseudo_tool tool)
{
    bool is_chosen = (pseudo->only & 1U << tool) != 0;
    return pseudo->mode != PSEUDO_NEVER && is_chosen;
}

struct config *config_create(void)
{
    struct config_holder *holder = memory_alloc(sizeof *holder);
    atomic_init(&holder->references, 1);
    return &holder->config;
}

static struct config_holder *config_holder_of(struct config *config)
{
    return (struct config_holder *)(void *)((char *)config -
                                            offsetof(struct config_holder, config));
}

struct config *config_ref(struct config *config)
{
    size_t before =
        atomic_fetch_add_explicit(&config_holder_of(config)->references, 1, memory_order_relaxed);
    ASSERT_NUMBERS(before, >, 0); /* the last reference is gone, and so is the configuration */
    return config;
}

void config_set_memory_limit(struct config *config, int64_t bytes)
{
    config_holder_of(config)->memory_bytes = bytes;
}

int64_t config_memory_limit(const struct config *config)
{
    return config_holder_of((struct config *)config)->memory_bytes;
}

static void finish_strings(struct config_strings *strings)
{
    for (size_t i = 0; i < strings->count; i++)
        free(strings->items[i]);
    free(strings->items);
}

static void finish_secret(char *secret)
{
    if (secret)
        explicit_bzero(secret, strlen(secret));
    free(secret);
}

static void finish_exchange(struct config_exchange *exchange)
{
    finish_secret(exchange->client_secret);
    free(exchange->token_url);
    free(exchange->client_id);
    free(exchange->audience);
    free(exchange->scope);
}

static void finish_source(struct config_source *source)
{
    for (size_t i = 0; i < source->header_count; i++) {
        finish_secret(source->headers[i].value);
        free(source->headers[i].name);
    }
    free(source->headers);
    finish_strings(&source->expose);
    finish_strings(&source->extensions_allow);
    finish_strings(&source->extensions_deny);
    tls_client_unref(source->tls);
    free(source->tls_ca);
    free(source->tls_cert);
    free(source->tls_key);
    free(source->auth.issuer);
    free(source->auth.jwks_url);
    free(source->auth.audience);
    finish_strings(&source->auth.scopes);
    free(source->auth.groups_claim);
    finish_exchange(&source->auth.exchange);
    free(source->id);
    free(source->url);
    free(source->prefix);
    free(source->description);
}

static void finish_tls(struct config_tls *tls)
{
    tls_server_unref(tls->server);
    free(tls->cert);
    free(tls->key);
    free(tls->client_ca);
}

static void finish_rule(struct config_rule *rule)
{
    finish_strings(&rule->sources);
    finish_strings(&rule->subjects);
    finish_strings(&rule->groups);
    free(rule->match);
    free(rule->policy_id);
    free(rule->approval);
    free(rule->description);
    free(rule->immediate_response);
    free(rule->summary);
    free(rule->confirm);
    finish_strings(&rule->highlight);
}

static void finish_workflow(struct config_workflow *workflow)
{
    finish_strings(&workflow->redact_fields);
    finish_strings(&workflow->approver_groups);
    finish_strings(&workflow->approver_people);
    finish_strings(&workflow->emergency_groups);
    finish_strings(&workflow->allow_edit);
    finish_strings(&workflow->grants_vary);
    finish_strings(&workflow->grants_by);
    finish_strings(&workflow->notify);
    finish_strings(&workflow->escalate_notify);
    ballot_terms_finish(&workflow->ballot);
    free(workflow->terms);
    free(workflow->name);
}

static void finish_oidc(struct config_oidc *oidc)
{
    free(oidc->issuer);
    free(oidc->client_id);
    finish_secret(oidc->client_secret);
    free(oidc->groups_claim);
    free(oidc->name_claim);
    finish_strings(&oidc->scopes);
    finish_strings(&oidc->viewers);
    finish_strings(&oidc->approvers);
    finish_strings(&oidc->callers);
    finish_strings(&oidc->auditors);
}

static void finish_operators(struct config *config)
{
    for (size_t i = 0; i < config->person_count; i++) {
        struct config_person *person = &config->people[i];
        finish_strings(&person->groups);
        free(person->name);
        free(person->subject);
        free(person->issuer);
        free(person->email);
        free(person->slack);
        free(person->certificate);
    }
    for (size_t i = 0; i < config->token_count; i++) {
        finish_strings(&config->tokens[i].groups);
        free(config->tokens[i].name);
        free(config->tokens[i].person);
    }
    free(config->people);
    free(config->tokens);
    free(config->public_url);
    finish_oidc(&config->oidc);
}

static void finish_notify(struct config_notify *notify)
{
    finish_secret(notify->url);
    finish_secret(notify->secret);
    finish_secret(notify->signing_secret);
    free(notify->id);
    free(notify->channel);
    free(notify->from);
    free(notify->user);
    finish_strings(&notify->to);
    free(notify->tls_ca);
    tls_client_unref(notify->tls);
    finish_strings(&notify->mention);
    finish_strings(&notify->workflows);
    finish_strings(&notify->destination_of);
}

static void finish_pairs(struct config_pair *pairs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(pairs[i].name);
        finish_secret(pairs[i].value);
    }
    free(pairs);
}

static void finish_telemetry(struct config_telemetry *telemetry)
{
    finish_secret(telemetry->url);
    free(telemetry->origin);
    finish_pairs(telemetry->headers, telemetry->header_count);
    finish_pairs(telemetry->resource, telemetry->resource_count);
    free(telemetry->tls_ca);
    tls_client_unref(telemetry->tls);
}

static void finish_lists(struct config *config)
{
    for (size_t i = 0; i < config->source_count; i++)
        finish_source(&config->sources[i]);
    for (size_t i = 0; i < config->rule_count; i++)
        finish_rule(&config->rules[i]);
    for (size_t i = 0; i < config->workflow_count; i++)
        finish_workflow(&config->workflows[i]);
    for (size_t i = 0; i < config->client_count; i++)
        free(config->clients[i].match);
    for (size_t i = 0; i < config->notify_count; i++)
        finish_notify(&config->notify[i]);
    for (size_t i = 0; i < config->policy_count; i++) {
        free(config->policies[i].name);
        free(config->policies[i].text);
    }
    for (size_t i = 0; i < config->file_count; i++)
        free(config->files[i].path);
    free(config->policies);
    free(config->files);
    free(config->notify);
    free(config->slack.approve_reaction);
    free(config->slack.reject_reaction);
    free(config->slack.channel);
    free(config->sources);
    free(config->rules);
    free(config->workflows);
    free(config->clients);
}

void config_unref(struct config *config)
{
    if (!config)
        return;
    struct config_holder *holder = config_holder_of(config);
    size_t before = atomic_fetch_sub_explicit(&holder->references, 1, memory_order_acq_rel);
    ASSERT_NUMBERS(before, >, 0);
    if (before != 1)
        return;
    finish_lists(config);
    finish_operators(config);
    config_unref(config->shadow);
    free(config->shadow_path);
    for (size_t i = 0; i < holder->client_glob_count; i++)
        glob_destroy(holder->client_globs[i]);
    free(holder->client_globs);
    finish_strings(&config->force_required);
    finish_strings(&config->proxy_allowed_hosts);
    finish_strings(&config->proxy_allowed_origins);
    finish_strings(&config->admin_allowed_hosts);
    finish_strings(&config->admin_allowed_origins);
    finish_strings(&config->methods_allow);
    free(config->methods_allow_at);
    finish_tls(&config->proxy_tls);
    finish_tls(&config->admin_tls);
    signature_key_unref(config->audit.key);
    free(config->audit.key_file);
    finish_strings(&config->audit.anchor_notify);
    finish_telemetry(&config->telemetry);
    free(config->path);
    free(config->store_path);
    finish_secret(config->store_url);
    free(config->store_url_env);
    free(config->replica.id);
    free(config->replica.address);
    free(config->replica.bind);
    finish_secret(config->replica.key);
    free(config->state_key_env);
    free(config->proxy_bind);
    free(config->admin_bind);
    free(config->pseudo.prefix);
    free(holder);
}

static void add_file(struct config_file **files, size_t *count, const char *path,
                     const struct config_file *file)
{
    *files = memory_grow_array(*files, *count + 1, sizeof **files);
    struct config_file *added = &(*files)[(*count)++];
    *added = *file;
    added->path = memory_copy_text(path);
}

void config_add_file(struct config *config, const char *path, const struct config_file *file)
{
    add_file(&config->files, &config->file_count, path, file);
}

void config_add_failed_file(struct config_problems *problems, const char *path,
                            const struct config_file *file)
{
    add_file(&problems->files, &problems->file_count, path, file);
}

void config_compile(struct config *config)
{
    struct config_holder *holder = config_holder_of(config);
    holder->client_globs = memory_alloc_array(config->client_count, sizeof(struct glob *));
    holder->client_glob_count = config->client_count;
    for (size_t i = 0; i < config->client_count; i++)
        holder->client_globs[i] = glob_compile(str_from(config->clients[i].match), NULL);
}

bool config_strings_have(const struct config_strings *strings, const char *text)
{
    for (size_t i = 0; text && i < strings->count; i++) {
        if (strcmp(strings->items[i], text) == 0)
            return true;
    }
    return false;
}

const struct config_source *config_source_find(const struct config *config, struct str id)
{
    for (size_t i = 0; i < config->source_count; i++) {
        if (config->sources[i].id && str_equal(str_from(config->sources[i].id), id))
            return &config->sources[i];
    }
    return NULL;
}

const struct config_workflow *config_workflow_find(const struct config *config, struct str name)
{
    for (size_t i = 0; i < config->workflow_count; i++) {
        if (str_equal(str_from(config->workflows[i].name), name))
            return &config->workflows[i];
    }
    return NULL;
}

const struct config_workflow *config_workflow_of(const struct config *config,
                                                 const struct config_rule *rule)
{
    if (rule && rule->approval)
        return config_workflow_find(config, str_from(rule->approval));
    if (config->workflow_count == 1)
        return &config->workflows[0];
    bool takes_default = !rule || rule->action == ACTION_POLICY;
    return takes_default ? config_workflow_find(config, STR("default")) : NULL;
}

static int64_t config_lesser(int64_t left, int64_t right)
{
    return left < right ? left : right;
}

int64_t config_default_ttl_ms(const struct config *config, const struct config_workflow *workflow)
{
    const struct config_times *times = &config->times;
    int64_t needed_ms = workflow ? workflow->timeout_ms + workflow->valid_for_ms : 0;
    int64_t ttl_ms = times->task_default_ttl_ms;
    return config_lesser(ttl_ms > needed_ms ? ttl_ms : needed_ms, times->task_max_ttl_ms);
}

int64_t config_decide_within_ms(const struct config *config, const struct config_workflow *workflow)
{
    return config_lesser(workflow->timeout_ms, config->times.task_max_ttl_ms);
}

int64_t config_approval_valid_ms(const struct config *config, struct str workflow)
{
    const struct config_workflow *found = config_workflow_find(config, workflow);
    return found ? found->valid_for_ms : config->times.approval_validity_ms;
}

const struct config_person *config_person_find(const struct config *config, const char *name)
{
    for (size_t i = 0; name && i < config->person_count; i++) {
        if (config->people[i].name && strcmp(config->people[i].name, name) == 0)
            return &config->people[i];
    }
    return NULL;
}

const struct config_client *config_client_find(const struct config *config, struct str client_name)
{
    const struct config_holder *holder = config_holder_of((struct config *)config);
    for (size_t i = 0; i < holder->client_glob_count; i++) {
        if (glob_matches(holder->client_globs[i], client_name))
            return &config->clients[i];
    }
    return NULL;
}
