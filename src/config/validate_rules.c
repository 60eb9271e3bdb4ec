/* Rules about rules and workflows: V-004 … V-007, and what may not be written in one. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "checks.h"
#include "config_private.h"
#include "distance.h"
#include "taskgate/config/duration.h"
#include "taskgate/config/electorate.h"
#include "taskgate/core/map.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "validate.h"

/* The source of Cedar policies: a variable, or the files of the configuration. An unreadable file
 * is an error, because it may have held a forbid. */

#define FILE_VARIABLE "THOUGHTGATE_POLICY_FILE"
#define TEXT_VARIABLE "THOUGHTGATE_POLICIES"
/* The default file of ThoughtGate. */
#define USUAL_FILE "/etc/thoughtgate/policies.cedar"

static void validate_rules_add(const struct draft *draft, const char *name, struct str text)
{
    struct config *config = draft->config;
    config->policies =
        memory_grow_array(config->policies, config->policy_count + 1, sizeof *config->policies);
    config->policies[config->policy_count++] = (struct config_policy_text){
        .name = memory_copy_text(name), .text = memory_copy_str(text), .length = text.length};
}

/* NULL, or why the file cannot be read. */
static const char *validate_rules_add_file(const struct draft *draft, const char *path)
{
    OWNED_BUFFER(text);
    struct config_file file;
    const char *failure = file_read(path, &text, &file) ? NULL : strerror(errno);
    validate_rules_add(draft, path, buffer_str(&text));
    config_add_file(draft->config, path, &file);
    return failure;
}

static void add_file_of_variable(const struct draft *draft, const char *variable, const char *path)
{
    const char *failure = validate_rules_add_file(draft, path);
    if (failure)
        problems_error(draft->report.problems, (struct place){.file = variable}, NULL, NULL,
                       "V-013 the policy file %s cannot be read: %s", path, failure);
}

static const char *validate_rules_look(const char *path)
{
    return access(path, R_OK) == 0 ? NULL : strerror(errno);
}

/* The files of the list must be there even where others win over them, and are not read then. */
static void name_files(const struct draft *draft, const struct node *list, bool others_win)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct node *item = list->values[i];
        if (item->kind != NODE_TEXT || !*item->text)
            continue; /* reported where it was read */
        OWNED char *path = config_path_beside(draft->config->path, item->text);
        const char *failure =
            others_win ? validate_rules_look(path) : validate_rules_add_file(draft, path);
        OWNED char *key = memory_format("cedar.policies[%zu]", i);
        if (failure)
            report_error(&draft->report, item, key, NULL,
                         "V-013 the policy file %s cannot be read: %s", path, failure);
    }
}

/* It says nothing to the gateway, but the file that names it shall be whole. */
static void check_schema(const struct draft *draft, const struct node *node)
{
    if (!node || node->kind != NODE_TEXT || !*node->text)
        return;
    OWNED char *path = config_path_beside(draft->config->path, node->text);
    const char *failure = validate_rules_look(path);
    if (failure)
        report_error(&draft->report, node, "cedar.schema", NULL, "V-013 %s cannot be read: %s",
                     path, failure);
    report_warning(&draft->report, node, "cedar.schema", NULL,
                   "the schema is not read: policies are checked against the entities and "
                   "attributes that the gateway itself makes");
}

/* Only the first existing source counts. A shadow's own files come before the variables, because
 * the variables hold the policies in force, and a shadow is meant to differ. */
void validate_cedar(const struct draft *draft)
{
    const struct node *cedar = node_get(draft->root, "cedar");
    const struct node *list = node_get(cedar, "policies");
    bool has_list = list && list->kind == NODE_LIST && list->count > 0;
    bool is_own = draft->is_shadow && has_list;
    const char *file = is_own ? NULL : draft_variable(draft, FILE_VARIABLE);
    const char *text = is_own ? NULL : draft_variable(draft, TEXT_VARIABLE);
    if (file)
        add_file_of_variable(draft, FILE_VARIABLE, file);
    else if (text)
        validate_rules_add(draft, TEXT_VARIABLE, str_from(text));
    else if (!has_list && access(USUAL_FILE, F_OK) == 0)
        add_file_of_variable(draft, USUAL_FILE, USUAL_FILE);
    if (has_list)
        name_files(draft, list, file || text);
    if (has_list && (file || text))
        report_warning(&draft->report, list, "cedar.policies", NULL,
                       "the files are not read: %s is set and wins",
                       file ? FILE_VARIABLE : TEXT_VARIABLE);
    if (file && text)
        problems_warning(draft->report.problems, (struct place){.file = TEXT_VARIABLE}, NULL, NULL,
                         FILE_VARIABLE " is set as well and wins");
    check_schema(draft, node_get(cedar, "schema"));
}

/* Rules about who decides: a quorum that somebody can fill, by people whom the gateway knows. */

/* ---- reading ---- */

static bool validate_rules_read_count(const struct view *view, const struct node *node,
                                      int64_t *count)
{
    bool is_number = node->kind == NODE_TEXT && parse_integer(str_from(node->text), count);
    if (is_number && *count >= 1 && *count <= BALLOT_MOST_PERSONS)
        return true;
    if (is_number && *count == 0)
        view_report(view, node, false, "quorum", "write 1 or more",
                    "0: a call that nobody has approved is never executed");
    else
        view_report(view, node, false, "quorum", NULL, "must be a whole number from 1 to 100");
    return false;
}

static void validate_rules_read_groups(const struct view *view, const struct node *node)
{
    struct ballot_terms *terms = &view->workflow->ballot;
    int64_t count;
    if (node->count == 0)
        view_report(view, node, false, "quorum", "name groups, such as {dba: 1}",
                    "the mapping names no group");
    for (size_t i = 0; i < node->count; i++) {
        if (!*node->keys[i]->text)
            view_report(view, node->keys[i], false, "quorum", NULL, "a group has an empty name");
        else if (validate_rules_read_count(view, node->values[i], &count))
            ballot_terms_add_need(terms, node->keys[i]->text, count);
    }
    if (ballot_terms_persons(terms) > BALLOT_MOST_PERSONS)
        view_report(view, node, false, "quorum", NULL, "asks for more than 100 persons");
}

static void validate_rules_read_quorum(const struct view *view, const struct node *node)
{
    struct ballot_terms *terms = &view->workflow->ballot;
    if (node_is_null(node))
        return;
    if (node->kind == NODE_MAPPING)
        validate_rules_read_groups(view, node);
    else if (!validate_rules_read_count(view, node, &terms->quorum))
        terms->quorum = 1;
}

static void add_names(struct ballot_names *names, const struct config_strings *strings)
{
    for (size_t i = 0; i < strings->count; i++)
        ballot_names_add(names, strings->items[i]);
}

static void take_grants(const struct view *view)
{
    const struct config_workflow *workflow = view->workflow;
    struct ballot_grants *grants = &view->workflow->ballot.grants;
    grants->are_offered = node_get(view->node, "grants") != NULL;
    grants->max_ms = workflow->grants_max_ms;
    grants->max_calls = workflow->grants_max_calls;
    add_names(&grants->vary, &workflow->grants_vary);
    add_names(&grants->by, &workflow->grants_by);
}

static void make_terms(const struct view *view)
{
    struct config_workflow *workflow = view->workflow;
    struct ballot_terms *terms = &workflow->ballot;
    OWNED_BUFFER(text);
    ballot_terms_init(terms);
    add_names(&terms->groups, &workflow->approver_groups);
    add_names(&terms->people, &workflow->approver_people);
    add_names(&terms->emergency, &workflow->emergency_groups);
    terms->approve_needs_reason = workflow->approve_needs_reason;
    terms->reject_needs_reason = workflow->reject_needs_reason;
    terms->typing = workflow->typed;
    validate_rules_read_quorum(view, node_get(view->node, "quorum"));
    add_names(&terms->allow_edit, &workflow->allow_edit);
    take_grants(view);
    ballot_terms_write(&text, terms);
    workflow->terms = memory_copy_str(buffer_str(&text));
}

/* ---- rules ---- */

static void ballots_check_list(const struct view *view, const struct node *list, const char *key)
{
    if (list && (node_is_null(list) || list->count == 0))
        view_report(view, list, false, key, "name somebody, or take the key out",
                    "the list is empty");
}

static void check_approvers(const struct view *view)
{
    const struct config *config = view->draft->config;
    const struct node *approvers = node_get(view->node, "approvers");
    const struct node *people = node_get(approvers, "people");
    const struct config_strings *named = &view->workflow->approver_people;
    if (approvers && !node_get(approvers, "groups") && !people)
        view_report(view, approvers, false, "approvers", "name groups or people",
                    "the mapping names nobody");
    ballots_check_list(view, node_get(approvers, "groups"), "approvers.groups");
    ballots_check_list(view, people, "approvers.people");
    ballots_check_list(view, node_get(node_get(view->node, "emergency"), "groups"),
                       "emergency.groups");
    for (size_t i = 0; i < named->count && !electorate_is_open(config); i++) {
        if (!config_person_find(config, named->items[i]))
            view_report(view, people, false, "approvers.people", "add the person to admin.people",
                        "there is no person %s", named->items[i]);
    }
}

/* "1 of dba and 2 of security", or "2". */
static void append_missing(struct buffer *text, const struct ballot_need *missing, size_t count)
{
    const char *joint = "";
    for (size_t i = 0; i < count; i++) {
        if (missing[i].count == 0)
            continue;
        buffer_append_format(text, "%s%" PRId64, joint, missing[i].count);
        if (missing[i].group)
            buffer_append_format(text, " of %s", missing[i].group);
        joint = " and ";
    }
}

static void check_fillable(const struct view *view)
{
    const struct config *config = view->draft->config;
    const struct ballot_terms *terms = &view->workflow->ballot;
    bool anybody_will_do =
        terms->quorum == 1 && terms->groups.count == 0 && terms->people.count == 0;
    bool is_open = electorate_is_open(config);
    const char *key = node_get(view->node, "quorum") ? "quorum" : "approvers";
    struct ballot ballot = {.terms = *terms};
    size_t count;
    OWNED_BUFFER(text);
    if (anybody_will_do) /* the token of the first start, at least */
        return;
    electorate_add(config, &ballot.votes);
    if (!ballot_is_filled(&ballot)) {
        OWNED struct ballot_need *missing = ballot_missing(&ballot, &count);
        append_missing(&text, missing, count);
        view_report(view, node_get(view->node, key), is_open, key,
                    is_open ? "people who sign in must fill it"
                            : "add people who have tokens with the role approver",
                    "the people and tokens of this file cannot fill it: there are too few who "
                    "may vote, by %.*s",
                    STR_ARGS(buffer_str(&text)));
    }
    ballot_votes_finish(&ballot.votes);
}

/* Whether somebody of this file may; where people sign in, nobody knows who they are. */
static bool may_anybody(const struct config *config, const struct ballot_terms *terms,
                        bool (*may)(const struct ballot_terms *terms, const struct person *person))
{
    struct ballot_votes votes = {NULL, 0};
    bool is_anybody = electorate_is_open(config);
    electorate_add(config, &votes);
    for (size_t i = 0; i < votes.count; i++)
        is_anybody = is_anybody || may(terms, &votes.items[i].person);
    ballot_votes_finish(&votes);
    return is_anybody;
}

static void check_emergency(const struct view *view)
{
    const struct config *config = view->draft->config;
    const struct ballot_terms *terms = &view->workflow->ballot;
    if (terms->emergency.count > 0 && !may_anybody(config, terms, ballot_may_in_emergency))
        view_report(view, node_get(view->node, "emergency"), true, "emergency",
                    "put people into these groups", "nobody of this file is in the groups");
}

static void check_grants(const struct view *view)
{
    const struct config *config = view->draft->config;
    const struct ballot_terms *terms = &view->workflow->ballot;
    const struct node *grants = node_get(view->node, "grants");
    if (!grants)
        return;
    ballots_check_list(view, node_get(grants, "by"), "grants.by");
    if (view->workflow->confirm != CONFIRM_OFF)
        view_report(view, grants, false, "grants", "take confirm or grants out",
                    "confirm asks the user about each call, and a grant decides before the answer");
    if (terms->grants.by.count > 0 && !may_anybody(config, terms, ballot_may_grant))
        view_report(view, node_get(grants, "by"), true, "grants.by",
                    "put people who may vote into these groups",
                    "nobody of this file who may vote is in the groups");
}

/* Whether one path leads to the other, or to a part of it. */
static bool paths_meet(const char *left, const char *right)
{
    size_t shorter = strlen(left) < strlen(right) ? strlen(left) : strlen(right);
    bool left_ends = left[shorter] == '\0' || left[shorter] == '.';
    bool right_ends = right[shorter] == '\0' || right[shorter] == '.';
    return strncmp(left, right, shorter) == 0 && left_ends && right_ends;
}

static void check_hidden_edits(const struct view *view)
{
    const struct config_strings *edits = &view->workflow->allow_edit;
    const struct config_strings *hidden = &view->workflow->redact_fields;
    for (size_t i = 0; i < edits->count * hidden->count; i++) {
        const char *edit = edits->items[i / hidden->count];
        const char *field = hidden->items[i % hidden->count];
        if (!paths_meet(edit, field))
            continue;
        view_report(view, node_get(view->node, "allow_edit"), true, "allow_edit",
                    "take the path out of one of the lists",
                    "%s is changed by people who do not see it: redact_fields hides %s", edit,
                    field);
    }
}

static void check_edits(const struct view *view)
{
    check_hidden_edits(view);
    if (view->workflow->allow_edit.count > 0 && ballot_terms_persons(&view->workflow->ballot) > 1)
        view_report(view, node_get(view->node, "allow_edit"), true, "allow_edit",
                    "ask for one person, or take the key out",
                    "a call that several people must approve cannot be changed");
}

/* Behaviour 9.6: whose call it is, is known by a verified token alone. */
static void check_owners(const struct view *view)
{
    const struct config *config = view->draft->config;
    if (ballot_terms_persons(&view->workflow->ballot) < 2)
        return;
    for (size_t i = 0; i < config->source_count; i++) {
        const struct config_source *source = &config->sources[i];
        if (!source->enabled || source->auth.issuer || !source->id)
            continue;
        view_report(view, node_get(view->node, "quorum"), true, "quorum", "add auth to the source",
                    "callers of the source %s are not verified, so it cannot be "
                    "seen whether a person votes on a call of their own",
                    source->id);
        return;
    }
}

void validate_ballots(const struct draft *draft)
{
    struct config *config = draft->config;
    const struct node *approval = node_get(draft->root, "approval");
    for (size_t i = 0; i < config->workflow_count; i++) {
        struct config_workflow *workflow = &config->workflows[i];
        const struct node *node = node_get(approval, workflow->name);
        OWNED char *path = document_join("approval", workflow->name);
        const struct view view = {.draft = draft, .node = node, .path = path, .workflow = workflow};
        make_terms(&view);
        if (node && !draft->is_shadow) {
            check_approvers(&view);
            check_fillable(&view);
            check_emergency(&view);
            check_grants(&view);
            check_edits(&view);
            check_owners(&view);
        }
    }
}

static const char *validate_rules_text_of(const struct node *node)
{
    return node && node->kind == NODE_TEXT ? node->text : "";
}

static void validate_rules_check_workflow(const struct draft *draft, const struct node *node,
                                          const char *name)
{
    OWNED char *path = document_join("approval", name);
    const struct view view = {.draft = draft, .node = node, .path = path};
    if (strcmp(validate_rules_text_of(node_get(node, "on_timeout")), "approve") == 0)
        view_report(&view, NULL, false, "on_timeout", "write deny, or a longer timeout",
                    "\"approve\" is refused: a call that nobody decided is never executed");
    if (strcmp(validate_rules_text_of(node_get(node, "confirm")), "url") == 0 &&
        !draft->config->public_url)
        view_report(&view, NULL, false, "confirm",
                    "add it, such as public_url: https://gate.example",
                    "the link begins with admin.public_url, which is missing");
    if (node_get(node, "blocking_timeout"))
        view_report(&view, NULL, true, "blocking_timeout", NULL, "the key has no effect");
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
    OWNED char *path = memory_format("approval.%s.timeout", workflow->name);
    report_warning(&draft->report, timeout, path, "set THOUGHTGATE_TASK_MAX_TTL_MS higher",
                   "a task lives for %s at most, and a human has no longer than that", longest);
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
        validate_rules_check_workflow(draft, approval->values[i], config->workflows[i].name);
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

/* `message "name"`, with the nearest of the names there are as the hint. */
static void complain_about_name(const struct view *view, const struct node *node, const char *key,
                                const char *message, const char *const *names, size_t count)
{
    OWNED char *quoted = report_quote(&view->draft->report, node);
    const char *nearest = distance_nearest(node->text, names, count);
    OWNED char *hint = nearest ? memory_format("did you mean \"%s\"?", nearest) : NULL;
    view_report(view, node, false, key, hint, "%s %s", message, quoted);
}

static void check_rule_sources(const struct view *view)
{
    const struct config *config = view->draft->config;
    const struct node *node = node_get(view->node, "source");
    OWNED const char **names = memory_alloc_array(config->source_count, sizeof *names);
    size_t count = 0;
    for (size_t i = 0; i < config->source_count; i++) {
        if (config->sources[i].id)
            names[count++] = config->sources[i].id;
    }
    bool is_list = node && node->kind == NODE_LIST;
    if (is_list && node->count == 0)
        view_report(view, NULL, false, "source", "leave the key out to match all sources",
                    "the list is empty");
    for (size_t i = 0; node && i < (is_list ? node->count : 1); i++) {
        const struct node *item = is_list ? node->values[i] : node;
        OWNED char *key = is_list ? memory_format("source[%zu]", i) : memory_copy_text("source");
        bool is_name = item->kind == NODE_TEXT && !node_is_null(item);
        if (is_name && !config_source_find(config, str_from(item->text)))
            complain_about_name(view, item, key, "V-007 undefined source", names, count);
    }
}

/* Lists that let everybody through would not narrow anything. */
static void validate_rules_check_list(const struct view *view, const struct node *list,
                                      const char *key)
{
    if (list && (node_is_null(list) || list->count == 0))
        view_report(view, list, false, key, "list globs, or take the key out", "the list is empty");
}

static bool has_auth(const struct view *view)
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

static void check_principals(const struct view *view)
{
    const struct node *node = node_get(view->node, "principals");
    if (!node)
        return;
    const struct node *subjects = node_get(node, "subjects"), *groups = node_get(node, "groups");
    if (!subjects && !groups)
        view_report(view, NULL, false, "principals", "name subjects or groups, or take the key out",
                    "the mapping names nobody");
    validate_rules_check_list(view, subjects, "principals.subjects");
    validate_rules_check_list(view, groups, "principals.groups");
    if (!has_auth(view))
        view_report(view, NULL, true, "principals", "add auth to a source",
                    "no source of the rule has auth, so it never matches");
}

static void check_rule_workflow(const struct view *view, enum config_action action)
{
    const struct config *config = view->draft->config;
    const char *name = view->rule ? view->rule->approval : NULL;
    bool needs_human = action == ACTION_APPROVE || action == ACTION_POLICY;
    /* A rule that needs a human names its workflow; without a key for the name it is "default". */
    bool is_unnamed = view->rule && action == ACTION_APPROVE && config->workflow_count > 1;
    if (!name && needs_human && (is_unnamed || !config_workflow_of(config, view->rule))) {
        const char *hint =
            view->rule ? "name one as approval: NAME" : "call the one that is meant \"default\"";
        view_report(view, NULL, false, "action", hint,
                    "V-006b there are several workflows and none is named");
    }
    if (!name || !needs_human || config_workflow_find(config, str_from(name)))
        return;
    OWNED const char **names = memory_alloc_array(config->workflow_count, sizeof *names);
    for (size_t i = 0; i < config->workflow_count; i++)
        names[i] = config->workflows[i].name;
    complain_about_name(view, node_get(view->node, "approval"), "approval",
                        "V-006 undefined workflow", names, config->workflow_count);
}

static void check_action(const struct view *view, enum config_action action)
{
    bool has_policy_id = view->rule && view->rule->policy_id;
    if (!*validate_rules_text_of(node_get(view->node, "action")))
        return;
    if (action == ACTION_POLICY && view->draft->config->policy_count == 0)
        view_report(view, NULL, true, "action", "name policy files in cedar.policies",
                    "there are no Cedar policies, so every call is rejected");
    if (view->rule && action == ACTION_POLICY && !has_policy_id)
        view_report(view, NULL, false, "policy_id", "add it",
                    "V-005 missing policy_id for action: policy");
    if (has_policy_id && action != ACTION_POLICY)
        view_report(view, NULL, true, "policy_id", NULL,
                    "V-004 the key has no effect without action: policy");
    if (view->rule && view->rule->requires_tasks && action == ACTION_DENY)
        view_report(view, NULL, false, "require_tasks", "take the key out",
                    "the key has no meaning with action: deny, which makes no tasks");
    if (view->rule && action == ACTION_DENY && node_get(view->node, "show"))
        view_report(view, NULL, true, "show", NULL,
                    "the key has no effect with action: deny, which nobody decides");
    check_rule_workflow(view, action);
}

void validate_rules(const struct draft *draft)
{
    const struct config *config = draft->config;
    const struct node *governance = node_get(draft->root, "governance");
    const struct node *rules = node_get(governance, "rules");
    const struct view defaults = {
        .draft = draft, .node = node_get(governance, "defaults"), .path = "governance.defaults"};
    if (defaults.node)
        check_action(&defaults, config->default_action);
    for (size_t i = 0; i < config->rule_count; i++) {
        struct config_rule *rule = &config->rules[i];
        OWNED char *path = memory_format("governance.rules[%zu]", i);
        const struct view view = {
            .draft = draft, .node = rules->values[i], .path = path, .rule = rule};
        struct place place = source_text_place(draft->report.source, view.node->start);
        rule->line = place.line;
        rule->column = place.column;
        check_rule_sources(&view);
        check_principals(&view);
        check_action(&view, rule->action);
    }
}

/* Rules about clients that know no tasks: which of their clocks may be longer than which. */

/* A default gives way to a written value. */
static void order(const struct draft *draft, const char *mapping, const char *low_key,
                  int64_t *low_ms, const char *high_key, int64_t *high_ms)
{
    const struct node *keys = node_get(draft->root, mapping);
    const struct node *low = node_get(keys, low_key), *high = node_get(keys, high_key);
    if (*low_ms <= *high_ms)
        return;
    if (node_is_null(high)) {
        *high_ms = *low_ms;
    } else if (node_is_null(low)) {
        *low_ms = *high_ms;
    } else {
        OWNED char *path = document_join(mapping, high_key);
        report_error(&draft->report, high, path, NULL, "must not be below %s", low_key);
    }
}

void validate_pseudo(const struct draft *draft)
{
    struct config_pseudo *pseudo = &draft->config->pseudo;
    order(draft, "pseudo_tools", "wait", &pseudo->wait_ms, "wait_max", &pseudo->wait_max_ms);
    order(draft, "pseudo_tasks", "defaultTtlMs", &pseudo->default_ttl_ms, "maxTtlMs",
          &pseudo->max_ttl_ms);
}

/* The second configuration, which decides nothing: where it is, and how it fits the first. */

#define KEY "governance.shadow"

static void add_files(struct config *config, const struct config_file *files, size_t count)
{
    for (size_t i = 0; i < count; i++)
        config_add_file(config, files[i].path, &files[i]);
}

/* A source that the shadow does not have permits nothing. */
static void compare_sources(const struct draft *draft, const struct node *node)
{
    const struct config *config = draft->config;
    for (size_t i = 0; i < config->source_count; i++) {
        const char *id = config->sources[i].id;
        if (id && !config_source_find(config->shadow, str_from(id)))
            report_warning(&draft->report, node, KEY, "add the source to the shadow",
                           "the shadow has no source %s, so it hides every call of it", id);
    }
}

static const struct node *shadow_node(const struct draft *draft)
{
    return node_get(node_get(draft->root, "governance"), "shadow");
}

bool validate_shadow_path(const struct draft *draft)
{
    struct config *config = draft->config;
    if (!config->shadow_path)
        return false;
    if (draft->is_shadow) {
        report_error(&draft->report, shadow_node(draft), KEY, "remove the key from this file",
                     "this file is itself a shadow, and a shadow has none of its own");
        return false;
    }
    char *path = config_path_beside(config->path, config->shadow_path);
    free(config->shadow_path);
    config->shadow_path = path;
    return true;
}

void validate_shadow(const struct draft *draft)
{
    struct config *config = draft->config;
    if (config->shadow) {
        add_files(config, config->shadow->files, config->shadow->file_count);
        compare_sources(draft, shadow_node(draft));
    } else {
        add_files(config, draft->shadow_problems->files, draft->shadow_problems->file_count);
    }
}

/* ---- advice ---- */

#define TOKEN_VARIABLE "THOUGHTGATE_ADMIN_TOKEN"
#define URL_VARIABLE "THOUGHTGATE_STORE_URL"

/* ---- rules that are never asked ---- */

static bool matches_everything(const char *glob)
{
    return *glob && strspn(glob, "*") == strlen(glob);
}

/* Whether `first` is for every server that `later` is for. */
static bool covers_sources(const struct config_rule *first, const struct config_rule *later)
{
    if (first->sources.count == 0)
        return true;
    for (size_t i = 0; i < later->sources.count; i++) {
        if (!config_strings_have(&first->sources, later->sources.items[i]))
            return false;
    }
    return later->sources.count > 0;
}

static void warn_of_unreached(const struct draft *draft, size_t index, size_t first)
{
    const struct config *config = draft->config;
    const struct node *rules = node_get(node_get(draft->root, "governance"), "rules");
    OWNED char *path = memory_format("governance.rules[%zu].match", index);
    report_warning(&draft->report, node_get(rules->values[index], "match"), path,
                   "put it before that rule, or take it out",
                   "the rule is never asked: governance.rules[%zu] (\"%s\", line %d) comes first",
                   first, config->rules[first].match, config->rules[first].line);
}

/* A rule stands behind another in vain when that one matches every tool, or the same ones. Globs
 * that overlap otherwise are not compared. */
static void check_reach(const struct draft *draft)
{
    const struct config *config = draft->config;
    struct map *same = map_create(); /* a glob for all servers, to its rule */
    OWNED size_t *catch_all = memory_alloc_array(config->rule_count, sizeof *catch_all);
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
        OWNED char *path = memory_format("governance.rules[%zu].reason", i);
        report_warning(&draft->report, node_get(rules->values[i], "reason"), path, "take it out",
                       "the key has no effect with action: %s", config_action_name(rule->action));
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
    bool has = config->token_count == 0 || draft_variable(draft, TOKEN_VARIABLE) ||
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
    const char *own = draft_variable(draft, TOKEN_VARIABLE);
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
    if (own && strlen(own) < CONFIG_TOKEN_MIN)
        problems_warning(draft->report.problems, (struct place){.file = TOKEN_VARIABLE}, NULL,
                         CONFIG_TOKEN_HINT, "the token is so short that it can be guessed");
}
