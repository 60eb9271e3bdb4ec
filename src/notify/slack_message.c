/* Messages: blocks, the text of notifications beside them, and references. */
#include "slack_message.h"

#include <stdio.h>
#include <stdlib.h>

#include "channel_text.h"
#include "taskgate/core/memory.h"
#include "taskgate/json/members.h"
#include "taskgate/json/text.h"

#define TITLE_MAX_BYTES 1000
#define FACTS_MAX_BYTES 2900 /* a text of Slack's has 3,000 characters */

static void add_text(struct buffer *out, const char *key, const struct buffer *text)
{
    json_add_key(out, key);
    buffer_append_json_string(out, buffer_str(text));
}

/* ---- blocks ---- */

/* The line that Slack formats: it has nothing but what the gateway and the configuration say. */
static void write_line(struct buffer *out, const struct store_delivery *delivery,
                       const struct config_notify *notify, const struct config *config)
{
    const struct task *task = delivery->task;
    for (size_t i = 0; task->state == TASK_PENDING && i < notify->mention.count; i++) {
        const char *id = notify->mention.items[i];
        buffer_append_format(out, *id == 'S' ? "<!subteam^%s> " : "<@%s> ", id);
    }
    buffer_append_format(out, "*%s*", channel_text_state(task->state));
    if (config->public_url)
        buffer_append_format(out, "  <%s/#task=%s|Open the call>", config->public_url, task->id);
}

/* Slack's three characters: with them gone nothing in a text is an order to it. */
static void append_escaped(struct buffer *out, struct str text)
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

static void write_blocks(struct buffer *out, const struct store_delivery *delivery,
                         const struct config_notify *notify, const struct config *config)
{
    struct buffer line, facts;
    buffer_init(&line);
    buffer_init(&facts);
    write_line(&line, delivery, notify, config);
    channel_text_facts(&facts, delivery->task, config, notify->include_arguments, FACTS_MAX_BYTES);
    json_add_key(out, "blocks");
    buffer_append_text(out, "[{\"type\":\"section\",\"text\":{\"type\":\"mrkdwn\"");
    add_text(out, "text", &line);
    buffer_append_text(out, "}},{\"type\":\"section\",\"text\":{\"type\":\"plain_text\","
                            "\"emoji\":false");
    add_text(out, "text", &facts);
    buffer_append_text(out, "}}]");
    buffer_finish(&facts);
    buffer_finish(&line);
}

/* ---- the letter ---- */

bool slack_message_read_reference(const char *reference, struct str *channel, struct str *ts)
{
    struct str first, second;
    if (!reference || !str_cut(str_from(reference), ' ', &first, &second) || first.length == 0)
        return false;
    *channel = first;
    *ts = second;
    return true;
}

void slack_message_write(struct channel_letter *letter, const struct store_delivery *delivery,
                         const struct config_notify *notify, const struct config *config)
{
    struct buffer *out = &letter->body, title, escaped;
    struct str channel = str_from(notify->channel), ts = STR_EMPTY;
    bool is_update = slack_message_read_reference(delivery->reference, &channel, &ts);
    buffer_init(&title);
    buffer_init(&escaped);
    channel_text_title(&title, delivery->task, TITLE_MAX_BYTES);
    append_escaped(&escaped, buffer_str(&title));
    letter->url =
        memory_format("%s/%s", notify->url, is_update ? "chat.update" : "chat.postMessage");
    letter->authorization = memory_format("Bearer %s", notify->secret);
    buffer_append_char(out, '{');
    json_add_key(out, "channel");
    buffer_append_json_string(out, channel);
    if (is_update) {
        json_add_key(out, "ts");
        buffer_append_json_string(out, ts);
    }
    add_text(out, "text", &escaped);
    write_blocks(out, delivery, notify, config);
    buffer_append_text(out, ",\"unfurl_links\":false,\"unfurl_media\":false}");
    buffer_finish(&escaped);
    buffer_finish(&title);
}

/* ---- the answer ---- */

/* The word of an answer, in characters that are fit for a log. */
static void note_problem(struct str word, char problem[CHANNEL_PROBLEM_BYTES])
{
    size_t length = 0;
    char *text = json_type(word) == JSON_STRING ? json_string_text(word, &length) : NULL;
    snprintf(problem, CHANNEL_PROBLEM_BYTES, "%s", text ? text : "no answer of Slack's");
    for (char *c = problem; *c; c++) {
        bool is_plain = (*c >= 'a' && *c <= 'z') || (*c >= '0' && *c <= '9') || *c == '_';
        if (text && !is_plain)
            *c = '?';
    }
    free(text);
}

bool slack_message_accepts(struct str answer, char **reference, char problem[CHANNEL_PROBLEM_BYTES])
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
        char *channel = json_string_text(members[1], &length);
        char *ts = json_string_text(members[2], &length);
        *reference = memory_format("%s %s", channel, ts);
        free(channel);
        free(ts);
    }
    return true;
}
