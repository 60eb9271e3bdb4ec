/* The letters of each type. */
#include "channel.h"

#include <openssl/evp.h>
#include <string.h>
#include <time.h>

#include "taskgate/config/config.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/members.h"

#include "channel_text.h"
#include "message.h"
#include "recipients.h"
#include "slack_message.h"

#define SUMMARY_MAX_BYTES 1000 /* PagerDuty takes 1,024 characters */
#define FACTS_MAX_BYTES 2900   /* a text of Slack's has 3,000 characters */
#define SUBJECT_MAX_BYTES 200
#define ANCHOR_TEXT "Anchor of the audit trail. Keep this line where the gateway cannot write."
#define MAIL_FACTS_MAX_BYTES 100000

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
    json_add_str(out, "text", buffer_str(text));
    buffer_append_text(out, "}]}");
}

static void write_teams(struct channel_letter *letter, const struct store_delivery *delivery,
                        const struct config_notify *notify, const struct config *config)
{
    struct buffer *out = &letter->body;
    OWNED_BUFFER(title);
    OWNED_BUFFER(facts);
    OWNED char *link = link_of(delivery->task, config);
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
    OWNED_BUFFER(title);
    OWNED_BUFFER(facts);
    OWNED char *link = link_of(delivery->task, config);
    channel_text_title(&title, delivery, SUMMARY_MAX_BYTES);
    channel_text_facts(&facts, delivery->task, config, notify->include_arguments, FACTS_MAX_BYTES);
    json_add_text(out, "client", "taskgate");
    json_add_text(out, "client_url", link);
    buffer_append_text(out, ",\"links\":[{\"text\":\"Open the call\"");
    json_add_text(out, "href", link);
    buffer_append_text(out, "}],\"payload\":{");
    json_add_str(out, "summary", buffer_str(&title));
    json_add_text(out, "source", delivery->task->source);
    json_add_text(out, "severity", is_break_glass(delivery) ? "critical" : "warning");
    json_add_time(out, "timestamp", delivery->at_ms);
    buffer_append_text(out, ",\"custom_details\":{");
    json_add_str(out, "call", buffer_str(&facts));
    buffer_append_text(out, "}}");
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
    OWNED char *key = memory_format("%s%s", delivery->task->id, is_alone ? "/emergency" : "");
    letter->url = memory_copy_text(notify->url);
    buffer_append_char(out, '{');
    json_add_text(out, "routing_key", notify->secret);
    json_add_text(out, "event_action", is_open ? "trigger" : "resolve");
    json_add_text(out, "dedup_key", key);
    if (is_open)
        write_pagerduty_payload(out, delivery, notify, config);
    buffer_append_char(out, '}');
}

/* ---- a mail ---- */

/* A notification as a mail: header and plain text, ready for a server. Any thread; pure. Nothing
 * that an agent, a server or a person wrote can begin a line of the header: what is not plain
 * ASCII is encoded. Sources: RFC 5322, RFC 2047, RFC 2045 §6, RFC 3834. */

struct mail {
    const struct config_notify *notify; /* from, to */
    const char *key;                    /* of the endpoint: no two send one mail twice */
    const char *id;                     /* of this delivery: stable over all attempts */
    const char *thread;                 /* of its thread: the task's id, for example */
    bool begins_thread;
    bool is_urgent;
    struct str subject;
    struct str text; /* lines that end with \n */
    int64_t at_ms;
};

/* A line has at most 78 bytes, and an encoded word 75 (RFC 5322 §2.1.1, RFC 2047 §2): "Subject: "
 * and "=?UTF-8?B?…?=" leave room for 52 letters. */
#define PLAIN_SUBJECT_BYTES 68
#define WORD_BYTES 39
#define ENCODED_LINE_BYTES 75
#define PLAIN_LINE_BYTES 900
/* Of the endpoint's key, in the ids. */
#define KEY_LETTERS 12

/* ---- the header ---- */

static bool mail_is_plain(struct str text)
{
    for (size_t i = 0; i < text.length; i++) {
        if (text.bytes[i] < ' ' || text.bytes[i] > '~')
            return false;
    }
    return true;
}

static bool looks_encoded(struct str text)
{
    for (size_t i = 1; i < text.length; i++) {
        if (text.bytes[i - 1] == '=' && text.bytes[i] == '?')
            return true;
    }
    return false;
}

/* At most WORD_BYTES of it, and whole characters. */
static size_t word_length(struct str text)
{
    size_t length = text.length;
    if (length <= WORD_BYTES)
        return length;
    for (length = WORD_BYTES; length > 1 && ((unsigned char)text.bytes[length] & 0xC0) == 0x80;)
        length--;
    return length;
}

static void write_subject(struct buffer *out, struct str text)
{
    buffer_append_text(out, "Subject:");
    if (mail_is_plain(text) && !looks_encoded(text) && text.length <= PLAIN_SUBJECT_BYTES) {
        buffer_append_format(out, " %.*s\r\n", STR_ARGS(text));
        return;
    }
    while (text.length > 0) {
        unsigned char word[4 * (WORD_BYTES / 3 + 1) + 1];
        size_t length = word_length(text);
        EVP_EncodeBlock(word, (const unsigned char *)text.bytes, (int)length);
        text = str_slice(text.bytes + length, text.length - length);
        buffer_append_format(out, " =?UTF-8?B?%s?=\r\n", (const char *)word);
    }
}

/* RFC 5322 §3.3, in any locale. */
static void write_date(struct buffer *out, int64_t at_ms)
{
    static const char *const days[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static const char *const months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                         "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    time_t at_s = (time_t)(at_ms / 1000);
    struct tm parts;
    gmtime_r(&at_s, &parts);
    buffer_append_format(out, "Date: %s, %d %s %d %02d:%02d:%02d +0000\r\n", days[parts.tm_wday],
                         parts.tm_mday, months[parts.tm_mon], 1900 + parts.tm_year, parts.tm_hour,
                         parts.tm_min, parts.tm_sec);
}

static void write_recipients(struct buffer *out, const struct config_strings *to)
{
    for (size_t i = 0; i < to->count; i++)
        buffer_append_format(out, "%s %s%s\r\n", i == 0 ? "To:" : "", to->items[i],
                             i + 1 < to->count ? "," : "");
}

/* The first mail of a thread has an id that the later ones know without having seen it. */
static void write_ids(struct buffer *out, const struct mail *mail)
{
    const char *domain = strrchr(mail->notify->from, '@');
    if (mail->begins_thread) {
        buffer_append_format(out, "Message-ID: <%s.%.*s%s>\r\n", mail->thread, KEY_LETTERS,
                             mail->key, domain);
        return;
    }
    buffer_append_format(out, "Message-ID: <%s.%.*s%s>\r\n", mail->id, KEY_LETTERS, mail->key,
                         domain);
    buffer_append_format(out, "In-Reply-To: <%s.%.*s%s>\r\n", mail->thread, KEY_LETTERS, mail->key,
                         domain);
    buffer_append_format(out, "References: <%s.%.*s%s>\r\n", mail->thread, KEY_LETTERS, mail->key,
                         domain);
}

/* ---- the text ---- */

/* Whether every server takes the text as it is. */
static bool is_plain_text(struct str text)
{
    struct str line;
    while (text.length > 0) {
        str_cut(text, '\n', &line, &text);
        if (!mail_is_plain(line) || line.length > PLAIN_LINE_BYTES)
            return false;
    }
    return true;
}

/* RFC 2045 §6.7. */
static void write_quoted_line(struct buffer *out, struct str line)
{
    size_t column = 0;
    for (size_t i = 0; i < line.length; i++) {
        unsigned char c = (unsigned char)line.bytes[i];
        bool is_last = i + 1 == line.length;
        bool stays = c > ' ' ? c <= '~' && c != '=' : c == ' ' && !is_last;
        size_t width = stays ? 1 : 3;
        if (column + width > ENCODED_LINE_BYTES) {
            buffer_append_text(out, "=\r\n");
            column = 0;
        }
        buffer_append_format(out, stays ? "%c" : "=%02X", c);
        column += width;
    }
    buffer_append_text(out, "\r\n");
}

static void mail_write_text(struct buffer *out, struct str text, bool is_quoted)
{
    struct str line;
    while (text.length > 0) {
        str_cut(text, '\n', &line, &text);
        if (is_quoted)
            write_quoted_line(out, line);
        else
            buffer_append_format(out, "%.*s\r\n", STR_ARGS(line));
    }
}

/* Lines end with CR LF. */
static void mail_write(struct buffer *out, const struct mail *mail)
{
    bool is_quoted = !is_plain_text(mail->text);
    write_date(out, mail->at_ms);
    buffer_append_format(out, "From: %s\r\n", mail->notify->from);
    write_recipients(out, &mail->notify->to);
    write_subject(out, mail->subject);
    write_ids(out, mail);
    /* No holiday notice answers it (RFC 3834 §5). */
    buffer_append_text(out, "Auto-Submitted: auto-generated\r\n");
    if (mail->is_urgent)
        buffer_append_text(out, "Importance: high\r\n");
    buffer_append_text(out, "MIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n");
    buffer_append_format(out, "Content-Transfer-Encoding: %s\r\n\r\n",
                         is_quoted ? "quoted-printable" : "7bit");
    mail_write_text(out, mail->text, is_quoted);
}

/* ---- SMTP ---- */

/* All mails of a task have one subject: some programs tell threads by it. */
static void write_mail(struct channel_letter *letter, const struct store_delivery *delivery,
                       const struct config_notify *notify, const struct config *config)
{
    const struct task *task = delivery->task;
    OWNED char *link = link_of(task, config);
    char key[DIGEST_HEX_BYTES];
    OWNED_BUFFER(subject);
    OWNED_BUFFER(text);
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
    buffer_append_text(&subject, mail.begins_thread ? "" : "Re: ");
    channel_text_subject(&subject, task, SUBJECT_MAX_BYTES);
    channel_text_title(&text, delivery, SUMMARY_MAX_BYTES);
    buffer_append_format(&text, "\n%s\n\n", link);
    channel_text_facts(&text, task, config, notify->include_arguments, MAIL_FACTS_MAX_BYTES);
    mail.subject = buffer_str(&subject);
    mail.text = buffer_str(&text);
    mail_write(&letter->body, &mail);
}

/* ---- anchors of the audit trail ---- */

/* One line of JSON, fit for `taskgate audit verify --anchor`. */
static void write_anchor_mail(struct channel_letter *letter, const struct store_delivery *delivery,
                              const struct config_notify *notify)
{
    OWNED char *text = memory_format(ANCHOR_TEXT "\n\n%s\n", delivery->anchor);
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
    OWNED_BUFFER(text);
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
        json_add_str(&letter->body, "text", buffer_str(&text));
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

void channel_letter_finish(struct channel_letter *letter)
{
    memory_forget_text(letter->url);
    memory_forget_text(letter->authorization);
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
    OWNED_BUFFER(text);
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
}
