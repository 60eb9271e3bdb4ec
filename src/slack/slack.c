/* The accounts that a configuration names, and the answers to presses. */
#include "taskgate/slack/slack.h"

#include <stdlib.h>
#include <string.h>

#include "dialog.h"
#include "slack_internal.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"

#define MOST_TOLD 10000 /* reactions whose persons were notified, before all are forgotten */

/* ---- accounts ---- */

static bool slack_is_of(const struct slack_account *account, const struct config_notify *notify)
{
    return notify->type == NOTIFY_SLACK && notify->secret &&
           strcmp(account->url, notify->url) == 0 && strcmp(account->token, notify->secret) == 0;
}

static struct slack_account *slack_find(const struct list *accounts,
                                        const struct config_notify *notify)
{
    LIST_FOR_EACH_SAFE (node, next, accounts) {
        struct slack_account *account = LIST_ENTRY(node, struct slack_account, node);
        if (slack_is_of(account, notify))
            return account;
    }
    return NULL;
}

/* A token keeps its team, app and bot. */
static void take_origin(struct slack_account *account, const struct slack_account *before)
{
    if (!before)
        return;
    account->team = memory_copy_text(before->team);
    account->app = memory_copy_text(before->app);
    account->bot = memory_copy_text(before->bot);
    account->next_call_ms = before->next_call_ms;
}

/* Whether anybody can decide there: else nothing is asked of Slack. */
static bool is_for_deciding(const struct config *config)
{
    bool is_for = false;
    for (size_t i = 0; i < config->notify_count; i++)
        is_for = is_for || config->notify[i].signing_secret;
    for (size_t i = 0; i < config->person_count; i++)
        is_for = is_for || config->people[i].slack;
    return is_for;
}

static bool has_fetcher(struct slack *slack)
{
    struct error error = {""};
    if (!slack->fetcher)
        slack->fetcher = fetcher_create(&error);
    if (!slack->fetcher)
        log_error("Slack cannot be asked", LOG_TEXT("reason", error.message));
    return slack->fetcher != NULL;
}

static void add_endpoint(struct slack *slack, struct config *config,
                         const struct config_notify *notify, const struct list *before)
{
    if (notify->type != NOTIFY_SLACK || !notify->secret || !has_fetcher(slack))
        return;
    struct slack_account *account = slack_find(&slack->accounts, notify);
    if (!account) {
        account = account_create(slack, config, notify);
        take_origin(account, slack_find(before, notify));
        poll_start(account);
    }
    account_add_channel(account, notify);
}

void slack_configure(struct slack *slack, struct config *config)
{
    struct list before;
    list_init(&before);
    LIST_FOR_EACH_SAFE (node, next, &slack->accounts) {
        list_remove(node);
        list_append(&before, node);
    }
    for (size_t i = 0; is_for_deciding(config) && i < config->notify_count; i++)
        add_endpoint(slack, config, &config->notify[i], &before);
    LIST_FOR_EACH_SAFE (node, next, &before)
        account_leave(LIST_ENTRY(node, struct slack_account, node));
}

/* ---- life ---- */

struct slack *slack_create(struct loop *loop, struct store *store, slack_decider decider,
                           void *context)
{
    struct slack *slack = memory_alloc(sizeof *slack);
    MAGIC_SET(slack, SLACK_MAGIC);
    slack->loop = loop;
    slack->store = store;
    slack->decider = decider;
    slack->context = context;
    slack->told = map_create();
    list_init(&slack->accounts);
    list_init(&slack->leaving);
    return slack;
}

void slack_close(struct slack *slack)
{
    slack->is_closed = true;
    LIST_FOR_EACH_SAFE (node, next, &slack->accounts) {
        struct slack_account *account = LIST_ENTRY(node, struct slack_account, node);
        loop_timer_stop(&account->timer);
        fetch_cancel(account->fetch);
        account->fetch = NULL;
    }
}

static void free_all(struct list *accounts)
{
    LIST_FOR_EACH_SAFE (node, next, accounts)
        account_free(LIST_ENTRY(node, struct slack_account, node));
}

void slack_destroy(struct slack *slack)
{
    if (!slack)
        return;
    slack_close(slack);
    map_destroy(slack->told, NULL);
    free_all(&slack->accounts);
    free_all(&slack->leaving);
    fetcher_destroy(slack->fetcher);
    MAGIC_CLEAR(slack);
    free(slack);
}

/* ---- presses ---- */

static bool slack_differ(const char *left, const char *right)
{
    return left && right && strcmp(left, right) != 0;
}

enum slack_origin slack_origin_of(struct slack *slack, const struct config_notify *notify,
                                  const struct slack_press *press)
{
    const struct slack_account *account = slack_find(&slack->accounts, notify);
    if (!account || !account->team)
        return SLACK_ORIGIN_UNKNOWN;
    bool is_foreign = strcmp(account->team, press->team) != 0 ||
                      slack_differ(account->app, press->app) ||
                      slack_differ(account->bot, press->bot);
    return is_foreign ? SLACK_ORIGIN_FOREIGN : SLACK_ORIGIN_OWN;
}

void slack_ask(struct slack *slack, const struct config_notify *notify,
               const struct slack_press *press, const struct slack_asked *asked)
{
    struct slack_account *account = slack_find(&slack->accounts, notify);
    struct buffer body;
    if (!account || !press->trigger)
        return;
    buffer_init(&body);
    dialog_write(&body, press, asked);
    account_post(account, "views.open", &body);
}

void slack_tell(struct slack *slack, const struct config_notify *notify,
                const struct slack_press *press, const char *text)
{
    struct slack_account *account = slack_find(&slack->accounts, notify);
    struct buffer body;
    if (!account)
        return;
    buffer_init(&body);
    dialog_write_line(&body, press->channel, press->user, NULL, text);
    account_post(account, "chat.postEphemeral", &body);
}

static struct slack_account *account_of_channel(struct slack *slack, const char *key)
{
    LIST_FOR_EACH_SAFE (node, next, &slack->accounts) {
        struct slack_account *account = LIST_ENTRY(node, struct slack_account, node);
        for (size_t i = 0; i < account->channel_count; i++) {
            if (strcmp(account->channels[i].key, key) == 0)
                return account;
        }
    }
    return NULL;
}

void slack_tell_reaction(struct slack *slack, const struct slack_wish *wish, const char *text)
{
    struct slack_account *account = account_of_channel(slack, wish->reaction);
    char *mark = memory_format("%s %s %s", wish->channel, wish->ts, wish->user);
    if (account && !map_get(slack->told, str_from(mark))) {
        struct buffer body;
        if (map_count(slack->told) >= MOST_TOLD) {
            map_destroy(slack->told, NULL);
            slack->told = map_create();
        }
        map_put(slack->told, str_from(mark), slack);
        buffer_init(&body);
        dialog_write_line(&body, wish->channel, wish->user, wish->ts, text);
        account_post(account, "chat.postEphemeral", &body);
    }
    free(mark);
}
