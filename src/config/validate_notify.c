/* Rules about endpoints: each occurs once, and each has what its type needs and nothing else
 * (V-014). */
#include <stdlib.h>
#include <string.h>

#include "checks.h"
#include "taskgate/core/memory.h"
#include "validate.h"

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

static void complain(const struct draft *draft, const struct node *item, size_t index,
                     const char *key, const char *hint, const char *what)
{
    const struct node *value = node_get(item, key);
    char *path = memory_format("notify[%zu].%s", index, key);
    report_error(&draft->report, value ? value : item, path, hint, "%s", what);
    free(path);
}

static void need(const struct draft *draft, const struct node *item, size_t index, const char *key)
{
    if (node_is_null(node_get(item, key)))
        complain(draft, item, index, key, NULL, "the key is missing");
}

static void resolve_secret(const struct draft *draft, const struct node *item, size_t index,
                           struct config_notify *notify)
{
    const char *key = types[notify->type].secret;
    bool is_optional = notify->type == NOTIFY_SMTP && !notify->user;
    if (!key || (is_optional && node_is_null(node_get(item, key))))
        return;
    char *path = memory_format("notify[%zu].%s", index, key);
    need(draft, item, index, key);
    notify->secret = validate_secret(draft, node_get(item, key), path);
    free(path);
    if (notify->type != NOTIFY_SLACK)
        return;
    path = memory_format("notify[%zu].signing_secret_env", index);
    notify->signing_secret = validate_secret(draft, node_get(item, "signing_secret_env"), path);
    free(path);
}

static void check_mail(const struct draft *draft, const struct node *item, size_t index,
                       const struct config_notify *notify)
{
    const struct node *to = node_get(item, "to");
    need(draft, item, index, "from");
    need(draft, item, index, "to");
    if (!node_is_null(to) && to->kind == NODE_LIST && to->count == 0)
        complain(draft, item, index, "to", NULL, "the list names nobody");
    if (!notify->user && !node_is_null(node_get(item, "password_env")))
        need(draft, item, index, "user");
}

static void check_keys(const struct draft *draft, const struct node *item, size_t index,
                       struct config_notify *notify)
{
    for (size_t i = 0; i < sizeof own_keys / sizeof *own_keys; i++) {
        if (own_keys[i].type == notify->type || node_is_null(node_get(item, own_keys[i].key)))
            continue;
        char *what =
            memory_format("this key is for the type %s alone", types[own_keys[i].type].name);
        complain(draft, item, index, own_keys[i].key, NULL, what);
        free(what);
    }
    if (notify->type == NOTIFY_SLACK)
        need(draft, item, index, "channel");
    if (notify->type == NOTIFY_SMTP)
        check_mail(draft, item, index, notify);
    if (notify->type != NOTIFY_WEBHOOK && !draft->config->public_url)
        complain(draft, item, index, "type", "set admin.public_url",
                 "the messages link to the page, whose address is not known");
}

static void complete_url(const struct draft *draft, const struct node *item, size_t index,
                         struct config_notify *notify)
{
    const char *url = types[notify->type].url;
    bool is_given = !node_is_null(node_get(item, "url"));
    if (!is_given && url)
        notify->url = memory_copy_text(url);
    else if (!is_given)
        complain(draft, item, index, "url", NULL, "V-008 the key is missing");
    if (notify->url && (strncmp(notify->url, "smtp", 4) == 0) != (notify->type == NOTIFY_SMTP))
        complain(draft, item, index, "url", NULL,
                 notify->type == NOTIFY_SMTP
                     ? "V-008 mails are sent to smtp://HOST:PORT or smtps://HOST:PORT"
                     : "V-008 the URL must begin with http:// or https://");
}

static bool is_same_text(const char *one, const char *other)
{
    return one && other ? strcmp(one, other) == 0 : one == other;
}

static bool are_same_texts(const struct config_strings *one, const struct config_strings *other)
{
    bool are_same = one->count == other->count;
    for (size_t i = 0; are_same && i < one->count; i++)
        are_same = is_same_text(one->items[i], other->items[i]);
    return are_same;
}

/* Only this identifies an endpoint over restarts and reloads. */
static bool is_same_endpoint(const struct config_notify *one, const struct config_notify *other)
{
    bool by_key = one->type == NOTIFY_PAGERDUTY;
    return one->type == other->type && one->url && is_same_text(one->url, other->url) &&
           is_same_text(one->channel, other->channel) && is_same_text(one->from, other->from) &&
           are_same_texts(&one->to, &other->to) &&
           (!by_key || is_same_text(one->secret, other->secret));
}

static void check_once(const struct draft *draft, const struct node *item, size_t index)
{
    const struct config_notify *notify = draft->config->notify;
    for (size_t i = 0; i < index; i++) {
        bool is_webhook = notify[index].type == NOTIFY_WEBHOOK;
        char *what = memory_format(is_webhook ? "this is the URL of notify[%zu] as well"
                                              : "this is notify[%zu] as well",
                                   i);
        if (is_same_endpoint(&notify[i], &notify[index]))
            complain(draft, item, index, is_webhook ? "url" : "type", "join their events in one",
                     what);
        free(what);
        if (notify[i].id && is_same_text(notify[i].id, notify[index].id))
            complain(draft, item, index, "id", NULL, "another endpoint has this id as well");
    }
}

void validate_notify(const struct draft *draft)
{
    const struct node *list = node_get(draft->root, "notify");
    for (size_t i = 0; i < draft->config->notify_count; i++) {
        struct config_notify *notify = &draft->config->notify[i];
        const struct node *item = list->values[i];
        complete_url(draft, item, i, notify);
        resolve_secret(draft, item, i, notify);
        check_keys(draft, item, i, notify);
        check_once(draft, item, i);
        if (node_is_null(node_get(item, "events")))
            notify->events = NOTIFY_ALL;
    }
}
