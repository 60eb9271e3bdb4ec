/* The accounts that a configuration names, and the answers to presses. */
#include "taskgate/slack/slack.h"
#include "taskgate/core/assert.h"
#include "taskgate/json/text.h"
#include "taskgate/notify/slack_posted.h"

#include <stdlib.h>
#include <string.h>

#include "dialog.h"
#include "reactions.h"
#include "slack_internal.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"

/* ---- reactions, asked for at a pace ---- */

#define MOST_MESSAGES 1000 /* of one channel, in one round; the newest */
#define MOST_CALLS 60      /* of reactions.get, in one round */
#define MOST_PAGES 5       /* of a channel's history, in one round */
#define PAGE_MESSAGES 200  /* as Slack recommends */
#define BUSY_MS 100        /* while votes of the round before are on their way */
#define REFUSED_MS 60000   /* before Slack is asked again for what it has refused */

static void poll_begin(struct slack_account *account);
static void poll_read_next(struct slack_account *account);
static void read_history(struct slack_account *account);

static void end_round(struct slack_account *account)
{
    int64_t left_ms = account->round_ms + account->config->slack.poll_ms - clock_monotonic_ms();
    account_clear_messages(account);
    account_end_round(account);
    account_step_in(account, left_ms > 0 ? left_ms : 0, poll_begin);
}

/* ---- what Slack does not let the token do ---- */

static bool poll_is_refusal(const struct slack_answer *answer)
{
    static const char *const words[] = {"missing_scope", "unknown_method", "no_permission",
                                        "not_allowed_token_type", "HTTP 404"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp(answer->problem, words[i]) == 0)
            return true;
    }
    return false;
}

static bool is_pause(const struct slack_answer *answer)
{
    return strcmp(answer->problem, "ratelimited") == 0;
}

/* ---- what has changed at a message ---- */

/* From the reactions to a message to wishes. A reaction that was passed on is kept as seen. So a
 * vote that was taken back elsewhere is not given again by the reaction that is still there. */

struct change {
    uint32_t magic; /* CHANGE_MAGIC */
    struct slack_account *account;
    char key[DIGEST_HEX_BYTES];
    char *task_id, *votes_on, *channel, *ts, *seen; /* the reactions seen once all is settled */
    size_t waiting;                                 /* wishes, and one while they are passed on */
    bool has_failed;
};
#define CHANGE_MAGIC 0x51ac0003

static struct change *change_from(void *context)
{
    return MAGIC_CAST(struct change, CHANGE_MAGIC, context);
}

static void change_release(struct change *change)
{
    struct slack_account *account = change->account;
    ASSERT_NUMBERS(change->waiting, >, 0);
    if (--change->waiting > 0)
        return;
    if (!change->has_failed && !account->slack->is_closed)
        store_outbox_see(account->slack->store, str_from(change->key), str_from(change->task_id),
                         str_from(change->seen), (struct store_call){.callback = NULL});
    free(change->task_id);
    free(change->votes_on);
    free(change->channel);
    free(change->ts);
    free(change->seen);
    MAGIC_CLEAR(change);
    free(change);
    account_settle(account);
}

static void on_wish(void *context, bool is_settled)
{
    struct change *change = change_from(context);
    change->has_failed = change->has_failed || !is_settled;
    change_release(change);
}

static void change_tell(struct change *change, const char *mark, enum slack_want want)
{
    ASSERT_NUMBERS(change->waiting, >, 0); /* it is still passed on */
    const struct slack *slack = change->account->slack;
    const struct slack_wish wish = {
        .task_id = change->task_id,
        .user = mark + 1,
        .want = want,
        .shown_digest = change->votes_on,
        .channel = change->channel,
        .ts = change->ts,
        .reaction = change->key,
    };
    change->waiting++;
    slack->decider(slack->context, &wish, on_wish, change);
}

/* Whether a reaction of the same person has gone: then the other one counts as if it had come. */
static bool has_changed_mind(const struct ballot_names *seen, const struct ballot_names *marks,
                             const char *mark)
{
    for (size_t i = 0; i < seen->count; i++) {
        if (strcmp(seen->items[i] + 1, mark + 1) == 0 && !ballot_names_has(marks, seen->items[i]))
            return true;
    }
    return false;
}

/* A rejection goes before an approval: who has put both there has not approved. */
static void tell_new(struct change *change, const struct ballot_names *seen,
                     const struct ballot_names *marks, char sign)
{
    for (size_t i = 0; i < marks->count; i++) {
        const char *mark = marks->items[i];
        bool is_new = !ballot_names_has(seen, mark) || has_changed_mind(seen, marks, mark);
        if (*mark == sign && is_new)
            change_tell(change, mark, sign == '+' ? SLACK_APPROVE : SLACK_REJECT);
    }
}

static void tell_gone(struct change *change, const struct ballot_names *seen,
                      const struct ballot_names *marks)
{
    for (size_t i = 0; i < seen->count; i++) {
        if (!ballot_names_has(marks, seen->items[i]))
            change_tell(change, seen->items[i], SLACK_WITHDRAW);
    }
}

static bool change_are_same(const struct ballot_names *left, const struct ballot_names *right)
{
    for (size_t i = 0; i < left->count; i++) {
        if (!ballot_names_has(right, left->items[i]))
            return false;
    }
    return left->count == right->count;
}

/* Tells the decider what `marks` has more, and less, than was seen of the message; then it is seen.
 * `marks` stays the caller's. */
static void change_settle(struct slack_account *account, const struct slack_message *message,
                          const struct ballot_names *marks)
{
    struct ballot_names seen = {NULL, 0};
    reactions_read_marks(&seen, message->seen);
    if (!change_are_same(&seen, marks)) {
        struct change *change = memory_alloc(sizeof *change);
        OWNED_BUFFER(text);
        reactions_write(&text, marks);
        MAGIC_SET(change, CHANGE_MAGIC);
        change->account = account;
        change->task_id = memory_copy_text(message->task_id);
        change->channel = memory_copy_text(message->channel_id);
        change->ts = memory_copy_text(message->ts);
        change->votes_on = memory_copy_text(message->votes_on);
        change->seen = memory_copy_str(buffer_str(&text));
        memcpy(change->key, message->channel->key, sizeof change->key);
        change->waiting = 1;
        account->pending++;
        tell_gone(change, &seen, marks);
        if (message->counts) {
            tell_new(change, &seen, marks, '-');
            tell_new(change, &seen, marks, '+');
        }
        change_release(change);
    }
    ballot_names_finish(&seen);
}

/* ---- one message after the other ---- */

static void poll_settle(struct slack_account *account, struct slack_message *message,
                        struct str reactions, bool is_last_word)
{
    struct ballot_names marks = {NULL, 0};
    bool is_all = reactions_read(&marks, reactions, account->config);
    message->is_read = is_all || is_last_word;
    if (message->is_read)
        change_settle(account, message, &marks);
    ballot_names_finish(&marks);
}

static struct slack_message *unread(struct slack_account *account)
{
    for (; account->at < account->message_count; account->at++) {
        size_t index = (account->turn + account->at) % account->message_count;
        if (!account->messages[index].is_read)
            return &account->messages[index];
    }
    return NULL;
}

static void on_reactions(struct slack_account *account, const struct slack_answer *answer)
{
    struct slack_message *message = unread(account);
    if (is_pause(answer)) {
        account_step_in(account, 0, poll_read_next);
        return;
    }
    if (answer->is_ok)
        poll_settle(account, message, json_path(answer->body, "message", "reactions"), true);
    if (poll_is_refusal(answer)) {
        account->has_reactions = false;
        account->at = 0;
        account_step_in(account, 0, account->has_history ? read_history : end_round);
        return;
    }
    /* A message that was deleted has no reactions any more, and no vote is undone. */
    account->at++;
    account->calls++;
    account_step_in(account, 0, poll_read_next);
}

static void poll_read_next(struct slack_account *account)
{
    struct slack_message *message = account->has_reactions ? unread(account) : NULL;
    if (!message || account->calls >= MOST_CALLS) {
        account->turn += account->at;
        end_round(account);
        return;
    }
    OWNED char *query =
        memory_format("channel=%s&timestamp=%s&full=true", message->channel_id, message->ts);
    account_ask(account, "reactions.get", str_from(query), on_reactions);
}

/* ---- the history of each channel ---- */

/* The channel that is read: that of the first message behind `at` that was not read. */
static const char *channel_at(const struct slack_account *account)
{
    ASSERT_NUMBERS(account->at, <, account->message_count);
    return account->messages[account->at].channel_id;
}

static const char *oldest_of(const struct slack_account *account, const char *channel)
{
    const char *oldest = NULL;
    for (size_t i = 0; i < account->message_count; i++) {
        const struct slack_message *message = &account->messages[i];
        if (message->is_read || strcmp(message->channel_id, channel) != 0)
            continue;
        if (!oldest || strcmp(message->ts, oldest) < 0) /* of one length until the year 2286 */
            oldest = message->ts;
    }
    return oldest;
}

static void poll_read_page(struct slack_account *account, struct str messages)
{
    const char *channel = channel_at(account);
    size_t position = 0;
    struct str item;
    while (json_type(messages) == JSON_ARRAY && json_next_element(messages, &position, &item)) {
        struct str ts = json_member(item, "ts");
        for (size_t i = 0; i < account->message_count; i++) {
            struct slack_message *message = &account->messages[i];
            if (!message->is_read && strcmp(message->channel_id, channel) == 0 &&
                json_string_equals(ts, str_from(message->ts)))
                poll_settle(account, message, json_member(item, "reactions"), false);
        }
    }
}

/* Behind all messages of the channel. */
static void leave_channel(struct slack_account *account)
{
    OWNED char *channel = memory_copy_text(channel_at(account));
    free(account->cursor);
    account->cursor = NULL;
    account->pages = 0;
    while (account->at < account->message_count && strcmp(channel_at(account), channel) == 0)
        account->at++;
}

static void on_history(struct slack_account *account, const struct slack_answer *answer)
{
    if (is_pause(answer)) {
        account_step_in(account, 0, read_history);
        return;
    }
    free(account->cursor);
    account->cursor = NULL;
    if (answer->is_ok) {
        poll_read_page(account, json_member(answer->body, "messages"));
        account->cursor =
            json_string_text(json_path(answer->body, "response_metadata", "next_cursor"), NULL);
    }
    account->has_history = account->has_history && !poll_is_refusal(answer);
    bool has_more = account->cursor && *account->cursor && ++account->pages < MOST_PAGES;
    if (!has_more)
        leave_channel(account);
    account_step_in(account, 0, read_history);
}

static void read_history(struct slack_account *account)
{
    const char *oldest = NULL;
    while (account->has_history && account->at < account->message_count &&
           !(oldest = oldest_of(account, channel_at(account))))
        leave_channel(account);
    if (!oldest) {
        account->at = 0;
        poll_read_next(account);
        return;
    }
    OWNED_BUFFER(query);
    buffer_append_format(&query, "channel=%s&oldest=%s&inclusive=true&limit=%d",
                         channel_at(account), oldest, PAGE_MESSAGES);
    if (account->cursor) {
        buffer_append_text(&query, "&cursor=");
        buffer_append_url_encoded(&query, str_from(account->cursor));
    }
    account_ask(account, "conversations.history", buffer_str(&query), on_history);
}

/* ---- the messages ---- */

static bool poll_is_plain(struct str text)
{
    for (size_t i = 0; i < text.length; i++) {
        char c = text.bytes[i];
        if (!((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || c == '.'))
            return false;
    }
    return text.length > 0;
}

static void add_message(struct slack_account *account, const struct store_message *told)
{
    ASSERT_NUMBERS(account->asked, <, account->channel_count);
    const struct slack_channel *channel = &account->channels[account->asked];
    struct slack_posted posted;
    /* An address has only the characters of Slack's ids. */
    if (!slack_posted_read(told->reference, &posted) || !poll_is_plain(posted.channel) ||
        !poll_is_plain(posted.ts) || str_equal(posted.votes_on, STR(SLACK_VOTES_ON_NOTHING)))
        return;
    account->messages =
        memory_grow_array(account->messages, account->message_count + 1, sizeof *account->messages);
    account->messages[account->message_count++] = (struct slack_message){
        .channel = channel,
        .task_id = memory_copy_text(told->task_id),
        .channel_id = memory_copy_str(posted.channel),
        .ts = memory_copy_str(posted.ts),
        .seen = memory_copy_text(told->seen),
        .votes_on = memory_copy_str(posted.votes_on),
        .counts = slack_posted_counts(&posted, channel->notify),
    };
}

static void begin_reading(struct slack_account *account)
{
    const struct config_slack *slack = &account->config->slack;
    size_t few = (size_t)(slack->poll_ms * slack->requests_per_second / 1000);
    bool are_many = account->message_count > few;
    account->at = account->calls = account->pages = 0;
    if (account->message_count == 0)
        end_round(account);
    else if (account->has_history && (are_many || !account->has_reactions))
        account_step_in(account, 0, read_history);
    else
        account_step_in(account, 0, poll_read_next);
}

static void ask_store(struct slack_account *account);

static void poll_on_messages(void *context, const struct store_reply *reply)
{
    struct slack_account *account = account_from(context);
    if (!account_settle(account))
        return;
    for (size_t i = 0; reply->status == STORE_OK && i < reply->message_count; i++)
        add_message(account, &reply->messages[i]);
    if (++account->asked < account->channel_count)
        ask_store(account);
    else
        begin_reading(account);
}

static void ask_store(struct slack_account *account)
{
    const struct slack *slack = account->slack;
    ASSERT_NUMBERS(account->asked, <, account->channel_count);
    account->pending++;
    store_outbox_messages(slack->store, str_from(account->channels[account->asked].key),
                          MOST_MESSAGES,
                          (struct store_call){slack->loop, poll_on_messages, account});
}

/* ---- rounds ---- */

static bool has_voters(const struct config *config)
{
    for (size_t i = 0; i < config->person_count; i++) {
        if (config->people[i].slack)
            return true;
    }
    return false;
}

/* Slack has refused both: somebody may give the token the scope meanwhile. */
static bool is_refused(struct slack_account *account)
{
    if (account->has_reactions || account->has_history)
        return false;
    log_warn("Slack does not tell reactions, so none is a vote: the bot needs the scope "
             "reactions:read, and must be in the channel");
    account->has_reactions = account->has_history = true;
    account_step_in(account, REFUSED_MS, poll_begin);
    return true;
}

static void start_round(struct slack_account *account)
{
    account->round_ms = clock_monotonic_ms();
    account_clear_messages(account);
    account->asked = 0;
    if (account->pending > 0) {
        account_step_in(account, BUSY_MS, poll_begin);
    } else if (!is_refused(account)) {
        if (store_pending_count(account->slack->store) > 0 && has_voters(account->config))
            ask_store(account);
        else
            end_round(account);
    }
}

static void poll_keep(char **text, struct str value)
{
    free(*text);
    *text = json_string_text(value, NULL);
}

static void on_bot(struct slack_account *account, const struct slack_answer *answer)
{
    if (answer->is_ok)
        poll_keep(&account->app, json_path(answer->body, "bot", "app_id"));
    account_step_in(account, 0, poll_begin);
}

static void ask_bot(struct slack_account *account)
{
    OWNED char *query = memory_format("bot=%s", account->bot);
    account_ask(account, "bots.info", str_from(query), on_bot);
}

static void on_origin(struct slack_account *account, const struct slack_answer *answer)
{
    if (!answer->is_ok) { /* presses need it, reactions do not */
        account_step_in(account, 0, start_round);
        return;
    }
    poll_keep(&account->team, json_member(answer->body, "team_id"));
    poll_keep(&account->app, json_member(answer->body, "app_id"));
    poll_keep(&account->bot, json_member(answer->body, "bot_id"));
    log_info("Slack knows the token", LOG_TEXT("team", account->team),
             LOG_TEXT("bot", account->bot));
    bool may_ask = account->bot && poll_is_plain(str_from(account->bot));
    account_step_in(account, 0, !account->app && may_ask ? ask_bot : poll_begin);
}

static void poll_begin(struct slack_account *account)
{
    if (account->team)
        start_round(account);
    else
        account_ask_origin(account, on_origin);
}

static void poll_start(struct slack_account *account)
{
    account_step_in(account, 0, poll_begin);
}

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
    OWNED char *mark = memory_format("%s %s %s", wish->channel, wish->ts, wish->user);
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
}
