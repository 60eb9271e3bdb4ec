/* The letters of each type. */
#include "channel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "channel_text.h"
#include "mail.h"
#include "message.h"
#include "recipients.h"
#include "slack_message.h"
#include "taskgate/core/memory.h"
#include "taskgate/json/members.h"
#include "taskgate/json/text.h"

#define SUMMARY_MAX_BYTES 1000 /* PagerDuty takes 1,024 characters */
#define FACTS_MAX_BYTES 2900   /* a text of Slack's has 3,000 characters */
#define SUBJECT_MAX_BYTES 200
#define ANCHOR_TEXT "Anchor of the audit trail. Keep this line where the gateway cannot write."
#define MAIL_FACTS_MAX_BYTES 100000

static void channel_add_text(struct buffer *out, const char *key, const struct buffer *text)
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
    channel_add_text(out, "text", text);
    buffer_append_text(out, "}]}");
}

static void write_teams(struct channel_letter *letter, const struct store_delivery *delivery,
                        const struct config_notify *notify, const struct config *config)
{
    struct buffer *out = &letter->body, title, facts;
    char *link = link_of(delivery->task, config);
    buffer_init(&title);
    buffer_init(&facts);
    channel_text_title(&title, delivery, SUMMARY_MAX_BYTES);
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

/* The decision itself, not what comes of it. */
static bool is_break_glass(const struct store_delivery *delivery)
{
    return delivery->is_emergency && delivery->task->state == TASK_APPROVED;
}

static void write_pagerduty_payload(struct buffer *out, const struct store_delivery *delivery,
                                    const struct config_notify *notify, const struct config *config)
{
    struct buffer title, facts;
    char *link = link_of(delivery->task, config);
    buffer_init(&title);
    buffer_init(&facts);
    channel_text_title(&title, delivery, SUMMARY_MAX_BYTES);
    channel_text_facts(&facts, delivery->task, config, notify->include_arguments, FACTS_MAX_BYTES);
    json_add_text(out, "client", "taskgate");
    json_add_text(out, "client_url", link);
    buffer_append_text(out, ",\"links\":[{\"text\":\"Open the call\"");
    json_add_text(out, "href", link);
    buffer_append_text(out, "}],\"payload\":{");
    channel_add_text(out, "summary", &title);
    json_add_text(out, "source", delivery->task->source);
    json_add_text(out, "severity", is_break_glass(delivery) ? "critical" : "warning");
    json_add_time(out, "timestamp", delivery->at_ms);
    buffer_append_text(out, ",\"custom_details\":{");
    channel_add_text(out, "call", &facts);
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
    return has_run && (notify->events & NOTIFY_DECIDED) != 0 && !delivery->is_emergency;
}

static void write_pagerduty(struct channel_letter *letter, const struct store_delivery *delivery,
                            const struct config_notify *notify, const struct config *config)
{
    struct buffer *out = &letter->body;
    bool is_alone = is_break_glass(delivery);
    bool is_open = is_alone || delivery->task->state == TASK_PENDING;
    /* An emergency is an incident of its own, which a person closes. */
    char *key = memory_format("%s%s", delivery->task->id, is_alone ? "/emergency" : "");
    letter->url = memory_copy_text(notify->url);
    buffer_append_char(out, '{');
    json_add_text(out, "routing_key", notify->secret);
    json_add_text(out, "event_action", is_open ? "trigger" : "resolve");
    json_add_text(out, "dedup_key", key);
    free(key);
    if (is_open)
        write_pagerduty_payload(out, delivery, notify, config);
    buffer_append_char(out, '}');
}

/* ---- SMTP ---- */

/* All mails of a task have one subject: some programs tell threads by it. */
static void write_mail(struct channel_letter *letter, const struct store_delivery *delivery,
                       const struct config_notify *notify, const struct config *config)
{
    const struct task *task = delivery->task;
    char *link = link_of(task, config);
    char key[DIGEST_HEX_BYTES];
    struct buffer subject, text;
    struct mail mail = {
        .notify = notify,
        .key = key,
        .id = delivery->id,
        .thread = task->id,
        .begins_thread = delivery->event == NOTIFY_CREATED,
        .is_urgent = is_break_glass(delivery) || delivery->event == NOTIFY_ESCALATED,
        .at_ms = delivery->at_ms,
    };
    channel_key(notify, key);
    buffer_init(&subject);
    buffer_init(&text);
    buffer_append_text(&subject, mail.begins_thread ? "" : "Re: ");
    channel_text_subject(&subject, task, SUBJECT_MAX_BYTES);
    channel_text_title(&text, delivery, SUMMARY_MAX_BYTES);
    buffer_append_format(&text, "\n%s\n\n", link);
    channel_text_facts(&text, task, config, notify->include_arguments, MAIL_FACTS_MAX_BYTES);
    mail.subject = buffer_str(&subject);
    mail.text = buffer_str(&text);
    mail_write(&letter->body, &mail);
    buffer_finish(&text);
    buffer_finish(&subject);
    free(link);
}

/* ---- anchors of the audit trail ---- */

/* One line of JSON, fit for `taskgate audit verify --anchor`. */
static void write_anchor_mail(struct channel_letter *letter, const struct store_delivery *delivery,
                              const struct config_notify *notify)
{
    char *text = memory_format(ANCHOR_TEXT "\n\n%s\n", delivery->anchor);
    char key[DIGEST_HEX_BYTES];
    const struct mail mail = {
        .notify = notify,
        .key = key,
        .id = delivery->id,
        .thread = "audit-anchors",
        .subject = STR("Anchor of the audit trail"),
        .text = str_from(text),
        .at_ms = delivery->at_ms,
    };
    channel_key(notify, key);
    mail_write(&letter->body, &mail);
    free(text);
}

static void write_anchor_card(struct buffer *out, const struct buffer *text)
{
    buffer_append_text(
        out, "{\"type\":\"message\",\"attachments\":[{\"contentType\":"
             "\"application/vnd.microsoft.card.adaptive\",\"contentUrl\":null,\"content\":{"
             "\"$schema\":\"http://adaptivecards.io/schemas/adaptive-card.json\","
             "\"type\":\"AdaptiveCard\",\"version\":\"1.4\",\"body\":[");
    write_teams_text(out, "", text);
    buffer_append_text(out, "]}}]}");
}

static void write_anchor(struct channel_letter *letter, const struct store_delivery *delivery,
                         const struct config_notify *notify, const struct config *config)
{
    struct buffer text;
    buffer_init(&text);
    buffer_append_format(&text, ANCHOR_TEXT "\n%s", delivery->anchor);
    if (notify->type != NOTIFY_SMTP && notify->type != NOTIFY_SLACK)
        letter->url = memory_copy_text(notify->url);
    switch (notify->type) {
    case NOTIFY_WEBHOOK:
        message_write(&letter->body, delivery, config, false);
        break;
    case NOTIFY_SLACK:
        letter->url = memory_format("%s/chat.postMessage", notify->url);
        letter->authorization = memory_format("Bearer %s", notify->secret);
        buffer_append_char(&letter->body, '{');
        json_add_text(&letter->body, "channel", notify->channel);
        channel_add_text(&letter->body, "text", &text);
        buffer_append_text(&letter->body, ",\"mrkdwn\":false}");
        break;
    case NOTIFY_TEAMS:
        write_anchor_card(&letter->body, &text);
        break;
    case NOTIFY_SMTP:
        write_anchor_mail(letter, delivery, notify);
        break;
    case NOTIFY_PAGERDUTY: /* the configuration refuses it */
        break;
    }
    buffer_finish(&text);
}

/* ---- all ---- */

/* That can be changed. */
static bool has_message(const struct store_delivery *delivery)
{
    return delivery->reference && *delivery->reference;
}

bool channel_write(struct channel_letter *letter, const struct store_delivery *delivery,
                   const struct config_notify *notify, const struct config *config)
{
    if (!recipients_have(notify, delivery, config))
        return false;
    if (notify->type == NOTIFY_PAGERDUTY && is_resolved_already(delivery, notify))
        return false;
    if (delivery->event == NOTIFY_VOTED && !has_message(delivery))
        return false;
    *letter = (struct channel_letter){.url = NULL};
    buffer_init(&letter->body);
    if (delivery->anchor) {
        write_anchor(letter, delivery, notify, config);
        return true;
    }
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
    case NOTIFY_SMTP:
        write_mail(letter, delivery, notify, config);
        break;
    }
    return true;
}

static void channel_wipe(char *text)
{
    if (text)
        explicit_bzero(text, strlen(text));
    free(text);
}

void channel_letter_finish(struct channel_letter *letter)
{
    channel_wipe(letter->url);
    channel_wipe(letter->authorization);
    if (letter->body.bytes)
        explicit_bzero(letter->body.bytes, letter->body.length);
    buffer_finish(&letter->body);
}

bool channel_accepts(enum config_notify_type type, const struct channel_letter *letter,
                     struct str answer, char **reference, char problem[CHANNEL_PROBLEM_BYTES])
{
    *reference = NULL;
    return type != NOTIFY_SLACK ||
           slack_message_accepts(answer, letter->votes_on, reference, problem);
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
    if (notify->type == NOTIFY_SMTP)
        buffer_append_format(&text, "%c%s", 0, notify->from);
    for (size_t i = 0; i < notify->to.count; i++)
        buffer_append_format(&text, "%c%s", 0, notify->to.items[i]);
    digest_sha256_hex(buffer_str(&text), key);
    if (text.bytes)
        explicit_bzero(text.bytes, text.length);
    buffer_finish(&text);
}
