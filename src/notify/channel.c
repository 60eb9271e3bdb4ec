/* The letters of each type. */
#include "channel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "channel_text.h"
#include "message.h"
#include "slack_message.h"
#include "taskgate/config/glob.h"
#include "taskgate/core/memory.h"
#include "taskgate/json/members.h"
#include "taskgate/json/text.h"

#define SUMMARY_MAX_BYTES 1000 /* PagerDuty takes 1,024 characters */
#define FACTS_MAX_BYTES 2900   /* a text of Slack's has 3,000 characters */

/* ---- which tasks ---- */

static bool is_of_workflow(const struct config_notify *notify, const char *workflow)
{
    struct error error;
    for (size_t i = 0; i < notify->destination_of.count; i++) {
        if (strcmp(notify->destination_of.items[i], workflow) == 0)
            return true;
    }
    bool is_wanted = notify->workflows.count == 0 && !notify->is_destination;
    for (size_t i = 0; i < notify->workflows.count && !is_wanted; i++) {
        struct glob *glob = glob_compile(str_from(notify->workflows.items[i]), &error);
        is_wanted = glob && glob_matches(glob, str_from(workflow));
        glob_destroy(glob);
    }
    return is_wanted;
}

/* People are called for tasks that need one: those have a workflow. */
static bool is_wanted(const struct config_notify *notify, const struct task *task)
{
    bool needs_person = *task->workflow != '\0';
    return is_of_workflow(notify, task->workflow) &&
           (notify->type == NOTIFY_WEBHOOK || needs_person);
}

static void add_text(struct buffer *out, const char *key, const struct buffer *text)
{
    json_add_key(out, key);
    buffer_append_json_string(out, buffer_str(text));
}

static char *link_of(const struct task *task, const struct config *config)
{
    return memory_format("%s/#task=%s", config->public_url ? config->public_url : "", task->id);
}

/* ---- Teams ---- */

static void write_teams_text(struct buffer *out, const char *style, const struct buffer *text)
{
    /* A text block reads Markdown; a text run does not. */
    buffer_append_format(out, "{\"type\":\"RichTextBlock\",\"inlines\":[{\"type\":\"TextRun\"%s",
                         style);
    add_text(out, "text", text);
    buffer_append_text(out, "}]}");
}

static void write_teams(struct channel_letter *letter, const struct store_delivery *delivery,
                        const struct config_notify *notify, const struct config *config)
{
    struct buffer *out = &letter->body, title, facts;
    char *link = link_of(delivery->task, config);
    buffer_init(&title);
    buffer_init(&facts);
    channel_text_title(&title, delivery->task, SUMMARY_MAX_BYTES);
    channel_text_facts(&facts, delivery->task, config, notify->include_arguments, FACTS_MAX_BYTES);
    letter->url = memory_copy_text(notify->url);
    buffer_append_text(
        out, "{\"type\":\"message\",\"attachments\":[{\"contentType\":"
             "\"application/vnd.microsoft.card.adaptive\",\"contentUrl\":null,\"content\":{"
             "\"$schema\":\"http://adaptivecards.io/schemas/adaptive-card.json\","
             "\"type\":\"AdaptiveCard\",\"version\":\"1.4\",\"body\":[");
    write_teams_text(out, ",\"weight\":\"Bolder\",\"size\":\"Medium\"", &title);
    buffer_append_char(out, ',');
    write_teams_text(out, "", &facts);
    buffer_append_text(out, "],\"actions\":[{\"type\":\"Action.OpenUrl\",\"title\":"
                            "\"Open the call\"");
    json_add_text(out, "url", link);
    buffer_append_text(out, "}]}}]}");
    free(link);
    buffer_finish(&facts);
    buffer_finish(&title);
}

/* ---- PagerDuty ---- */

static void write_pagerduty_payload(struct buffer *out, const struct store_delivery *delivery,
                                    const struct config_notify *notify, const struct config *config)
{
    struct buffer title, facts;
    char *link = link_of(delivery->task, config);
    buffer_init(&title);
    buffer_init(&facts);
    channel_text_title(&title, delivery->task, SUMMARY_MAX_BYTES);
    channel_text_facts(&facts, delivery->task, config, notify->include_arguments, FACTS_MAX_BYTES);
    json_add_text(out, "client", "taskgate");
    json_add_text(out, "client_url", link);
    buffer_append_text(out, ",\"links\":[{\"text\":\"Open the call\"");
    json_add_text(out, "href", link);
    buffer_append_text(out, "}],\"payload\":{");
    add_text(out, "summary", &title);
    json_add_text(out, "source", delivery->task->source);
    json_add_text(out, "severity", "warning");
    json_add_time(out, "timestamp", delivery->at_ms);
    buffer_append_text(out, ",\"custom_details\":{");
    add_text(out, "call", &facts);
    buffer_append_text(out, "}}");
    free(link);
    buffer_finish(&facts);
    buffer_finish(&title);
}

/* A person called by a pager is let go as soon as the call is decided. */
static bool is_resolved_already(const struct store_delivery *delivery,
                                const struct config_notify *notify)
{
    bool has_run = delivery->task->state == TASK_COMPLETED || delivery->task->state == TASK_FAILED;
    return has_run && (notify->events & NOTIFY_DECIDED) != 0;
}

static void write_pagerduty(struct channel_letter *letter, const struct store_delivery *delivery,
                            const struct config_notify *notify, const struct config *config)
{
    struct buffer *out = &letter->body;
    bool is_open = delivery->task->state == TASK_PENDING;
    letter->url = memory_copy_text(notify->url);
    buffer_append_char(out, '{');
    json_add_text(out, "routing_key", notify->secret);
    json_add_text(out, "event_action", is_open ? "trigger" : "resolve");
    json_add_text(out, "dedup_key", delivery->task->id);
    if (is_open)
        write_pagerduty_payload(out, delivery, notify, config);
    buffer_append_char(out, '}');
}

/* ---- all ---- */

bool channel_write(struct channel_letter *letter, const struct store_delivery *delivery,
                   const struct config_notify *notify, const struct config *config)
{
    if (!is_wanted(notify, delivery->task))
        return false;
    if (notify->type == NOTIFY_PAGERDUTY && is_resolved_already(delivery, notify))
        return false;
    *letter = (struct channel_letter){.url = NULL};
    buffer_init(&letter->body);
    switch (notify->type) {
    case NOTIFY_WEBHOOK:
        letter->url = memory_copy_text(notify->url);
        message_write(&letter->body, delivery, config, notify->include_arguments);
        break;
    case NOTIFY_SLACK:
        slack_message_write(letter, delivery, notify, config);
        break;
    case NOTIFY_TEAMS:
        write_teams(letter, delivery, notify, config);
        break;
    case NOTIFY_PAGERDUTY:
        write_pagerduty(letter, delivery, notify, config);
        break;
    }
    return true;
}

static void wipe(char *text)
{
    if (text)
        explicit_bzero(text, strlen(text));
    free(text);
}

void channel_letter_finish(struct channel_letter *letter)
{
    wipe(letter->url);
    wipe(letter->authorization);
    if (letter->body.bytes)
        explicit_bzero(letter->body.bytes, letter->body.length);
    buffer_finish(&letter->body);
}

bool channel_accepts(enum config_notify_type type, struct str answer, char **reference,
                     char problem[CHANNEL_PROBLEM_BYTES])
{
    *reference = NULL;
    return type != NOTIFY_SLACK || slack_message_accepts(answer, reference, problem);
}

void channel_key(const struct config_notify *notify, char key[DIGEST_HEX_BYTES])
{
    struct buffer text;
    buffer_init(&text);
    buffer_append_text(&text, notify->url);
    if (notify->type != NOTIFY_WEBHOOK)
        buffer_append_format(&text, "%c%d%c%s", 0, (int)notify->type, 0,
                             notify->channel ? notify->channel : "");
    if (notify->type == NOTIFY_PAGERDUTY)
        buffer_append_format(&text, "%c%s", 0, notify->secret);
    digest_sha256_hex(buffer_str(&text), key);
    if (text.bytes)
        explicit_bzero(text.bytes, text.length);
    buffer_finish(&text);
}
