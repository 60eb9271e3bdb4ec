/* Bodies, signatures, delays. */
#include "message.h"

#include <stdlib.h>
#include <string.h>

#include "taskgate/core/digest.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/members.h"
#include "taskgate/notify/redact.h"
#include "taskgate/notify/shown.h"
#include "taskgate/notify/typed.h"

#define FIRST_DELAY_MS 1000
#define LONGEST_DELAY_MS 600000

/* ---- the body ---- */

/* The rule's words. The sentence shows arguments, and so goes where they go. */
static void message_write_shown(struct buffer *out, const struct task *task, struct str arguments)
{
    const struct typed_risk risk = typed_risk_of(task);
    OWNED_BUFFER(summary);
    if (arguments.length > 0 && shown_write_summary(&summary, task, arguments)) {
        json_add_str(out, "summary", buffer_str(&summary));
    }
    if (typed_risk_is_shown(&risk)) {
        json_add_str(out, "risk", risk.risk);
    }
}

/* The digest of a hidden value would tell it to somebody who tries all values. */
static void write_digest(struct buffer *out, const struct task *task, bool is_hidden)
{
    char keyed[DIGEST_HEX_BYTES];
    if (is_hidden)
        digest_keyed_hex(task->arguments_digest, keyed);
    json_add_text(out, "argumentsDigest", is_hidden ? keyed : task->arguments_digest);
}

static void message_write_task(struct buffer *out, const struct task *task,
                               const struct config *config, bool include_arguments)
{
    OWNED_BUFFER(arguments);
    buffer_append_char(out, '{');
    json_add_text(out, "id", task->id);
    json_add_text(out, "state", task_state_name(task->state));
    json_add_text(out, "source", task->source);
    json_add_text(out, "tool", task->tool);
    bool is_hidden = *task->arguments ? redact_write(&arguments, str_from(task->arguments), config,
                                                     task->workflow)
                                      : redact_may_hide(config, task->workflow);
    if (!include_arguments)
        buffer_clear(&arguments);
    if (arguments.length > 0) {
        json_add_value(out, "arguments", buffer_str(&arguments));
    }
    write_digest(out, task, is_hidden);
    json_add_text(out, "principal", task->principal);
    json_add_text(out, "principalBy", shown_principal_by(task->owner));
    json_add_text_or_null(out, "workflow", task->workflow);
    json_add_time(out, "createdAt", task->created_ms);
    json_add_time(out, "decideBy", task->decide_by_ms);
    json_add_time(out, "decidedAt", task->decided_ms);
    json_add_text_or_null(out, "decidedBy", task->decided_by);
    json_add_text_or_null(out, "reason", task->reason);
    json_add_text(out, "statusMessage", task->status_message);
    message_write_shown(out, task, buffer_str(&arguments));
    buffer_append_char(out, '}');
}

/* To the task on the page, whose address need not be known. */
static void message_write_link(struct buffer *out, const struct task *task,
                               const struct config *config)
{
    if (!config->public_url)
        return;
    OWNED char *link = memory_format("%s/#task=%s", config->public_url, task->id);
    json_add_text(out, "link", link);
}

void message_write(struct buffer *out, const struct store_delivery *delivery,
                   const struct config *config, bool include_arguments)
{
    buffer_append_char(out, '{');
    json_add_text(out, "event",
                  config_notify_event_name((enum config_notify_event)delivery->event));
    json_add_text(out, "delivery", delivery->id);
    json_add_time(out, "at", delivery->at_ms);
    if (delivery->anchor) {
        json_add_key(out, "anchor");
        buffer_append_text(out, delivery->anchor);
    } else {
        message_write_link(out, delivery->task, config);
        if (delivery->is_emergency)
            buffer_append_text(out, ",\"emergency\":true");
        json_add_key(out, "task");
        message_write_task(out, delivery->task, config, include_arguments);
    }
    buffer_append_char(out, '}');
}

/* ---- the signature ---- */

void message_sign(struct str secret, struct str timestamp, struct str body,
                  char signature[MESSAGE_SIGNATURE_BYTES])
{
    char hex[DIGEST_HEX_BYTES];
    OWNED_BUFFER(text);
    buffer_append_format(&text, "%.*s.", STR_ARGS(timestamp));
    buffer_append(&text, body);
    digest_hmac_sha256_hex(secret, buffer_str(&text), hex);
    str_join(signature, MESSAGE_SIGNATURE_BYTES, STR("v1="), str_from(hex));
}

/* ---- the rest ---- */

int64_t message_retry_delay_ms(int64_t failures, unsigned random)
{
    int64_t delay_ms = FIRST_DELAY_MS;
    for (int64_t i = 1; i < failures && delay_ms < LONGEST_DELAY_MS; i++)
        delay_ms *= 2;
    if (delay_ms > LONGEST_DELAY_MS)
        delay_ms = LONGEST_DELAY_MS;
    return delay_ms - random % (delay_ms / 4 + 1);
}

char *message_origin(struct str url)
{
    struct str scheme, rest, user, host;
    if (!str_cut(url, ':', &scheme, &rest) || !str_starts_with(rest, STR("//")))
        return memory_copy_text("");
    rest = str_slice(rest.bytes + 2, rest.length - 2);
    size_t end = 0;
    while (end < rest.length && !strchr("/?#", rest.bytes[end]))
        end++;
    host = str_slice(rest.bytes, end);
    while (str_cut(host, '@', &user, &rest))
        host = rest;
    return memory_format("%.*s://%.*s", STR_ARGS(scheme), STR_ARGS(host));
}
