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

static void finish_pairs(struct config_pair *pairs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(pairs[i].name);
        memory_forget_text(pairs[i].value);
    }
    free(pairs);
}

/* What the items of lists have beside the values of keys. */
static void finish_items(struct config *config)
{
    for (size_t i = 0; i < config->source_count; i++) {
        struct config_source *source = &config->sources[i];
        for (size_t k = 0; k < source->header_count; k++)
            memory_forget_text(source->headers[k].value);
        memory_forget_text(source->auth.exchange.client_secret);
        tls_client_unref(source->tls);
    }
    for (size_t i = 0; i < config->workflow_count; i++) {
        ballot_terms_finish(&config->workflows[i].ballot);
        free(config->workflows[i].terms);
    }
    for (size_t i = 0; i < config->notify_count; i++) {
        struct config_notify *notify = &config->notify[i];
        memory_forget_text(notify->secret);
        memory_forget_text(notify->signing_secret);
        config_forget_texts(&notify->destination_of);
        tls_client_unref(notify->tls);
    }
    for (size_t i = 0; i < config->policy_count; i++) {
        free(config->policies[i].name);
        free(config->policies[i].text);
    }
    for (size_t i = 0; i < config->file_count; i++)
        free(config->files[i].path);
}

static void config_finish(struct config_holder *holder)
{
    struct config *config = &holder->config;
    finish_items(config);
    read_forget("", config);
    for (size_t i = 0; i < holder->client_glob_count; i++)
        glob_destroy(holder->client_globs[i]);
    free(holder->client_globs);
    config_unref(config->shadow);
    free(config->policies);
    free(config->files);
    free(config->slack.approve_reaction);
    free(config->slack.reject_reaction);
    free(config->slack.channel);
    memory_forget_text(config->oidc.client_secret);
    free(config->methods_allow_at);
    tls_server_unref(config->proxy_tls.server);
    tls_server_unref(config->admin_tls.server);
    signature_key_unref(config->audit.key);
    free(config->telemetry.origin);
    finish_pairs(config->telemetry.headers, config->telemetry.header_count);
    finish_pairs(config->telemetry.resource, config->telemetry.resource_count);
    tls_client_unref(config->telemetry.tls);
    free(config->path);
    memory_forget_text(config->store_url);
    memory_forget_text(config->replica.key);
    free(config->admin_bind);
    free(holder);
}

void config_unref(struct config *config)
{
    if (!config)
        return;
    struct config_holder *holder = config_holder_of(config);
    size_t before = atomic_fetch_sub_explicit(&holder->references, 1, memory_order_acq_rel);
    ASSERT_NUMBERS(before, >, 0);
    if (before == 1)
        config_finish(holder);
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
    ASSERT(!holder->client_globs); /* once */
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
