/* One delivery: an attempt to send it, what came of that, and its settling in the store. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "notifier_internal.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"
#include "taskgate/core/random.h"

#define CONNECT_MS 5000
#define SILENCE_MS 10000
#define ATTEMPT_MS 20000 /* in all, for an endpoint that answers byte by byte */
#define MAX_ANSWER_BYTES ((size_t)64 * 1024)
#define HTTP_OK 200
#define HTTP_GONE 410
#define HTTP_TOO_MANY 429
#define MOST_WAIT_S 3600

static const struct upstream_callbacks callbacks;
static void delivery_on_timer(void *context);
static void delivery_settle(struct delivery *delivery);

/* ---- sending ---- */

static void start_call(struct delivery *delivery, const struct http_header *headers, size_t count)
{
    const struct upstream_request request = {
        .method = "POST",
        .url = delivery->letter.url,
        .tls = delivery->target->config->tls,
        .headers = headers,
        .header_count = count,
        .body = buffer_str(&delivery->letter.body),
        .connect_timeout_ms = CONNECT_MS,
        .silence_timeout_ms = SILENCE_MS,
    };
    delivery->call =
        upstream_call_start(delivery->target->notifier->client, &request, &callbacks, delivery);
    loop_timer_start(&delivery->timer, ATTEMPT_MS);
}

static void send_signed(struct delivery *delivery)
{
    char timestamp[24], signature[MESSAGE_SIGNATURE_BYTES];
    snprintf(timestamp, sizeof timestamp, "%" PRId64, clock_now_ms() / 1000);
    message_sign(str_from(delivery->target->config->secret), str_from(timestamp),
                 buffer_str(&delivery->letter.body), signature);
    const char *name = config_notify_event_name((enum config_notify_event)delivery->event);
    const struct http_header headers[] = {
        {STR("Content-Type"), STR("application/json")},
        {STR("User-Agent"), STR("taskgate/" TASKGATE_VERSION)},
        {STR("X-Taskgate-Event"), str_from(name)},
        {STR("X-Taskgate-Delivery"), str_from(delivery->id)},
        {STR("X-Taskgate-Timestamp"), str_from(timestamp)},
        {STR("X-Taskgate-Signature"), str_from(signature)},
    };
    start_call(delivery, headers, sizeof headers / sizeof *headers);
}

static void send_to_channel(struct delivery *delivery)
{
    const struct http_header headers[] = {
        {STR("Content-Type"), STR("application/json; charset=utf-8")},
        {STR("User-Agent"), STR("taskgate/" TASKGATE_VERSION)},
        {STR("Authorization"), str_from(delivery->letter.authorization)},
    };
    start_call(delivery, headers, delivery->letter.authorization ? 3 : 2);
}

static void on_mailed(void *context, const struct smtp_result *result);

static void send_mail(struct delivery *delivery)
{
    const struct target *target = delivery->target;
    delivery->mail = smtp_call_start(target->notifier->mailer, target->config,
                                     buffer_str(&delivery->letter.body), on_mailed, delivery);
}

void delivery_start(struct target *target, const struct store_delivery *due)
{
    struct delivery *delivery = memory_alloc(sizeof *delivery);
    const char *event = config_notify_event_name((enum config_notify_event)due->event);
    MAGIC_SET(delivery, DELIVERY_MAGIC);
    delivery->target = target;
    delivery->sequence = due->sequence;
    delivery->attempts = due->attempts;
    delivery->at_ms = due->at_ms;
    delivery->event = due->event;
    memcpy(delivery->id, due->id, sizeof delivery->id);
    delivery->text = memory_format("%s of %s", event, due->task->id);
    delivery->keeps_thread = due->anchor || (due->reference && *due->reference);
    delivery->stays = recipients_stay(due);
    loop_timer_init(&delivery->timer, target->notifier->loop, delivery_on_timer, delivery);
    list_append(&target->deliveries, &delivery->node);
    target->delivery_count++;
    buffer_init(&delivery->answer);
    if (!channel_write(&delivery->letter, due, target->config, target->notifier->config)) {
        delivery->outcome = OUTCOME_DELIVERED; /* there is nothing to tell */
        delivery_settle(delivery);
    } else if (target->config->type == NOTIFY_WEBHOOK) {
        send_signed(delivery);
    } else if (target->config->type == NOTIFY_SMTP) {
        send_mail(delivery);
    } else {
        send_to_channel(delivery);
    }
}

void delivery_destroy(struct delivery *delivery)
{
    loop_timer_stop(&delivery->timer);
    list_remove(&delivery->node);
    ASSERT_NUMBERS(delivery->target->delivery_count, >, 0);
    delivery->target->delivery_count--;
    channel_letter_finish(&delivery->letter);
    buffer_finish(&delivery->answer);
    free(delivery->reference);
    free(delivery->text);
    MAGIC_CLEAR(delivery);
    free(delivery);
}

void delivery_cancel(struct delivery *delivery)
{
    if (!delivery->call && !delivery->mail)
        return;
    if (delivery->call)
        upstream_call_cancel(delivery->call);
    if (delivery->mail)
        smtp_call_cancel(delivery->mail);
    delivery_destroy(delivery);
}

/* ---- settling ---- */

static void delivery_on_settled(void *context, const struct store_reply *reply)
{
    struct delivery *delivery = delivery_from(context);
    struct target *target = delivery->target;
    if (target->notifier->is_closed)
        return;
    /* It is not sent again until the store knows the outcome. */
    if (reply->status == STORE_FAILED && target->config) {
        loop_timer_start(&delivery->timer, STORE_RETRY_MS);
        return;
    }
    delivery_destroy(delivery);
    target->settled(target);
}

static void delivery_settle(struct delivery *delivery)
{
    struct notifier *notifier = delivery->target->notifier;
    struct store_call call = {notifier->loop, delivery_on_settled, delivery};
    switch (delivery->outcome) {
    case OUTCOME_DELIVERED:
        if (delivery->reference)
            store_outbox_posted(notifier->store, delivery->sequence, delivery->reference, call);
        else
            store_outbox_delivered(notifier->store, delivery->sequence, call);
        break;
    case OUTCOME_RETRIED:
        store_outbox_postpone(notifier->store, delivery->sequence, delivery->due_ms, call);
        break;
    case OUTCOME_GIVEN_UP:
    case OUTCOME_DROPPED:
        store_outbox_give_up(notifier->store, delivery->sequence, delivery->reason, call);
        break;
    }
}

/* ---- judging ---- */

static void plan_retry(struct delivery *delivery)
{
    unsigned random;
    int64_t now_ms = clock_now_ms();
    random_bytes(&random, sizeof random);
    int64_t delay_ms = message_retry_delay_ms(delivery->attempts + 1, random);
    delivery->due_ms = now_ms + (delivery->wait_ms > delay_ms ? delivery->wait_ms : delay_ms);
    delivery->outcome = delivery->due_ms < delivery->at_ms + STORE_NOTICE_LIFETIME_MS
                            ? OUTCOME_RETRIED
                            : OUTCOME_GIVEN_UP;
}

/* The first message stays the thread of the task: an answer to that is no new one. */
static void settle_thread(struct delivery *delivery)
{
    if (delivery->keeps_thread) {
        free(delivery->reference);
        delivery->reference = NULL;
    } else if (delivery->stays && !delivery->reference) {
        delivery->reference = memory_copy_text("");
    }
}

static void delivery_judge(struct delivery *delivery, const char *detail)
{
    const struct target *target = delivery->target;
    char problem[CHANNEL_PROBLEM_BYTES] = "";
    bool is_success = delivery->status >= 200 && delivery->status < 300;
    enum config_notify_type type = target->config ? target->config->type : NOTIFY_WEBHOOK;
    if (is_success && channel_accepts(type, &delivery->letter, buffer_str(&delivery->answer),
                                      &delivery->reference, problem)) {
        delivery->outcome = OUTCOME_DELIVERED;
        settle_thread(delivery);
        return;
    }
    if (is_success)
        snprintf(delivery->reason, sizeof delivery->reason, "%s answered: %s", target->origin,
                 problem);
    else if (delivery->status)
        snprintf(delivery->reason, sizeof delivery->reason, "%s answered HTTP %d",
                 delivery->target->origin, delivery->status);
    else
        snprintf(delivery->reason, sizeof delivery->reason, "%s: %s", delivery->target->origin,
                 detail);
    if (delivery->status == HTTP_GONE)
        delivery->outcome = OUTCOME_DROPPED;
    else
        plan_retry(delivery);
}

char *delivery_target_name(const struct target *target)
{
    const struct config *config = target->notifier->config;
    if (target->config->id)
        return memory_copy_text(target->config->id);
    return memory_format("notify[%zu]", (size_t)(target->config - config->notify));
}

void delivery_set_failing(struct target *target, bool is_failing)
{
    struct notifier *notifier = target->notifier;
    if (target->is_failing == is_failing)
        return;
    target->is_failing = is_failing;
    notifier->failing += is_failing ? 1 : (size_t)-1;
    metrics_set(METRIC_NOTIFIERS_FAILING, (double)notifier->failing, NULL);
    if (!target->config)
        return;
    char *name = delivery_target_name(target);
    metrics_set(METRIC_NOTIFIER_UP, is_failing ? 0 : 1, METRIC_LABELS(str_from(name)));
    free(name);
}

/* Logs one line when a target begins to fail and one when it works again, not one for each try. */
static void delivery_note_health(struct delivery *delivery)
{
    struct target *target = delivery->target;
    bool has_failed = delivery->outcome != OUTCOME_DELIVERED;
    if (has_failed && !target->is_failing)
        log_warn("Notifications fail, and are tried again", LOG_TEXT("endpoint", target->origin),
                 LOG_TEXT("reason", delivery->reason));
    else if (!has_failed && target->is_failing)
        log_info("Notifications arrive again", LOG_TEXT("endpoint", target->origin));
    delivery_set_failing(target, has_failed);
}

static void finish_attempt(struct delivery *delivery, const char *detail)
{
    static const struct {
        struct str label;
        const char *message; /* at the level of an error, where there is one */
    } outcomes[] = {
        [OUTCOME_DELIVERED] = {STR("delivered"), NULL},
        [OUTCOME_RETRIED] = {STR("retried"), NULL},
        [OUTCOME_GIVEN_UP] = {STR("given_up"), "A notification was given up after a day"},
        [OUTCOME_DROPPED] = {STR("dropped"), "A notification was dropped: its endpoint is gone"},
    };
    delivery->call = NULL;
    delivery->mail = NULL;
    loop_timer_stop(&delivery->timer);
    delivery_judge(delivery, detail);
    delivery_note_health(delivery);
    metrics_count(METRIC_NOTIFICATIONS, outcomes[delivery->outcome].label);
    const char *message = outcomes[delivery->outcome].message;
    if (message)
        log_error(message, LOG_TEXT("notification", delivery->text),
                  LOG_NUMBER("attempts", delivery->attempts + 1),
                  LOG_TEXT("reason", delivery->reason));
    delivery_settle(delivery);
}

/* ---- callbacks ---- */

/* RFC 9110 §10.2.3, in seconds; a date is left to the usual pause. */
static int64_t read_wait_ms(const struct http_header *headers, size_t count)
{
    uint64_t seconds;
    for (size_t i = 0; i < count; i++) {
        if (str_equal_ignore_case(headers[i].name, STR("retry-after")) &&
            str_to_u64(headers[i].value, &seconds) && seconds <= MOST_WAIT_S)
            return (int64_t)seconds * 1000;
    }
    return 0;
}

static void delivery_on_head(void *context, int status, const struct http_header *headers,
                             size_t count)
{
    struct delivery *delivery = delivery_from(context);
    delivery->status = status;
    delivery->wait_ms = read_wait_ms(headers, count);
    /* It is not this message that is too much, but all of them together. */
    if (status == HTTP_TOO_MANY)
        delivery->target->resume_ms = clock_monotonic_ms() + delivery->wait_ms;
}

static void end_early(struct delivery *delivery, const char *detail)
{
    upstream_call_cancel(delivery->call);
    finish_attempt(delivery, detail);
}

/* The body keeps the connection usable, and says what came of it; but only up to a limit. */
static void delivery_on_body(void *context, struct str bytes)
{
    struct delivery *delivery = delivery_from(context);
    buffer_append(&delivery->answer, bytes);
    if (delivery->answer.length > MAX_ANSWER_BYTES)
        end_early(delivery, "");
}

static void delivery_on_end(void *context, enum upstream_result result, const char *detail)
{
    (void)result;
    finish_attempt(delivery_from(context), detail);
}

/* It has the status that such an answer would have. */
static void on_mailed(void *context, const struct smtp_result *result)
{
    struct delivery *delivery = delivery_from(context);
    delivery->status = result->is_sent ? HTTP_OK : 0;
    if (result->is_sent && result->refused > 0)
        log_warn("A mail was refused for some of its recipients",
                 LOG_TEXT("endpoint", delivery->target->origin),
                 LOG_NUMBER("recipients", (int64_t)result->refused),
                 LOG_NUMBER("status", result->status));
    finish_attempt(delivery, result->why.message);
}

static void delivery_on_timer(void *context)
{
    struct delivery *delivery = delivery_from(context);
    if (delivery->call)
        end_early(delivery, "no answer within the time limit");
    else
        delivery_settle(delivery);
}

static const struct upstream_callbacks callbacks = {delivery_on_head, delivery_on_body,
                                                    delivery_on_end};
