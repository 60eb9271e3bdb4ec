/* Rules about who decides: a quorum that somebody can fill, by people whom the gateway knows. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "checks.h"
#include "taskgate/config/electorate.h"
#include "taskgate/core/memory.h"
#include "validate.h"

/* A workflow while it is looked at. */
struct view {
    const struct draft *draft;
    const struct node *node;
    struct config_workflow *workflow;
    char *path; /* "approval.NAME" */
};

static void complain(const struct view *view, const struct node *node, bool is_warning,
                     const char *key, const char *hint, const char *message)
{
    char *path = memory_format("%s.%s", view->path, key);
    const struct node *at = node ? node : view->node;
    if (is_warning)
        report_warning(&view->draft->report, at, path, hint, "%s", message);
    else
        report_error(&view->draft->report, at, path, hint, "%s", message);
    free(path);
}

/* ---- reading ---- */

static bool read_count(const struct view *view, const struct node *node, int64_t *count)
{
    bool is_number = node->kind == NODE_TEXT && parse_integer(str_from(node->text), count);
    if (is_number && *count >= 1 && *count <= BALLOT_MOST_PERSONS)
        return true;
    if (is_number && *count == 0)
        complain(view, node, false, "quorum", "write 1 or more",
                 "0: a call that nobody has approved is never executed");
    else
        complain(view, node, false, "quorum", NULL, "must be a whole number from 1 to 100");
    return false;
}

static void read_groups(const struct view *view, const struct node *node)
{
    struct ballot_terms *terms = &view->workflow->ballot;
    int64_t count;
    if (node->count == 0)
        complain(view, node, false, "quorum", "name groups, such as {dba: 1}",
                 "the mapping names no group");
    for (size_t i = 0; i < node->count; i++) {
        if (!*node->keys[i]->text)
            complain(view, node->keys[i], false, "quorum", NULL, "a group has an empty name");
        else if (read_count(view, node->values[i], &count))
            ballot_terms_add_need(terms, node->keys[i]->text, count);
    }
    if (ballot_terms_persons(terms) > BALLOT_MOST_PERSONS)
        complain(view, node, false, "quorum", NULL, "asks for more than 100 persons");
}

static void read_quorum(const struct view *view, const struct node *node)
{
    struct ballot_terms *terms = &view->workflow->ballot;
    if (node_is_null(node))
        return;
    if (node->kind == NODE_MAPPING)
        read_groups(view, node);
    else if (!read_count(view, node, &terms->quorum))
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
    struct buffer text;
    ballot_terms_init(terms);
    add_names(&terms->groups, &workflow->approver_groups);
    add_names(&terms->people, &workflow->approver_people);
    add_names(&terms->emergency, &workflow->emergency_groups);
    terms->approve_needs_reason = workflow->approve_needs_reason;
    terms->reject_needs_reason = workflow->reject_needs_reason;
    terms->typing = workflow->typed;
    read_quorum(view, node_get(view->node, "quorum"));
    add_names(&terms->allow_edit, &workflow->allow_edit);
    take_grants(view);
    buffer_init(&text);
    ballot_terms_write(&text, terms);
    workflow->terms = memory_copy_str(buffer_str(&text));
    buffer_finish(&text);
}

/* ---- rules ---- */

static void check_list(const struct view *view, const struct node *list, const char *key)
{
    if (list && (node_is_null(list) || list->count == 0))
        complain(view, list, false, key, "name somebody, or take the key out", "the list is empty");
}

static void check_approvers(const struct view *view)
{
    const struct config *config = view->draft->config;
    const struct node *approvers = node_get(view->node, "approvers");
    const struct node *people = node_get(approvers, "people");
    const struct config_strings *named = &view->workflow->approver_people;
    if (approvers && !node_get(approvers, "groups") && !people)
        complain(view, approvers, false, "approvers", "name groups or people",
                 "the mapping names nobody");
    check_list(view, node_get(approvers, "groups"), "approvers.groups");
    check_list(view, people, "approvers.people");
    check_list(view, node_get(node_get(view->node, "emergency"), "groups"), "emergency.groups");
    for (size_t i = 0; i < named->count && !electorate_is_open(config); i++) {
        char *message = memory_format("there is no person %s", named->items[i]);
        if (!config_person_find(config, named->items[i]))
            complain(view, people, false, "approvers.people", "add the person to admin.people",
                     message);
        free(message);
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
    struct buffer text;
    if (anybody_will_do) /* the token of the first start, at least */
        return;
    electorate_add(config, &ballot.votes);
    if (!ballot_is_filled(&ballot)) {
        struct ballot_need *missing = ballot_missing(&ballot, &count);
        buffer_init(&text);
        buffer_append_text(&text,
                           "the people and tokens of this file cannot fill it: there are too "
                           "few who may vote, by ");
        append_missing(&text, missing, count);
        buffer_append_char(&text, '\0');
        complain(view, node_get(view->node, key), is_open, key,
                 is_open ? "people who sign in must fill it"
                         : "add people who have tokens with the role approver",
                 text.bytes);
        buffer_finish(&text);
        free(missing);
    }
    ballot_votes_finish(&ballot.votes);
}

static void check_emergency(const struct view *view)
{
    const struct config *config = view->draft->config;
    const struct ballot_terms *terms = &view->workflow->ballot;
    struct ballot_votes votes = {NULL, 0};
    bool is_anybody = terms->emergency.count == 0 || electorate_is_open(config);
    electorate_add(config, &votes);
    for (size_t i = 0; i < votes.count; i++)
        is_anybody = is_anybody || ballot_may_in_emergency(terms, &votes.items[i].person);
    if (!is_anybody)
        complain(view, node_get(view->node, "emergency"), true, "emergency",
                 "put people into these groups", "nobody of this file is in the groups");
    ballot_votes_finish(&votes);
}

static void check_grants(const struct view *view)
{
    const struct config *config = view->draft->config;
    const struct ballot_terms *terms = &view->workflow->ballot;
    const struct node *grants = node_get(view->node, "grants");
    struct ballot_votes votes = {NULL, 0};
    bool is_anybody = terms->grants.by.count == 0 || electorate_is_open(config);
    if (!grants)
        return;
    check_list(view, node_get(grants, "by"), "grants.by");
    if (view->workflow->confirm != CONFIRM_OFF)
        complain(view, grants, false, "grants", "take confirm or grants out",
                 "confirm asks the user about each call, and a grant decides before the answer");
    electorate_add(config, &votes);
    for (size_t i = 0; i < votes.count; i++)
        is_anybody = is_anybody || ballot_may_grant(terms, &votes.items[i].person);
    if (!is_anybody)
        complain(view, node_get(grants, "by"), true, "grants.by",
                 "put people who may vote into these groups",
                 "nobody of this file who may vote is in the groups");
    ballot_votes_finish(&votes);
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
        char *message = memory_format("%s is changed by people who do not see it: redact_fields "
                                      "hides %s",
                                      edit, field);
        complain(view, node_get(view->node, "allow_edit"), true, "allow_edit",
                 "take the path out of one of the lists", message);
        free(message);
    }
}

static void check_edits(const struct view *view)
{
    check_hidden_edits(view);
    if (view->workflow->allow_edit.count > 0 && ballot_terms_persons(&view->workflow->ballot) > 1)
        complain(view, node_get(view->node, "allow_edit"), true, "allow_edit",
                 "ask for one person, or take the key out",
                 "a call that several people must approve cannot be changed");
}

/* Contract "Same person": whose call it is, is known by a verified token alone. */
static void check_owners(const struct view *view)
{
    const struct config *config = view->draft->config;
    if (ballot_terms_persons(&view->workflow->ballot) < 2)
        return;
    for (size_t i = 0; i < config->source_count; i++) {
        const struct config_source *source = &config->sources[i];
        if (!source->enabled || source->auth.issuer || !source->id)
            continue;
        char *message = memory_format("callers of the source %s are not verified, so it cannot be "
                                      "seen whether a person votes on a call of their own",
                                      source->id);
        complain(view, node_get(view->node, "quorum"), true, "quorum", "add auth to the source",
                 message);
        free(message);
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
        struct view view = {draft, node, workflow, document_join("approval", workflow->name)};
        make_terms(&view);
        if (node && !draft->is_shadow) {
            check_approvers(&view);
            check_fillable(&view);
            check_emergency(&view);
            check_grants(&view);
            check_edits(&view);
            check_owners(&view);
        }
        free(view.path);
    }
}
