/* Rules about rules and workflows: V-004 … V-007, and refusals of the contract. */
#include <stdlib.h>
#include <string.h>

#include "distance.h"
#include "taskgate/config/duration.h"
#include "taskgate/core/memory.h"
#include "validate.h"

static const char *text_of(const struct node *node)
{
    return node && node->kind == NODE_TEXT ? node->text : "";
}

static void check_workflow(const struct draft *draft, const struct node *node, const char *name)
{
    const struct node *on_timeout = node_get(node, "on_timeout");
    const struct node *blocking = node_get(node, "blocking_timeout");
    char *path = document_join("approval", name);
    if (strcmp(text_of(on_timeout), "approve") == 0) {
        char *key = memory_format("%s.on_timeout", path);
        report_error(&draft->report, on_timeout, key, "write deny, or a longer timeout",
                     "\"approve\" is refused: a call that nobody decided is never executed");
        free(key);
    }
    if (strcmp(text_of(node_get(node, "confirm")), "url") == 0 && !draft->config->public_url) {
        char *key = memory_format("%s.confirm", path);
        report_error(&draft->report, node_get(node, "confirm"), key,
                     "add it, such as public_url: https://gate.example",
                     "the link begins with admin.public_url, which is missing");
        free(key);
    }
    if (blocking) {
        char *key = memory_format("%s.blocking_timeout", path);
        report_warning(&draft->report, blocking, key, NULL, "the key has no effect");
        free(key);
    }
    free(path);
}

/* A task lives no longer than the maximum. A default gives way to that without a word. */
static void check_timeout(const struct draft *draft, const struct node *timeout,
                          const struct config_workflow *workflow)
{
    int64_t longest_ms = draft->config->times.task_max_ttl_ms;
    char longest[64];
    if (node_is_null(timeout) || workflow->timeout_ms <= longest_ms)
        return;
    duration_format(longest_ms, longest);
    char *path = memory_format("approval.%s.timeout", workflow->name);
    report_warning(&draft->report, timeout, path, "set THOUGHTGATE_TASK_MAX_TTL_MS higher",
                   "a task lives for %s at most, and a human has no longer than that", longest);
    free(path);
}

void validate_workflows(const struct draft *draft)
{
    struct config *config = draft->config;
    const struct node *approval = node_get(draft->root, "approval");
    for (size_t i = 0; i < config->workflow_count; i++) {
        if (config->workflows[i].name[0] == '\0')
            report_error(&draft->report, approval->keys[i], "approval", NULL,
                         "a workflow has an empty name");
        if (node_is_null(node_get(approval->values[i], "timeout")))
            config->workflows[i].timeout_ms = config->times.approval_timeout_ms;
        if (node_is_null(node_get(approval->values[i], "valid_for")))
            config->workflows[i].valid_for_ms = config->times.approval_validity_ms;
        check_timeout(draft, node_get(approval->values[i], "timeout"), &config->workflows[i]);
        check_workflow(draft, approval->values[i], config->workflows[i].name);
    }
    if (config->workflow_count > 0)
        return;
    free(config->workflows);
    config->workflows = memory_alloc_array(1, sizeof *config->workflows);
    config->workflow_count = 1;
    config->workflows[0] = (struct config_workflow){
        .name = memory_copy_text("default"),
        .timeout_ms = config->times.approval_timeout_ms,
        .valid_for_ms = config->times.approval_validity_ms,
        .admin_only = true,
    };
}

/* A rule while it is looked at; without one, the default action. */
struct rule_view {
    const struct draft *draft;
    const struct node *node;        /* of the rule, or governance.defaults */
    const struct config_rule *rule; /* or NULL */
    const char *path;               /* "governance.rules[2]" */
};

static void complain_at(const struct rule_view *view, const struct node *node, bool is_warning,
                        const char *key, const char *hint, const char *message)
{
    char *path = memory_format("%s.%s", view->path, key);
    if (is_warning)
        report_warning(&view->draft->report, node, path, hint, "%s", message);
    else
        report_error(&view->draft->report, node, path, hint, "%s", message);
    free(path);
}

/* At `key` of the rule, or at the rule where the key is missing. */
static void complain(const struct rule_view *view, bool is_warning, const char *key,
                     const char *hint, const char *message)
{
    const struct node *node = node_get(view->node, key);
    complain_at(view, node ? node : view->node, is_warning, key, hint, message);
}

/* `message "name"`, with the nearest of the names there are as the hint. */
static void complain_about_name(const struct rule_view *view, const struct node *node,
                                const char *path, const char *message, const char *const *names,
                                size_t count)
{
    char *quoted = report_quote(&view->draft->report, node);
    const char *nearest = distance_nearest(node->text, names, count);
    char *hint = nearest ? memory_format("did you mean \"%s\"?", nearest) : NULL;
    report_error(&view->draft->report, node, path, hint, "%s %s", message, quoted);
    free(hint);
    free(quoted);
}

static void check_rule_sources(const struct rule_view *view)
{
    const struct config *config = view->draft->config;
    const struct node *node = node_get(view->node, "source");
    const char **names = memory_alloc_array(config->source_count, sizeof *names);
    size_t count = 0;
    for (size_t i = 0; i < config->source_count; i++) {
        if (config->sources[i].id)
            names[count++] = config->sources[i].id;
    }
    bool is_list = node && node->kind == NODE_LIST;
    if (is_list && node->count == 0)
        complain(view, false, "source", "leave the key out to match all sources",
                 "the list is empty");
    for (size_t i = 0; node && i < (is_list ? node->count : 1); i++) {
        const struct node *item = is_list ? node->values[i] : node;
        char *path = is_list ? memory_format("%s.source[%zu]", view->path, i)
                             : memory_format("%s.source", view->path);
        bool is_name = item->kind == NODE_TEXT && !node_is_null(item);
        if (is_name && !config_source_find(config, str_from(item->text)))
            complain_about_name(view, item, path, "V-007 undefined source", names, count);
        free(path);
    }
    free((void *)names);
}

/* Lists that let everybody through would not narrow anything. */
static void check_list(const struct rule_view *view, const struct node *list, const char *key)
{
    if (list && (node_is_null(list) || list->count == 0))
        complain_at(view, list, false, key, "list globs, or take the key out", "the list is empty");
}

static bool has_auth(const struct rule_view *view)
{
    const struct config *config = view->draft->config;
    for (size_t i = 0; i < config->source_count; i++) {
        const struct config_source *source = &config->sources[i];
        const struct config_strings *named = &view->rule->sources;
        bool is_for = named->count == 0;
        for (size_t j = 0; j < named->count && source->id; j++)
            is_for = is_for || strcmp(named->items[j], source->id) == 0;
        if (is_for && source->auth.issuer)
            return true;
    }
    return false;
}

static void check_principals(const struct rule_view *view)
{
    const struct node *node = node_get(view->node, "principals");
    if (!node)
        return;
    const struct node *subjects = node_get(node, "subjects"), *groups = node_get(node, "groups");
    if (!subjects && !groups)
        complain(view, false, "principals", "name subjects or groups, or take the key out",
                 "the mapping names nobody");
    check_list(view, subjects, "principals.subjects");
    check_list(view, groups, "principals.groups");
    if (!has_auth(view))
        complain(view, true, "principals", "add auth to a source",
                 "no source of the rule has auth, so it never matches");
}

static void check_rule_workflow(const struct rule_view *view, enum config_action action)
{
    const struct config *config = view->draft->config;
    const char *name = view->rule ? view->rule->approval : NULL;
    bool needs_human = action == ACTION_APPROVE || action == ACTION_POLICY;
    /* A rule that needs a human names its workflow; without a key for the name it is "default". */
    bool is_unnamed = view->rule && action == ACTION_APPROVE && config->workflow_count > 1;
    if (!name && needs_human && (is_unnamed || !config_workflow_of(config, view->rule))) {
        const char *hint =
            view->rule ? "name one as approval: NAME" : "call the one that is meant \"default\"";
        complain(view, false, "action", hint,
                 "V-006b there are several workflows and none is named");
    }
    if (!name || !needs_human || config_workflow_find(config, str_from(name)))
        return;
    const char **names = memory_alloc_array(config->workflow_count, sizeof *names);
    for (size_t i = 0; i < config->workflow_count; i++)
        names[i] = config->workflows[i].name;
    char *path = memory_format("%s.approval", view->path);
    complain_about_name(view, node_get(view->node, "approval"), path, "V-006 undefined workflow",
                        names, config->workflow_count);
    free(path);
    free((void *)names);
}

static void check_action(const struct rule_view *view, enum config_action action)
{
    bool has_policy_id = view->rule && view->rule->policy_id;
    if (!*text_of(node_get(view->node, "action")))
        return;
    if (action == ACTION_POLICY && view->draft->config->policy_count == 0)
        complain(view, true, "action", "name policy files in cedar.policies",
                 "there are no Cedar policies, so every call is rejected");
    if (view->rule && action == ACTION_POLICY && !has_policy_id)
        complain(view, false, "policy_id", "add it", "V-005 missing policy_id for action: policy");
    if (has_policy_id && action != ACTION_POLICY)
        complain(view, true, "policy_id", NULL,
                 "V-004 the key has no effect without action: policy");
    if (view->rule && view->rule->requires_tasks && action == ACTION_DENY)
        complain(view, false, "require_tasks", "take the key out",
                 "the key has no meaning with action: deny, which makes no tasks");
    if (view->rule && action == ACTION_DENY && node_get(view->node, "show"))
        complain(view, true, "show", NULL,
                 "the key has no effect with action: deny, which nobody decides");
    check_rule_workflow(view, action);
}

void validate_rules(const struct draft *draft)
{
    const struct config *config = draft->config;
    const struct node *governance = node_get(draft->root, "governance");
    const struct node *rules = node_get(governance, "rules");
    struct rule_view defaults = {draft, node_get(governance, "defaults"), NULL,
                                 "governance.defaults"};
    if (defaults.node)
        check_action(&defaults, config->default_action);
    for (size_t i = 0; i < config->rule_count; i++) {
        struct config_rule *rule = &config->rules[i];
        char *path = memory_format("governance.rules[%zu]", i);
        struct rule_view view = {draft, rules->values[i], rule, path};
        struct place place = source_text_place(draft->report.source, view.node->start);
        rule->line = place.line;
        rule->column = place.column;
        check_rule_sources(&view);
        check_principals(&view);
        check_action(&view, rule->action);
        free(path);
    }
}
