/* Messages: blocks, the text of notifications beside them, and references. */
#include "slack_message.h"

#include <stdio.h>

#include "channel_text.h"
#include "taskgate/config/electorate.h"
#include "taskgate/core/digest.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/members.h"
#include "taskgate/json/text.h"
#include "taskgate/notify/redact.h"
#include "taskgate/notify/slack_posted.h"
#include "taskgate/notify/typed.h"

#define TITLE_MAX_BYTES 1000
#define FACTS_MAX_BYTES 2900 /* a text of Slack's has 3,000 characters */
#define SLACK_NO_APP "-"
#define BLIND_HINT "This message does not show the whole call. Open the call to decide."

/* ---- blocks ---- */

/* The line that Slack formats: it has nothing but what the gateway and the configuration say. */
static void slack_message_write_line(struct buffer *out, const struct store_delivery *delivery,
                                     const struct config_notify *notify,
                                     const struct config *config)
{
    const struct task *task = delivery->task;
    bool calls = task->state == TASK_PENDING && delivery->event != NOTIFY_VOTED;
    for (size_t i = 0; calls && i < notify->mention.count; i++) {
        const char *id = notify->mention.items[i];
        buffer_append_format(out, *id == 'S' ? "<!subteam^%s> " : "<@%s> ", id);
    }
    buffer_append_format(out, "*%s*", channel_text_word(delivery));
    if (config->public_url)
        buffer_append_format(out, "  <%s/#task=%s|Open the call>", config->public_url, task->id);
}

/* Slack's three characters: with them gone nothing in a text is an order to it. */
static void slack_message_append_escaped(struct buffer *out, struct str text)
{
    for (size_t i = 0; i < text.length; i++) {
        char c = text.bytes[i];
        if (c == '&')
            buffer_append_text(out, "&amp;");
        else if (c == '<' || c == '>')
            buffer_append_text(out, c == '<' ? "&lt;" : "&gt;");
        else
            buffer_append_char(out, c);
    }
}

/* ---- how one decides there ---- */

static bool may_anybody_vote(const struct config *config)
{
    for (size_t i = 0; i < config->person_count; i++) {
        if (electorate_may_in_slack(config, &config->people[i]))
            return true;
    }
    return false;
}

/* A reaction has no reason: where one is required, it does not count. */
static void write_hint(struct buffer *out, const struct task *task, const struct config *config)
{
    const struct config_workflow *workflow = config_workflow_find(config, str_from(task->workflow));
    const struct config_slack *slack = &config->slack;
    bool is_typed = typed_is_asked(task);
    bool approves = workflow && !workflow->approve_needs_reason && !is_typed;
    bool rejects = workflow && !workflow->reject_needs_reason;
    if (approves && rejects)
        buffer_append_format(out, "React with :%s: to approve, or with :%s: to reject.",
                             slack->approve_reaction, slack->reject_reaction);
    else if (approves)
        buffer_append_format(out,
                             "React with :%s: to approve. A rejection needs a reason, so no "
                             "reaction rejects.",
                             slack->approve_reaction);
    else if (rejects && is_typed)
        buffer_append_format(out,
                             "React with :%s: to reject. An approval needs a typed value, so no "
                             "reaction approves.",
                             slack->reject_reaction);
    else if (rejects)
        buffer_append_format(out,
                             "React with :%s: to reject. An approval needs a reason, so no "
                             "reaction approves.",
                             slack->reject_reaction);
    else
        buffer_append_text(out, "A decision needs a reason, so no reaction counts.");
}

/* That of a request with hidden values would tell them to whoever tries all: it is keyed. */
static void append_digest(struct buffer *out, const struct task *task, const struct config *config)
{
    char keyed[DIGEST_HEX_BYTES];
    bool may_tell = redact_may_hide(config, task->workflow);
    if (may_tell)
        digest_keyed_hex(task->request_digest, keyed);
    buffer_append_format(out, " %s", may_tell ? keyed : task->request_digest);
}

static void write_button(struct buffer *out, const char *label, const char *style,
                         const char *action, const struct task *task, const struct config *config)
{
    buffer_append_text(out, "{\"type\":\"button\",\"text\":{\"type\":\"plain_text\"");
    json_add_text(out, "text", label);
    buffer_append_char(out, '}');
    json_add_text(out, "style", style);
    json_add_text(out, "action_id", action);
    OWNED_BUFFER(value);
    buffer_append_text(&value, task->id);
    if (*task->request_digest)
        append_digest(&value, task, config);
    json_add_str(out, "value", buffer_str(&value));
    buffer_append_char(out, '}');
}

static void write_way(struct buffer *out, const struct buffer *hint)
{
    buffer_append_text(out, ",{\"type\":\"section\",\"text\":{\"type\":\"mrkdwn\"");
    json_add_str(out, "text", buffer_str(hint));
    buffer_append_text(out, "}}");
}

/* A person decides only on what is there to be read. */
static void write_ways(struct buffer *out, const struct store_delivery *delivery,
                       const struct config_notify *notify, const struct config *config,
                       bool may_vote)
{
    const struct task *task = delivery->task;
    OWNED_BUFFER(hint);
    /* One decides under the first message alone: its reference is the one that is kept. */
    bool is_first = !delivery->reference || !*delivery->reference;
    bool changes_first = delivery->event == NOTIFY_VOTED;
    if (task->state != TASK_PENDING || (!is_first && !changes_first))
        return;
    if (!may_vote)
        buffer_append_text(&hint, BLIND_HINT);
    else if (may_anybody_vote(config))
        write_hint(&hint, task, config);
    if (hint.length > 0 && (notify->signing_secret || may_anybody_vote(config)))
        write_way(out, &hint);
    if (notify->signing_secret && may_vote) {
        buffer_append_text(out, ",{\"type\":\"actions\",\"block_id\":\"taskgate\",\"elements\":[");
        write_button(out, "Approve", "primary", SLACK_ACTION_APPROVE, task, config);
        buffer_append_char(out, ',');
        write_button(out, "Reject", "danger", SLACK_ACTION_REJECT, task, config);
        buffer_append_text(out, "]}");
    }
}

static void write_blocks(struct buffer *out, const struct store_delivery *delivery,
                         const struct config_notify *notify, const struct config *config,
                         char votes_on[SLACK_VOTES_BYTES])
{
    OWNED_BUFFER(line);
    OWNED_BUFFER(facts);
    slack_message_write_line(&line, delivery, notify, config);
    bool is_whole = channel_text_facts(&facts, delivery->task, config, notify->include_arguments,
                                       FACTS_MAX_BYTES);
    bool may_vote = is_whole || notify->blind_votes;
    snprintf(votes_on, SLACK_VOTES_BYTES, "%s",
             may_vote ? delivery->task->request_digest : SLACK_VOTES_ON_NOTHING);
    json_add_key(out, "blocks");
    buffer_append_text(out, "[{\"type\":\"section\",\"text\":{\"type\":\"mrkdwn\"");
    json_add_str(out, "text", buffer_str(&line));
    buffer_append_text(out, "}},{\"type\":\"section\",\"text\":{\"type\":\"plain_text\","
                            "\"emoji\":false");
    json_add_str(out, "text", buffer_str(&facts));
    buffer_append_text(out, "}}");
    write_ways(out, delivery, notify, config, may_vote);
    buffer_append_char(out, ']');
}

/* ---- the letter ---- */

bool slack_posted_read(const char *reference, struct slack_posted *posted)
{
    struct str rest, app;
    if (!reference || !str_cut(str_from(reference), ' ', &posted->channel, &rest) ||
        posted->channel.length == 0)
        return false;
    str_cut(rest, ' ', &posted->ts, &rest);
    str_cut(rest, ' ', &app, &posted->votes_on);
    posted->app = str_equal(app, STR(SLACK_NO_APP)) ? STR_EMPTY : app;
    return true;
}

/* The endpoint may be configured to show less meanwhile. */
bool slack_posted_counts(const struct slack_posted *posted, const struct config_notify *notify)
{
    bool shows_less = !notify->include_arguments && !notify->blind_votes;
    return !shows_less && !str_equal(posted->votes_on, STR(SLACK_VOTES_ON_NOTHING));
}

void slack_message_write(struct channel_letter *letter, const struct store_delivery *delivery,
                         const struct config_notify *notify, const struct config *config)
{
    struct buffer *out = &letter->body;
    OWNED_BUFFER(title);
    OWNED_BUFFER(escaped);
    struct slack_posted posted = {.channel = str_from(notify->channel)};
    bool is_known = slack_posted_read(delivery->reference, &posted);
    /* A changed message calls nobody: who is called again gets an answer to it. */
    bool is_update = is_known && !channel_text_calls_again(delivery);
    channel_text_title(&title, delivery, TITLE_MAX_BYTES);
    slack_message_append_escaped(&escaped, buffer_str(&title));
    letter->url =
        memory_format("%s/%s", notify->url, is_update ? "chat.update" : "chat.postMessage");
    letter->authorization = memory_format("Bearer %s", notify->secret);
    buffer_append_char(out, '{');
    json_add_str(out, "channel", posted.channel);
    if (is_known) {
        json_add_str(out, is_update ? "ts" : "thread_ts", posted.ts);
    }
    if (is_known && !is_update)
        buffer_append_text(out, ",\"reply_broadcast\":true");
    json_add_str(out, "text", buffer_str(&escaped));
    write_blocks(out, delivery, notify, config, letter->votes_on);
    buffer_append_text(out, ",\"unfurl_links\":false,\"unfurl_media\":false}");
}

/* ---- the answer ---- */

/* The word of an answer, in characters that are fit for a log. */
static void note_problem(struct str word, char problem[CHANNEL_PROBLEM_BYTES])
{
    size_t length = 0;
    OWNED char *text = json_type(word) == JSON_STRING ? json_string_text(word, &length) : NULL;
    snprintf(problem, CHANNEL_PROBLEM_BYTES, "%s", text ? text : "no answer of Slack's");
    for (char *c = problem; *c; c++) {
        bool is_plain = (*c >= 'a' && *c <= 'z') || (*c >= '0' && *c <= '9') || *c == '_';
        if (text && !is_plain)
            *c = '?';
    }
}

bool slack_message_accepts(struct str answer, const char *votes_on, char **reference,
                           char problem[CHANNEL_PROBLEM_BYTES])
{
    static const char *const names[] = {"ok", "channel", "ts", "error"};
    struct str members[4] = {STR_EMPTY, STR_EMPTY, STR_EMPTY, STR_EMPTY};
    size_t length;
    *reference = NULL;
    if (json_check(answer, NULL) && json_type(answer) == JSON_OBJECT)
        json_members(answer, names, 4, members);
    if (json_type(members[0]) != JSON_TRUE) {
        note_problem(members[3], problem);
        return false;
    }
    if (json_type(members[1]) == JSON_STRING && json_type(members[2]) == JSON_STRING) {
        OWNED char *channel = json_string_text(members[1], &length);
        OWNED char *ts = json_string_text(members[2], &length);
        OWNED char *app = json_string_text(json_path(answer, "message", "app_id"), &length);
        const char *shown_app = app ? app : SLACK_NO_APP;
        if (*votes_on)
            *reference = memory_format("%s %s %s %s", channel, ts, shown_app, votes_on);
        else
            *reference = memory_format("%s %s%s%s", channel, ts, app ? " " : "", app ? app : "");
    }
    return true;
}
