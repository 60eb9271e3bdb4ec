/* Rules about operators: distinct people, and tokens that each belong to one of them. */
#include <stdlib.h>
#include <string.h>

#include "checks.h"
#include "config_private.h"
#include "distance.h"
#include "taskgate/config/people.h"
#include "taskgate/core/digest.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "validate.h"

/* Rules about the operators' sign-in: what it needs, and what would keep everybody out. */

#define KEY "admin.oidc"

static void check_scopes(const struct draft *draft, const struct node *oidc)
{
    struct config_strings *scopes = &draft->config->oidc.scopes;
    const struct node *node = node_get(oidc, "scopes");
    if (node_is_null(node)) {
        config_strings_add(scopes, STR("openid"));
        config_strings_add(scopes, STR("profile"));
        config_strings_add(scopes, STR("email"));
    } else if (!config_strings_have(scopes, "openid")) {
        report_error(&draft->report, node, KEY ".scopes", NULL, "openid is missing");
    }
}

static void trim_slashes(char *url)
{
    for (size_t length = url ? strlen(url) : 0; length > 0 && url[length - 1] == '/'; length--)
        url[length - 1] = '\0';
}

/* The subjects of people are their issuer's; without another it is the one of the sign-in. */
static void complete_people(struct config *config)
{
    for (size_t i = 0; i < config->person_count; i++) {
        struct config_person *person = &config->people[i];
        if (person->subject && !person->issuer)
            person->issuer = memory_copy_text(config->oidc.issuer);
    }
}

void validate_oidc(const struct draft *draft)
{
    struct config *config = draft->config;
    const struct config_oidc *roles = &config->oidc;
    const struct node *oidc = node_get(node_get(draft->root, "admin"), "oidc");
    trim_slashes(config->public_url);
    complete_people(config);
    if (!config->oidc.is_on)
        return;
    config->oidc.client_secret =
        validate_secret(draft, node_get(oidc, "client_secret_env"), KEY ".client_secret_env");
    check_scopes(draft, oidc);
    if (!config->public_url)
        report_error(&draft->report, oidc, KEY, "add it, such as public_url: https://gate.example",
                     "the sign-in returns to admin.public_url, which is missing");
    if (roles->viewers.count + roles->approvers.count + roles->callers.count +
            roles->auditors.count ==
        0)
        report_warning(&draft->report, oidc, KEY, "add roles: {approver: [GROUP]}",
                       "no group has a role, so nobody can sign in");
}

#define OWN_TOKEN_VARIABLE "THOUGHTGATE_ADMIN_TOKEN"

/* ---- people ---- */

static bool validate_operators_are_equal(const char *left, const char *right)
{
    return left && right && strcmp(left, right) == 0;
}

static bool are_same_subject(const struct config_person *left, const struct config_person *right)
{
    bool have_same_issuer = validate_operators_are_equal(left->issuer, right->issuer) ||
                            (!left->issuer && !right->issuer);
    return have_same_issuer && validate_operators_are_equal(left->subject, right->subject);
}

/* A key that identifies a person identifies only one. */
static void check_alone(const struct draft *draft, const struct node *node, size_t index)
{
    const struct config_person *people = draft->config->people, *person = &people[index];
    OWNED char *path = memory_format("admin.people[%zu]", index);
    for (size_t i = 0; i < index; i++) {
        const struct config_person *other = &people[i];
        const struct {
            const char *key;
            bool is_taken;
        } keys[] = {
            {"name", validate_operators_are_equal(person->name, other->name)},
            {"subject", are_same_subject(person, other)},
            {"email", person->email && other->email &&
                          str_equal_ignore_case(str_from(person->email), str_from(other->email))},
            {"slack", validate_operators_are_equal(person->slack, other->slack)},
            {"certificate", validate_operators_are_equal(person->certificate, other->certificate)},
        };
        for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
            if (keys[k].is_taken)
                report_error(&draft->report, node_get(node, keys[k].key), path, NULL,
                             "the %s is that of admin.people[%zu] as well", keys[k].key, i);
        }
    }
}

static void check_certificate_of(const struct draft *draft, const struct node *node,
                                 const char *path, const struct config_person *person)
{
    if (person->certificate && !draft->config->admin_tls.client_ca)
        report_warning(&draft->report, node_get(node, "certificate"), path,
                       "add admin.tls.client_ca",
                       "no client is asked for a certificate, the key has no effect");
    else if (person->certificate && person->roles == 0)
        report_warning(&draft->report, node_get(node, "certificate"), path, "add roles",
                       "with the certificate alone the person may do nothing");
    if (!person->certificate && !person->slack && person->roles != 0)
        report_warning(&draft->report, node_get(node, "roles"), path, NULL,
                       "the roles are those of a certificate, which is missing");
}

/* Nobody has a subject of no issuer, or of one that vouches for nobody here. */
static void check_subject_of(const struct draft *draft, const struct node *node, const char *path,
                             const struct config_person *person)
{
    const struct config *config = draft->config;
    bool is_given =
        config->oidc.is_on && validate_operators_are_equal(config->oidc.issuer, person->issuer);
    for (size_t i = 0; i < config->source_count; i++)
        is_given = is_given ||
                   validate_operators_are_equal(config->sources[i].auth.issuer, person->issuer);
    if (!person->subject || is_given)
        return;
    if (person->issuer)
        report_warning(&draft->report, node_get(node, "issuer"), path,
                       "name that of admin.oidc or of the auth of a source",
                       "no agent and no operator shows a token of %s, the subject has no effect",
                       person->issuer);
    else
        report_warning(&draft->report, node_get(node, "subject"), path, "add issuer",
                       "it is not said which issuer gives the subject, it has no effect");
}

static void validate_person(const struct draft *draft, const struct node *node, size_t index)
{
    const struct config_person *person = &draft->config->people[index];
    OWNED char *path = memory_format("admin.people[%zu]", index);
    check_alone(draft, node, index);
    check_certificate_of(draft, node, path, person);
    check_subject_of(draft, node, path, person);
    if (validate_operators_are_equal(person->name, PEOPLE_OWN_NAME))
        report_warning(&draft->report, node_get(node, "name"), path, "choose another name",
                       "decisions by THOUGHTGATE_ADMIN_TOKEN are recorded under this name, too");
}

/* ---- tokens ---- */

/* The secret of `token_env` as the digest that is compared with later. */
static void resolve_token(const struct draft *draft, const struct node *variable, const char *path,
                          struct config_token *token)
{
    const char *secret = draft_variable(draft, variable->text);
    struct error error;
    if (!secret && draft->needs_no_secrets)
        return;
    if (!secret) {
        report_error(&draft->report, variable, path, "set it to the token",
                     "V-014 the environment variable %s is not set",
                     check_shown_variable(variable->text));
    } else if (!check_header_value(str_from(secret), &error) || strchr(secret, ' ')) {
        report_error(&draft->report, variable, path, NULL,
                     "the token in %s holds white space or control characters", variable->text);
    } else {
        if (strlen(secret) < CONFIG_TOKEN_MIN)
            report_warning(&draft->report, variable, path, CONFIG_TOKEN_HINT,
                           "the token in %s is so short that it can be guessed", variable->text);
        digest_sha256_hex(str_from(secret), token->sha256);
    }
}

/* The name alone must identify the holder, because a decision is recorded under one name. */
static void check_person_of(const struct draft *draft, const struct node *node, const char *path,
                            const struct config_token *token)
{
    const struct config *config = draft->config;
    if (token->person && !config_person_find(config, token->person))
        report_error(&draft->report, node_get(node, "person"), path,
                     "add the person to admin.people", "there is no person %s", token->person);
    else if (!token->person && config_person_find(config, token->name))
        report_error(&draft->report, node_get(node, "name"), path,
                     "say whose it is by person, or rename the token",
                     "the token has the name of the person %s", token->name);
    const struct config_person *namesake = config_person_find(config, token->name);
    if (token->person && namesake && strcmp(namesake->name, token->person) != 0)
        report_error(&draft->report, node_get(node, "name"), path, "rename the token",
                     "the token of %s has the name of another person", token->person);
}

/* Two names for one token would give it two kinds of rights. */
static void warn_of_own(const struct draft *draft, const struct node *node, const char *path,
                        const struct config_token *token)
{
    const char *own = draft_variable(draft, OWN_TOKEN_VARIABLE);
    char digest[DIGEST_HEX_BYTES];
    if (!own)
        return;
    digest_sha256_hex(str_from(own), digest);
    if (strcmp(digest, token->sha256) == 0)
        report_warning(&draft->report, node, path, "give each a token of its own",
                       "this is the token of " OWN_TOKEN_VARIABLE
                       ", which has the rights that stand here");
}

static void validate_token(const struct draft *draft, const struct node *node, size_t index)
{
    struct config_token *tokens = draft->config->tokens, *token = &tokens[index];
    const struct node *variable = node_get(node, "token_env");
    const struct node *digest = node_get(node, "token_sha256");
    struct error error;
    OWNED char *path = memory_format("admin.tokens[%zu]", index);
    OWNED char *variable_path = memory_format("%s.token_env", path);
    if (!node_text(variable) == !node_text(digest))
        report_error(&draft->report, node, path, NULL, "needs either token_env or token_sha256");
    else if (node_text(variable) && check_variable_name(str_from(variable->text), &error))
        resolve_token(draft, variable, variable_path, token);
    else if (node_text(digest) && check_sha256(str_from(digest->text), &error)) {
        for (size_t i = 0; digest->text[i]; i++)
            token->sha256[i] = (char)(digest->text[i] | 0x20); /* to lower case */
    }
    for (size_t i = 0; i < index; i++) {
        if (tokens[i].name && token->name && strcmp(tokens[i].name, token->name) == 0)
            report_error(&draft->report, node_get(node, "name"), path,
                         "decisions are recorded under it", "the name is taken by another token");
        if (*token->sha256 && strcmp(tokens[i].sha256, token->sha256) == 0)
            report_error(&draft->report, node, path, "each needs a token of its own",
                         "this is the token of admin.tokens[%zu] as well", i);
    }
    check_person_of(draft, node, path, token);
    warn_of_own(draft, node, path, token);
}

static const struct node *validate_operators_list_of(const struct draft *draft, const char *key)
{
    return node_get(node_get(draft->root, "admin"), key);
}

void validate_operators(const struct draft *draft)
{
    const struct node *people = validate_operators_list_of(draft, "people");
    draft->config->has_own_token =
        draft_variable(draft, OWN_TOKEN_VARIABLE) || draft->config->token_count == 0;
    for (size_t i = 0; i < draft->config->person_count; i++)
        validate_person(draft, people->values[i], i);
    const struct node *tokens = validate_operators_list_of(draft, "tokens");
    for (size_t i = 0; i < draft->config->token_count; i++)
        validate_token(draft, tokens->values[i], i);
}

/* Rules about endpoints: each occurs once, and each has what its type needs and nothing else
 * (V-014). */

static const struct {
    const char *name, *secret, *url;
} types[] = {
    [NOTIFY_WEBHOOK] = {"webhook", "secret_env", NULL},
    [NOTIFY_SLACK] = {"slack", "token_env", "https://slack.com/api"},
    [NOTIFY_TEAMS] = {"teams", NULL, NULL},
    [NOTIFY_PAGERDUTY] = {"pagerduty", "routing_key_env",
                          "https://events.pagerduty.com/v2/enqueue"},
    [NOTIFY_SMTP] = {"smtp", "password_env", NULL},
};

/* Keys that belong to some types alone; that of the secret is in the other table. */
static const struct {
    const char *key;
    enum config_notify_type type;
} own_keys[] = {
    {"secret_env", NOTIFY_WEBHOOK},
    {"token_env", NOTIFY_SLACK},
    {"channel", NOTIFY_SLACK},
    {"mention", NOTIFY_SLACK},
    {"signing_secret_env", NOTIFY_SLACK},
    {"blind_votes", NOTIFY_SLACK},
    {"routing_key_env", NOTIFY_PAGERDUTY},
    {"from", NOTIFY_SMTP},
    {"to", NOTIFY_SMTP},
    {"user", NOTIFY_SMTP},
    {"password_env", NOTIFY_SMTP},
};

static void need(const struct view *view, const char *key)
{
    if (node_is_null(node_get(view->node, key)))
        view_report(view, NULL, false, key, NULL, "the key is missing");
}

static void resolve_secret(const struct view *view, struct config_notify *notify)
{
    const char *key = types[notify->type].secret;
    bool is_optional = notify->type == NOTIFY_SMTP && !notify->user;
    if (!key || (is_optional && node_is_null(node_get(view->node, key))))
        return;
    OWNED char *path = memory_format("%s.%s", view->path, key);
    OWNED char *signing_path = memory_format("%s.signing_secret_env", view->path);
    need(view, key);
    notify->secret = validate_secret(view->draft, node_get(view->node, key), path);
    if (notify->type == NOTIFY_SLACK)
        notify->signing_secret =
            validate_secret(view->draft, node_get(view->node, "signing_secret_env"), signing_path);
}

static void check_mail(const struct view *view, const struct config_notify *notify)
{
    const struct node *to = node_get(view->node, "to");
    need(view, "from");
    need(view, "to");
    if (!node_is_null(to) && to->kind == NODE_LIST && to->count == 0)
        view_report(view, NULL, false, "to", NULL, "the list names nobody");
    if (!notify->user && !node_is_null(node_get(view->node, "password_env")))
        need(view, "user");
}

static void check_keys(const struct view *view, struct config_notify *notify)
{
    for (size_t i = 0; i < sizeof own_keys / sizeof *own_keys; i++) {
        if (own_keys[i].type == notify->type || node_is_null(node_get(view->node, own_keys[i].key)))
            continue;
        view_report(view, NULL, false, own_keys[i].key, NULL, "this key is for the type %s alone",
                    types[own_keys[i].type].name);
    }
    if (notify->type == NOTIFY_SLACK)
        need(view, "channel");
    if (notify->type == NOTIFY_SMTP)
        check_mail(view, notify);
    if (notify->type != NOTIFY_WEBHOOK && !view->draft->config->public_url)
        view_report(view, NULL, false, "type", "set admin.public_url",
                    "the messages link to the page, whose address is not known");
}

static void complete_url(const struct view *view, struct config_notify *notify)
{
    const char *url = types[notify->type].url;
    bool is_given = !node_is_null(node_get(view->node, "url"));
    if (!is_given && url)
        notify->url = memory_copy_text(url);
    else if (!is_given)
        view_report(view, NULL, false, "url", NULL, "V-008 the key is missing");
    if (notify->url && (strncmp(notify->url, "smtp", 4) == 0) != (notify->type == NOTIFY_SMTP))
        view_report(view, NULL, false, "url", NULL, "%s",
                    notify->type == NOTIFY_SMTP
                        ? "V-008 mails are sent to smtp://HOST:PORT or smtps://HOST:PORT"
                        : "V-008 the URL must begin with http:// or https://");
}

static bool are_same_texts(const struct config_strings *one, const struct config_strings *other)
{
    bool are_same = one->count == other->count;
    for (size_t i = 0; are_same && i < one->count; i++)
        are_same = str_same(one->items[i], other->items[i]);
    return are_same;
}

/* Only this identifies an endpoint over restarts and reloads. */
static bool is_same_endpoint(const struct config_notify *one, const struct config_notify *other)
{
    bool by_key = one->type == NOTIFY_PAGERDUTY;
    return one->type == other->type && one->url && str_same(one->url, other->url) &&
           str_same(one->channel, other->channel) && str_same(one->from, other->from) &&
           are_same_texts(&one->to, &other->to) &&
           (!by_key || str_same(one->secret, other->secret));
}

static void check_once(const struct view *view)
{
    const struct config_notify *notify = view->draft->config->notify;
    size_t index = view->index;
    for (size_t i = 0; i < index; i++) {
        bool is_webhook = notify[index].type == NOTIFY_WEBHOOK;
        if (is_same_endpoint(&notify[i], &notify[index]))
            view_report(view, NULL, false, is_webhook ? "url" : "type", "join their events in one",
                        "this is %snotify[%zu] as well", is_webhook ? "the URL of " : "", i);
        if (notify[i].id && str_same(notify[i].id, notify[index].id))
            view_report(view, NULL, false, "id", NULL, "another endpoint has this id as well");
    }
}

void validate_notify(const struct draft *draft)
{
    const struct node *list = node_get(draft->root, "notify");
    for (size_t i = 0; i < draft->config->notify_count; i++) {
        struct config_notify *notify = &draft->config->notify[i];
        OWNED char *path = memory_format("notify[%zu]", i);
        const struct view view = {
            .draft = draft, .node = list->values[i], .path = path, .index = i};
        complete_url(&view, notify);
        resolve_secret(&view, notify);
        check_keys(&view, notify);
        check_once(&view);
        if (node_is_null(node_get(view.node, "events")))
            notify->events = NOTIFY_ALL;
    }
}

/* The endpoints that workflows and anchors name. */

static const struct config_notify *validate_operators_find(const struct config *config,
                                                           const char *id)
{
    for (size_t i = 0; i < config->notify_count; i++) {
        if (config->notify[i].id && strcmp(config->notify[i].id, id) == 0)
            return &config->notify[i];
    }
    return NULL;
}

static void complain_of_id(const struct draft *draft, const struct node *node, const char *path)
{
    const struct config *config = draft->config;
    OWNED const char **ids = memory_alloc_array(config->notify_count, sizeof *ids);
    size_t count = 0;
    for (size_t i = 0; i < config->notify_count; i++) {
        if (config->notify[i].id)
            ids[count++] = config->notify[i].id;
    }
    OWNED char *hint = count > 0 ? distance_suggest(node->text, ids, count, "these are there: ")
                                 : memory_copy_text("give an endpoint of notify this id");
    OWNED char *quoted = report_quote(&draft->report, node);
    report_error(&draft->report, node, path, hint, "no endpoint of notify has the id %s", quoted);
}

/* `list` is the value of the key `path`. */
static void check_ids(const struct draft *draft, const struct node *list, const char *path)
{
    for (size_t i = 0; list && list->kind == NODE_LIST && i < list->count; i++) {
        const struct node *node = list->values[i];
        OWNED char *item = memory_format("%s[%zu]", path, i);
        if (node->kind == NODE_TEXT && !validate_operators_find(draft->config, node->text))
            complain_of_id(draft, node, item);
    }
}

/* A time that never comes while the call waits. */
static void check_time(const struct draft *draft, const struct node *node, const char *path,
                       int64_t after_ms, const struct config_workflow *workflow)
{
    if (after_ms > 0 && after_ms >= config_decide_within_ms(draft->config, workflow))
        report_warning(&draft->report, node, path, "shorten it, or lengthen timeout",
                       "nobody is told: the time to decide is over by then");
}

static void validate_operators_check_workflow(const struct draft *draft, const struct node *node,
                                              const struct config_workflow *workflow)
{
    const struct node *escalate = node_get(node, "escalate");
    OWNED char *base = document_join("approval", workflow->name);
    const struct {
        const char *key;
        const struct node *list;
    } lists[] = {{"notify", node_get(node, "notify")},
                 {"escalate.notify", node_get(escalate, "notify")}};
    const struct {
        const char *key;
        const struct node *time;
        int64_t after_ms;
    } times[] = {{"remind_after", node_get(node, "remind_after"), workflow->remind_after_ms},
                 {"escalate.after", node_get(escalate, "after"), workflow->escalate_after_ms}};
    for (size_t i = 0; i < 2; i++) {
        char *path = memory_format("%s.%s", base, lists[i].key);
        check_ids(draft, lists[i].list, path);
        free(path);
        path = memory_format("%s.%s", base, times[i].key);
        check_time(draft, times[i].time, path, times[i].after_ms, workflow);
        free(path);
    }
}

/* A pager calls people, and an anchor is nobody's call. */
static void check_anchor(const struct draft *draft)
{
    const struct node *anchor = node_get(node_get(draft->root, "audit"), "anchor");
    const struct node *list = node_get(anchor, "notify");
    check_ids(draft, list, "audit.anchor.notify");
    for (size_t i = 0; list && list->kind == NODE_LIST && i < list->count; i++) {
        const struct node *node = list->values[i];
        const struct config_notify *notify =
            node->kind == NODE_TEXT ? validate_operators_find(draft->config, node->text) : NULL;
        OWNED char *path = memory_format("audit.anchor.notify[%zu]", i);
        if (notify && notify->type == NOTIFY_PAGERDUTY)
            report_error(&draft->report, node, path, "name an endpoint of another type",
                         "an anchor needs no person, and a pager would call one");
    }
}

void validate_recipients(const struct draft *draft)
{
    const struct node *approval = node_get(draft->root, "approval");
    for (size_t i = 0; approval && approval->kind == NODE_MAPPING && i < approval->count; i++) {
        if (i < draft->config->workflow_count)
            validate_operators_check_workflow(draft, approval->values[i],
                                              &draft->config->workflows[i]);
    }
    check_anchor(draft);
}

/* Slack: the emoji that vote, and workflows that name it as their destination (V-008, V-014). */

#define SLACK_URL "https://slack.com/api"
#define APPROVE_VARIABLE "THOUGHTGATE_SLACK_APPROVE_REACTION"
#define REJECT_VARIABLE "THOUGHTGATE_SLACK_REJECT_REACTION"

/* The variables of a token whose destination names none, in the order of ThoughtGate. */
static const char *const token_variables[] = {"THOUGHTGATE_SLACK_BOT_TOKEN", "SLACK_BOT_TOKEN"};

/* ---- emoji ---- */

/* Slack sends these under one of their two names. */
static const char *const aliases[][2] = {{"thumbsup", "+1"}, {"thumbsdown", "-1"}};

/* ":thumbsup:" to "+1". */
static void validate_operators_normalize(const struct draft *draft, const char *variable,
                                         char **name)
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
    validate_operators_normalize(draft, APPROVE_VARIABLE, &slack->approve_reaction);
    validate_operators_normalize(draft, REJECT_VARIABLE, &slack->reject_reaction);
    if (strcmp(slack->approve_reaction, slack->reject_reaction) == 0)
        problems_error(draft->report.problems, (struct place){.file = REJECT_VARIABLE}, NULL, NULL,
                       "the emoji that rejects must not be the one that approves");
}

/* ---- destinations ---- */

static void slack_complain(const struct view *view, bool is_warning, const char *key,
                           const char *hint, const char *message)
{
    const struct node *value = node_get(view->node, key);
    view_report(view, node_is_null(value) ? view->node : value, is_warning, key, hint, "%s",
                message);
}

static const char *default_token_variable(const struct draft *draft)
{
    for (size_t i = 0; i < sizeof token_variables / sizeof *token_variables; i++) {
        if (draft_variable(draft, token_variables[i]))
            return token_variables[i];
    }
    return token_variables[0];
}

/* A file of ThoughtGate's loads without Slack's token as well: then the admin endpoint decides. */
static char *validate_operators_find_token(const struct view *view)
{
    const char *named = node_text(node_get(view->node, "token_env"));
    const char *variable = named ? named : default_token_variable(view->draft);
    const char *token = draft_variable(view->draft, variable);
    struct error error;
    if (token && check_header_value(str_from(token), &error))
        return memory_copy_text(token);
    if (view->draft->needs_no_secrets)
        return NULL;
    OWNED char *message =
        token ? memory_format("in the environment variable %s: %s", variable, error.message)
              : memory_format("V-014 the environment variable %s is not set, so nothing is sent to "
                              "Slack; the admin endpoint decides",
                              check_shown_variable(variable));
    slack_complain(view, true, "token_env", "set it to the token of the bot", message);
    return NULL;
}

static void add_mentions(const struct view *view, struct config_notify *notify)
{
    const struct node *list = node_get(view->node, "mention");
    for (size_t i = 0; list && list->kind == NODE_LIST && i < list->count; i++) {
        struct error error;
        const char *id = list->values[i]->kind == NODE_TEXT ? list->values[i]->text : "";
        if (check_slack_id(str_from(id), &error))
            config_strings_add(&notify->mention, str_from(id));
        else
            slack_complain(view, true, "mention", "write ids, such as U012ABCDEF",
                           "only ids of Slack's are mentioned, the others are left out");
    }
}

/* The endpoint that already posts to this channel. */
static struct config_notify *validate_operators_find_endpoint(struct config *config,
                                                              const char *url, const char *channel)
{
    for (size_t i = 0; i < config->notify_count; i++) {
        struct config_notify *notify = &config->notify[i];
        if (notify->type == NOTIFY_SLACK && notify->url && strcmp(notify->url, url) == 0 &&
            notify->channel && strcmp(notify->channel, channel) == 0)
            return notify;
    }
    return NULL;
}

static struct config_notify *validate_operators_add_endpoint(const struct view *view,
                                                             const char *url, const char *channel)
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
    OWNED char *path = memory_format("%s.signing_secret_env", view->path);
    char *signing = validate_secret(view->draft, node_get(view->node, "signing_secret_env"), path);
    is_other = is_other ||
               (notify->signing_secret && signing && strcmp(notify->signing_secret, signing) != 0);
    if (is_other)
        slack_complain(view, false, "channel", "use one app for a channel",
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
    const char *channel = node_text(node_get(view->node, "channel")),
               *url = node_text(node_get(view->node, "url"));
    if (!channel)
        channel = config->slack.channel;
    if (!channel) {
        slack_complain(view, false, "channel", "add it, such as channel: \"#approvals\"",
                       "the key is missing");
        return;
    }
    char *token = validate_operators_find_token(view);
    if (!token && !view->draft->needs_no_secrets)
        return;
    if (!url)
        url = SLACK_URL;
    struct config_notify *notify = validate_operators_find_endpoint(config, url, channel);
    if (!notify)
        notify = validate_operators_add_endpoint(view, url, channel);
    config_strings_add(&notify->destination_of, str_from(view->workflow->name));
    set_secrets(view, notify, token);
    if (!config->public_url && needs_page(view->workflow))
        slack_complain(view, true, "type", "set admin.public_url",
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
        OWNED char *path = memory_format("admin.people[%zu].slack", i);
        report_warning(&draft->report, node_get(people->values[i], "slack"), path,
                       "add an endpoint of the type slack to notify",
                       "no channel in Slack is told of calls, the key has no effect");
    }
}

void validate_slack(const struct draft *draft)
{
    struct config *config = draft->config;
    const struct node *approval = node_get(draft->root, "approval");
    check_reactions(draft);
    /* The workflow `default` is made where the file has none. */
    for (size_t i = 0; approval && i < config->workflow_count && i < approval->count; i++) {
        OWNED char *path = document_join("approval", config->workflows[i].name);
        OWNED char *destination = memory_format("%s.destination", path);
        const struct view view = {
            .draft = draft,
            .node = node_get(approval->values[i], "destination"),
            .workflow = &config->workflows[i],
            .path = destination,
        };
        if (names_slack(view.node))
            add_destination(&view);
    }
    check_people(draft);
}
