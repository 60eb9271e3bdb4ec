/* Slack: the emoji that vote, and workflows that name it as their destination (V-008, V-014). */
#include <stdlib.h>
#include <string.h>

#include "checks.h"
#include "taskgate/core/memory.h"
#include "validate.h"

#define SLACK_URL "https://slack.com/api"
#define APPROVE_VARIABLE "THOUGHTGATE_SLACK_APPROVE_REACTION"
#define REJECT_VARIABLE "THOUGHTGATE_SLACK_REJECT_REACTION"

/* The variables of a token whose destination names none, in the order of ThoughtGate. */
static const char *const token_variables[] = {"THOUGHTGATE_SLACK_BOT_TOKEN", "SLACK_BOT_TOKEN"};

/* ---- emoji ---- */

/* Slack tells these by one of their two names. */
static const char *const aliases[][2] = {{"thumbsup", "+1"}, {"thumbsdown", "-1"}};

/* ":thumbsup:" to "+1". */
static void normalize(const struct draft *draft, const char *variable, char **name)
{
    struct str text = str_from(*name);
    if (text.length > 2 && text.bytes[0] == ':' && text.bytes[text.length - 1] == ':')
        text = str_slice(text.bytes + 1, text.length - 2);
    char *bare = memory_copy_str(text);
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++) {
        if (strcmp(bare, aliases[i][0]) == 0) {
            free(bare);
            bare = memory_copy_text(aliases[i][1]);
        }
    }
    if (!*bare || strspn(bare, "abcdefghijklmnopqrstuvwxyz0123456789_+'-") != strlen(bare))
        problems_error(draft->report.problems, (struct place){.file = variable}, NULL,
                       "write it as Slack does, such as white_check_mark",
                       "this is not the name of an emoji");
    free(*name);
    *name = bare;
}

static void check_reactions(const struct draft *draft)
{
    struct config_slack *slack = &draft->config->slack;
    normalize(draft, APPROVE_VARIABLE, &slack->approve_reaction);
    normalize(draft, REJECT_VARIABLE, &slack->reject_reaction);
    if (strcmp(slack->approve_reaction, slack->reject_reaction) == 0)
        problems_error(draft->report.problems, (struct place){.file = REJECT_VARIABLE}, NULL, NULL,
                       "the emoji that rejects must not be the one that approves");
}

/* ---- destinations ---- */

/* A destination while it is looked at. */
struct view {
    const struct draft *draft;
    const struct node *node;
    const struct config_workflow *workflow;
    char *path; /* "approval.NAME.destination" */
};

static void complain(const struct view *view, bool is_warning, const char *key, const char *hint,
                     const char *message)
{
    const struct node *value = node_get(view->node, key);
    const struct node *at = node_is_null(value) ? view->node : value;
    char *path = memory_format("%s.%s", view->path, key);
    if (is_warning)
        report_warning(&view->draft->report, at, path, hint, "%s", message);
    else
        report_error(&view->draft->report, at, path, hint, "%s", message);
    free(path);
}

static const char *text_of(const struct view *view, const char *key)
{
    const struct node *value = node_get(view->node, key);
    return value && value->kind == NODE_TEXT && !node_is_null(value) ? value->text : NULL;
}

static const char *default_token_variable(const struct draft *draft)
{
    for (size_t i = 0; i < sizeof token_variables / sizeof *token_variables; i++) {
        const char *value = draft->environment(token_variables[i]);
        if (value && *value)
            return token_variables[i];
    }
    return token_variables[0];
}

/* A file of ThoughtGate's loads without Slack's token as well: then the admin endpoint decides. */
static char *find_token(const struct view *view)
{
    const char *named = text_of(view, "token_env");
    const char *variable = named ? named : default_token_variable(view->draft);
    const char *token = view->draft->environment(variable);
    struct error error;
    if (token && *token && check_header_value(str_from(token), &error))
        return memory_copy_text(token);
    if (view->draft->needs_no_secrets)
        return NULL;
    char *message =
        token && *token
            ? memory_format("in the environment variable %s: %s", variable, error.message)
            : memory_format("V-014 the environment variable %s is not set, so nothing is sent to "
                            "Slack; the admin endpoint decides",
                            check_shown_variable(variable));
    complain(view, true, "token_env", "set it to the token of the bot", message);
    free(message);
    return NULL;
}

static void add_name(struct config_strings *names, const char *name)
{
    names->items = memory_grow_array(names->items, names->count + 1, sizeof *names->items);
    names->items[names->count++] = memory_copy_text(name);
}

static void add_mentions(const struct view *view, struct config_notify *notify)
{
    const struct node *list = node_get(view->node, "mention");
    for (size_t i = 0; list && list->kind == NODE_LIST && i < list->count; i++) {
        struct error error;
        const char *id = list->values[i]->kind == NODE_TEXT ? list->values[i]->text : "";
        if (check_slack_id(str_from(id), &error))
            add_name(&notify->mention, id);
        else
            complain(view, true, "mention", "write ids, such as U012ABCDEF",
                     "only ids of Slack's are mentioned, the others are left out");
    }
}

/* The endpoint that tells this channel already. */
static struct config_notify *find_endpoint(struct config *config, const char *url,
                                           const char *channel)
{
    for (size_t i = 0; i < config->notify_count; i++) {
        struct config_notify *notify = &config->notify[i];
        if (notify->type == NOTIFY_SLACK && notify->url && strcmp(notify->url, url) == 0 &&
            notify->channel && strcmp(notify->channel, channel) == 0)
            return notify;
    }
    return NULL;
}

static struct config_notify *add_endpoint(const struct view *view, const char *url,
                                          const char *channel)
{
    struct config *config = view->draft->config;
    config->notify =
        memory_grow_array(config->notify, config->notify_count + 1, sizeof *config->notify);
    struct config_notify *notify = &config->notify[config->notify_count++];
    *notify = (struct config_notify){
        .type = NOTIFY_SLACK,
        .url = memory_copy_text(url),
        .channel = memory_copy_text(channel),
        .events = NOTIFY_ALL,
        .include_arguments = true,
        .is_destination = true,
    };
    add_mentions(view, notify);
    return notify;
}

/* `token` is taken over. */
static void set_secrets(const struct view *view, struct config_notify *notify, char *token)
{
    bool is_other = notify->secret && token && strcmp(notify->secret, token) != 0;
    char *path = memory_format("%s.signing_secret_env", view->path);
    char *signing = validate_secret(view->draft, node_get(view->node, "signing_secret_env"), path);
    is_other = is_other ||
               (notify->signing_secret && signing && strcmp(notify->signing_secret, signing) != 0);
    if (is_other)
        complain(view, false, "channel", "use one app for a channel",
                 "the channel is told with other secrets as well");
    if (!notify->secret) {
        notify->secret = token;
        token = NULL;
    }
    if (!notify->signing_secret) {
        notify->signing_secret = signing;
        signing = NULL;
    }
    free(token);
    free(signing);
    free(path);
}

/* A reason, and other arguments, are given on the page alone. */
static bool needs_page(const struct config_workflow *workflow)
{
    return workflow->approve_needs_reason || workflow->reject_needs_reason ||
           workflow->allow_edit.count > 0;
}

static void add_destination(const struct view *view)
{
    struct config *config = view->draft->config;
    const char *channel = text_of(view, "channel"), *url = text_of(view, "url");
    if (!channel)
        channel = config->slack.channel;
    if (!channel) {
        complain(view, false, "channel", "add it, such as channel: \"#approvals\"",
                 "the key is missing");
        return;
    }
    char *token = find_token(view);
    if (!token && !view->draft->needs_no_secrets)
        return;
    if (!url)
        url = SLACK_URL;
    struct config_notify *notify = find_endpoint(config, url, channel);
    if (!notify)
        notify = add_endpoint(view, url, channel);
    add_name(&notify->destination_of, view->workflow->name);
    set_secrets(view, notify, token);
    if (!config->public_url && needs_page(view->workflow))
        complain(view, true, "type", "set admin.public_url",
                 "the messages have no link to the page, whose address is not known");
}

static bool names_slack(const struct node *destination)
{
    const struct node *type = node_get(destination, "type");
    return type && type->kind == NODE_TEXT && strcmp(type->text, "slack") == 0;
}

/* ---- people ---- */

static bool has_slack(const struct config *config)
{
    for (size_t i = 0; i < config->notify_count; i++) {
        if (config->notify[i].type == NOTIFY_SLACK)
            return true;
    }
    return false;
}

static void check_people(const struct draft *draft)
{
    const struct node *people = node_get(node_get(draft->root, "admin"), "people");
    for (size_t i = 0; i < draft->config->person_count && !has_slack(draft->config); i++) {
        if (!draft->config->people[i].slack)
            continue;
        char *path = memory_format("admin.people[%zu].slack", i);
        report_warning(&draft->report, node_get(people->values[i], "slack"), path,
                       "add an endpoint of the type slack to notify",
                       "no channel in Slack is told of calls, the key has no effect");
        free(path);
    }
}

void validate_slack(const struct draft *draft)
{
    struct config *config = draft->config;
    const struct node *approval = node_get(draft->root, "approval");
    check_reactions(draft);
    /* The workflow `default` is made where the file has none. */
    for (size_t i = 0; approval && i < config->workflow_count && i < approval->count; i++) {
        char *path = document_join("approval", config->workflows[i].name);
        const struct view view = {
            .draft = draft,
            .node = node_get(approval->values[i], "destination"),
            .workflow = &config->workflows[i],
            .path = memory_format("%s.destination", path),
        };
        if (names_slack(view.node))
            add_destination(&view);
        free(view.path);
        free(path);
    }
    check_people(draft);
}
