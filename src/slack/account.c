/* Calls to Slack for one token: one after the other, at a pace, with pauses where Slack asks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "slack_internal.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/text.h"
#include "taskgate/notify/channel_key.h"

#define HTTP_TOO_MANY 429
#define PAUSE_MS 60000 /* if Slack asks for one and does not say how long */
#define MOST_PAUSE_MS 3600000
#define RATE_LIMITED "ratelimited" /* Slack's word */

/* ---- life ---- */

static void account_on_timer(void *context)
{
    struct slack_account *account = account_from(context);
    account->step(account);
}

struct slack_account *account_create(struct slack *slack, struct config *config,
                                     const struct config_notify *notify)
{
    struct slack_account *account = memory_alloc(sizeof *account);
    MAGIC_SET(account, ACCOUNT_MAGIC);
    account->slack = slack;
    account->config = config_ref(config);
    account->url = memory_copy_text(notify->url);
    account->token = memory_copy_text(notify->secret);
    account->has_reactions = account->has_history = true;
    loop_timer_init(&account->timer, slack->loop, account_on_timer, account);
    list_append(&slack->accounts, &account->node);
    return account;
}

void account_add_channel(struct slack_account *account, const struct config_notify *notify)
{
    account->channels =
        memory_grow_array(account->channels, account->channel_count + 1, sizeof *account->channels);
    struct slack_channel *channel = &account->channels[account->channel_count++];
    channel->notify = notify;
    channel_key(notify, channel->key);
}

void account_clear_messages(struct slack_account *account)
{
    for (size_t i = 0; i < account->message_count; i++) {
        free(account->messages[i].task_id);
        free(account->messages[i].channel_id);
        free(account->messages[i].ts);
        free(account->messages[i].votes_on);
        free(account->messages[i].seen);
    }
    free(account->messages);
    free(account->cursor);
    account->messages = NULL;
    account->message_count = 0;
    account->cursor = NULL;
}

void account_free(struct slack_account *account)
{
    loop_timer_stop(&account->timer);
    fetch_cancel(account->fetch);
    list_remove(&account->node);
    account_clear_messages(account);
    memory_forget_text(account->token);
    free(account->url);
    free(account->team);
    free(account->app);
    free(account->bot);
    free(account->channels);
    config_unref(account->config);
    MAGIC_CLEAR(account);
    free(account);
}

void account_leave(struct slack_account *account)
{
    ASSERT(!account->is_leaving);
    account->is_leaving = true;
    loop_timer_stop(&account->timer);
    fetch_cancel(account->fetch);
    account->fetch = NULL;
    list_remove(&account->node);
    list_append(&account->slack->leaving, &account->node);
    if (account->pending == 0)
        account_free(account);
}

bool account_settle(struct slack_account *account)
{
    ASSERT_NUMBERS(account->pending, >, 0);
    account->pending--;
    if (account->slack->is_closed)
        return false;
    if (!account->is_leaving)
        return true;
    if (account->pending == 0)
        account_free(account);
    return false;
}

/* ---- answers ---- */

/* Slack's word, in characters that are fit for a log. */
static void note_word(struct slack_answer *answer, struct str word)
{
    OWNED char *text = json_string_text(word, NULL);
    snprintf(answer->problem, sizeof answer->problem, "%s", text ? text : "no answer of Slack's");
    for (char *c = answer->problem; text && *c; c++) {
        bool is_plain = (*c >= 'a' && *c <= 'z') || (*c >= '0' && *c <= '9') || *c == '_';
        if (!is_plain)
            *c = '?';
    }
}

static struct slack_answer account_judge(const struct fetch_answer *fetched)
{
    struct slack_answer answer = {.body = fetched->body};
    bool is_json = fetched->status && json_check(fetched->body, NULL) &&
                   json_type(fetched->body) == JSON_OBJECT;
    bool is_success = fetched->status >= 200 && fetched->status < 300;
    if (fetched->status == HTTP_TOO_MANY)
        snprintf(answer.problem, sizeof answer.problem, RATE_LIMITED);
    else if (!fetched->status)
        snprintf(answer.problem, sizeof answer.problem, "%s", fetched->problem);
    else if (!is_success)
        snprintf(answer.problem, sizeof answer.problem, "HTTP %d", fetched->status);
    else if (is_json && json_type(json_member(fetched->body, "ok")) == JSON_TRUE)
        answer.is_ok = true;
    else
        note_word(&answer, is_json ? json_member(fetched->body, "error") : STR_EMPTY);
    return answer;
}

static bool account_is_limited(const struct slack_answer *answer)
{
    return strcmp(answer->problem, RATE_LIMITED) == 0;
}

static void account_count(const char *method, const struct slack_answer *answer)
{
    struct str outcome = STR("refused");
    if (answer->is_ok)
        outcome = STR("ok");
    else if (account_is_limited(answer))
        outcome = STR("limited");
    metrics_count(METRIC_SLACK_REQUESTS, str_from(method), outcome);
}

/* A line when calls begin to fail and one when a whole round has worked again, not one for each. */
static void account_note_health(struct slack_account *account, const struct slack_answer *answer)
{
    if (answer->is_ok)
        return;
    if (!account->is_failing)
        log_warn("Slack does not answer as it should, and is asked again",
                 LOG_TEXT("method", account->method), LOG_TEXT("reason", answer->problem));
    account->is_failing = account->has_failed = true;
}

void account_end_round(struct slack_account *account)
{
    if (account->is_failing && !account->has_failed)
        log_info("Slack answers again");
    account->is_failing = account->has_failed;
    account->has_failed = false;
}

static void keep_pace(struct slack_account *account, const struct slack_answer *answer,
                      int64_t retry_after_ms)
{
    ASSERT_NUMBERS(account->config->slack.requests_per_second, >, 0);
    int64_t pause_ms = 1000 / account->config->slack.requests_per_second;
    if (account_is_limited(answer))
        pause_ms = retry_after_ms > 0 ? retry_after_ms : PAUSE_MS;
    if (pause_ms > MOST_PAUSE_MS)
        pause_ms = MOST_PAUSE_MS;
    account->next_call_ms = clock_monotonic_ms() + pause_ms;
}

static void on_answer(void *context, const struct fetch_answer *fetched)
{
    struct slack_account *account = account_from(context);
    ASSERT(account->fetch && account->answered);
    struct slack_answer answer = account_judge(fetched);
    account->fetch = NULL;
    keep_pace(account, &answer, fetched->retry_after_ms);
    account_count(account->method, &answer);
    account_note_health(account, &answer);
    account->answered(account, &answer);
}

/* ---- calls ---- */

void account_step_in(struct slack_account *account, int64_t delay_ms,
                     void (*step)(struct slack_account *account))
{
    ASSERT(step && !account->is_leaving);
    int64_t pause_ms = account->next_call_ms - clock_monotonic_ms();
    account->step = step;
    loop_timer_start(&account->timer, delay_ms > pause_ms ? delay_ms : pause_ms);
}

static struct fetch *account_start(struct slack_account *account, const char *url, struct str body,
                                   fetch_callback callback, void *context)
{
    OWNED char *authorization = memory_format("Bearer %s", account->token);
    const struct http_header headers[] = {
        {STR("User-Agent"), STR("taskgate/" TASKGATE_VERSION)},
        {STR("Authorization"), str_from(authorization)},
        {STR("Content-Type"), STR("application/json; charset=utf-8")},
    };
    const struct fetch_request request = {
        .method = body.length > 0 ? "POST" : "GET",
        .url = url,
        .headers = headers,
        .header_count = body.length > 0 ? 3 : 2,
        .body = body,
    };
    struct fetch *fetch =
        fetch_start(account->slack->fetcher, &request, account->slack->loop, callback, context);
    explicit_bzero(authorization, strlen(authorization));
    return fetch;
}

void account_ask(struct slack_account *account, const char *method, struct str query,
                 slack_answered answered)
{
    ASSERT(!account->fetch && answered); /* one call at a time */
    OWNED char *url = memory_format("%s/%s?%.*s", account->url, method, STR_ARGS(query));
    account->method = method;
    account->answered = answered;
    account->fetch = account_start(account, url, STR_EMPTY, on_answer, account);
}

void account_ask_origin(struct slack_account *account, slack_answered answered)
{
    ASSERT(!account->fetch && answered); /* one call at a time */
    OWNED char *url = memory_format("%s/auth.test", account->url);
    account->method = "auth.test";
    account->answered = answered;
    account->fetch = account_start(account, url, STR("{}"), on_answer, account);
}

/* ---- answers to presses ---- */

/* A call that outlives its account. */
struct post {
    const char *method;
};

static void on_posted(void *context, const struct fetch_answer *fetched)
{
    struct post *post = context;
    const struct slack_answer answer = account_judge(fetched);
    account_count(post->method, &answer);
    if (!answer.is_ok)
        log_warn("Slack has refused an answer to a press", LOG_TEXT("method", post->method),
                 LOG_TEXT("reason", answer.problem));
    free(post);
}

void account_post(struct slack_account *account, const char *method, struct buffer *body)
{
    struct post *post = memory_alloc(sizeof *post);
    OWNED char *url = memory_format("%s/%s", account->url, method);
    post->method = method;
    account_start(account, url, buffer_str(body), on_posted, post);
    buffer_finish(body);
}
