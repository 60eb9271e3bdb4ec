/*
 * The targets, and the looks into the outbox: at each change, when something falls due, and when
 * a delivery has made room.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "taskgate/core/assert.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/digest.h"
#include "taskgate/core/list.h"
#include "taskgate/core/log.h"
#include "taskgate/core/magic.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"
#include "taskgate/core/owned.h"
#include "taskgate/core/random.h"
#include "taskgate/notify/notify.h"
#include "taskgate/upstream/upstream.h"

#include "channel.h"
#include "message.h"
#include "recipients.h"
#include "smtp.h"

/* Deliveries under way at once, for each target. */
#define TARGET_DELIVERIES 4
/* The pause before a failed operation of the store is tried again. */
#define STORE_RETRY_MS 1000

struct notifier {
    uint32_t magic; /* NOTIFIER_MAGIC */
    struct loop *loop;
    struct store *store;
    struct config *config; /* NULL before the first */
    struct upstream_client *client;
    struct smtp_client *mailer;
    struct list targets;
    struct loop_timer configure_again;
    bool is_configuring; /* the store has been asked and not yet answered */
    bool is_stale;       /* and must be asked once more */
    bool is_closed;
    size_t failing; /* targets whose last attempt failed */
};
#define NOTIFIER_MAGIC 0x4e4f4e01

static struct notifier *notifier_from(void *context)
{
    return MAGIC_CAST(struct notifier, NOTIFIER_MAGIC, context);
}

struct target {
    uint32_t magic;   /* TARGET_MAGIC */
    struct list node; /* in notifier->targets */
    struct notifier *notifier;
    char key[DIGEST_HEX_BYTES];
    char *origin;                       /* for the log */
    const struct config_notify *config; /* of notifier->config; NULL: no longer configured */
    struct list deliveries;             /* under way */
    size_t delivery_count;
    struct loop_timer due; /* of the next look */
    bool is_looking;       /* the store has been asked and not yet answered */
    bool must_look;        /* and must be asked once more */
    bool is_failing;       /* the last attempt failed */
    int64_t resume_ms;     /* monotonic: the endpoint has asked for a pause until then */
    /* Set by notifier.c. To be called once a delivery has left the list; may free the target. */
    void (*settled)(struct target *target);
};
#define TARGET_MAGIC 0x4e4f5402

static struct target *target_from(void *context)
{
    return MAGIC_CAST(struct target, TARGET_MAGIC, context);
}

/* How an attempt went. */
enum outcome { OUTCOME_DELIVERED, OUTCOME_RETRIED, OUTCOME_GIVEN_UP, OUTCOME_DROPPED };

struct delivery {
    uint32_t magic;   /* DELIVERY_MAGIC */
    struct list node; /* in target->deliveries */
    struct target *target;
    int64_t sequence, attempts, at_ms;
    char *text; /* "decided of tg_…", for the log */
    struct channel_letter letter;
    char id[33];
    unsigned event;
    struct upstream_call *call; /* while it is posted, */
    struct smtp_call *mail;     /* or mailed */
    struct loop_timer timer;    /* of the attempt; then of asking the store again */
    int status;                 /* of the answer; 0 without */
    struct buffer answer;       /* its body, up to a limit */
    int64_t wait_ms;            /* the endpoint's wish before the next attempt; 0: nothing */
    char *reference;            /* the endpoint's name for it, or NULL */
    bool keeps_thread;          /* it has a reference already, or needs none */
    bool stays;                 /* the endpoint hears of the task from now on */
    enum outcome outcome;
    int64_t due_ms; /* OUTCOME_RETRIED */
    char reason[160];
};
#define DELIVERY_MAGIC 0x4e4f4403

static struct delivery *delivery_from(void *context)
{
    return MAGIC_CAST(struct delivery, DELIVERY_MAGIC, context);
}

/* ---- delivery ---- */

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
    ASSERT(!delivery->call && !delivery->mail); /* one attempt at a time */
    ASSERT(delivery->letter.url && delivery->target->config);
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
    ASSERT(!delivery->call && !delivery->mail); /* one attempt at a time */
    delivery->mail = smtp_call_start(target->notifier->mailer, target->config,
                                     buffer_str(&delivery->letter.body), on_mailed, delivery);
}

/* Sends what the store gave; copies what it needs. */
static void delivery_start(struct target *target, const struct store_delivery *due)
{
    ASSERT(target->config);
    ASSERT_NUMBERS(target->delivery_count, <, TARGET_DELIVERIES);
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

/* No callback comes any more. */
static void delivery_destroy(struct delivery *delivery)
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

/* Ends the attempt. One that waits for the store's answer stays until that has come. */
static void delivery_cancel(struct delivery *delivery)
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
    ASSERT(!delivery->call && !delivery->mail); /* the attempt is over */
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

/* "chat", or "notify[2]" of an endpoint without an id; it is configured. The caller frees. */
static char *delivery_target_name(const struct target *target)
{
    const struct config *config = target->notifier->config;
    ASSERT(target->config);
    if (target->config->id)
        return memory_copy_text(target->config->id);
    return memory_format("notify[%zu]", (size_t)(target->config - config->notify));
}

/* Notes how the target's last attempt went. */
static void delivery_set_failing(struct target *target, bool is_failing)
{
    struct notifier *notifier = target->notifier;
    if (target->is_failing == is_failing)
        return;
    target->is_failing = is_failing;
    ASSERT(is_failing || notifier->failing > 0); /* it counts the failing targets */
    notifier->failing += is_failing ? 1 : (size_t)-1;
    metrics_set(METRIC_NOTIFIERS_FAILING, (double)notifier->failing, NULL);
    if (!target->config)
        return;
    OWNED char *name = delivery_target_name(target);
    metrics_set(METRIC_NOTIFIER_UP, is_failing ? 0 : 1, METRIC_LABELS(str_from(name)));
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
    ASSERT(!delivery->call != !delivery->mail); /* one attempt of one kind */
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
    ASSERT(delivery->call);
    upstream_call_cancel(delivery->call);
    finish_attempt(delivery, detail);
}

/* The body keeps the connection usable, and says what came of it; but only up to a limit. */
static void delivery_on_body(void *context, struct str bytes)
{
    struct delivery *delivery = delivery_from(context);
    ASSERT_NUMBERS(delivery->answer.length, <=, MAX_ANSWER_BYTES);
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

#define IDLE_CONNECTIONS 16
/* The longest time between two looks, whatever the wall clock does meanwhile. */
#define LONGEST_WAIT_MS 60000

static void notifier_look(struct target *target);

/* ---- targets ---- */

static void on_target_due(void *context)
{
    notifier_look(target_from(context));
}

static void destroy_target(struct target *target)
{
    loop_timer_stop(&target->due);
    LIST_FOR_EACH_SAFE (node, next, &target->deliveries)
        delivery_destroy(LIST_ENTRY(node, struct delivery, node));
    ASSERT_NUMBERS(target->delivery_count, ==, 0); /* it counts the list */
    list_remove(&target->node);
    free(target->origin);
    MAGIC_CLEAR(target);
    free(target);
}

/* After a delivery has left the list, or an answer has come. Frees a target that is gone. */
static void notifier_settle(struct target *target)
{
    if (target->config)
        notifier_look(target);
    else if (!target->is_looking && target->delivery_count == 0)
        destroy_target(target);
}

static struct target *notifier_add_target(struct notifier *notifier, const char *key,
                                          const char *url)
{
    struct target *target = memory_alloc(sizeof *target);
    MAGIC_SET(target, TARGET_MAGIC);
    target->notifier = notifier;
    target->settled = notifier_settle;
    memcpy(target->key, key, sizeof target->key);
    target->origin = message_origin(str_from(url));
    list_init(&target->deliveries);
    list_append(&notifier->targets, &target->node);
    loop_timer_init(&target->due, notifier->loop, on_target_due, target);
    return target;
}

/* After the list has changed, for names go and come. */
static void notifier_show_health(struct notifier *notifier)
{
    metrics_reset(METRIC_NOTIFIER_UP);
    LIST_FOR_EACH_SAFE (node, next, &notifier->targets) {
        const struct target *target = LIST_ENTRY(node, struct target, node);
        OWNED char *name = target->config ? delivery_target_name(target) : NULL;
        if (name)
            metrics_set(METRIC_NOTIFIER_UP, target->is_failing ? 0 : 1,
                        METRIC_LABELS(str_from(name)));
    }
}

static struct target *notifier_find_target(struct notifier *notifier, const char *key)
{
    LIST_FOR_EACH_SAFE (node, next, &notifier->targets) {
        struct target *target = LIST_ENTRY(node, struct target, node);
        if (strcmp(target->key, key) == 0)
            return target;
    }
    return NULL;
}

/* ---- looking ---- */

static bool notifier_is_under_way(const struct target *target, int64_t sequence)
{
    LIST_FOR_EACH_SAFE (node, next, &target->deliveries) {
        if (LIST_ENTRY(node, struct delivery, node)->sequence == sequence)
            return true;
    }
    return false;
}

static void start_due(struct target *target, const struct store_reply *reply)
{
    for (size_t i = 0; i < reply->delivery_count; i++) {
        const struct store_delivery *due = &reply->deliveries[i];
        bool is_paused = target->resume_ms > clock_monotonic_ms();
        if (target->delivery_count < TARGET_DELIVERIES && !is_paused &&
            !notifier_is_under_way(target, due->sequence))
            delivery_start(target, due);
    }
}

static void look_again_in(struct target *target, int64_t delay_ms)
{
    if (delay_ms > LONGEST_WAIT_MS)
        delay_ms = LONGEST_WAIT_MS;
    loop_timer_start(&target->due, delay_ms < 0 ? 0 : delay_ms);
}

static void on_due(void *context, const struct store_reply *reply)
{
    struct target *target = target_from(context);
    if (target->notifier->is_closed)
        return;
    ASSERT(target->is_looking);
    target->is_looking = false;
    if (!target->config) {
        notifier_settle(target);
    } else if (reply->status != STORE_OK) {
        look_again_in(target, STORE_RETRY_MS);
    } else {
        if (reply->next_due_ms != INT64_MAX)
            look_again_in(target, reply->next_due_ms - clock_now_ms());
        start_due(target, reply);
        if (target->must_look)
            notifier_look(target);
    }
}

static void notifier_look(struct target *target)
{
    struct notifier *notifier = target->notifier;
    /* Before the store knows the targets it holds nothing for them, or the notices of earlier
     * ones. A full target looks again when a delivery leaves. */
    if (!target->config || notifier->is_configuring || target->delivery_count == TARGET_DELIVERIES)
        return;
    target->must_look = target->is_looking;
    if (target->is_looking)
        return;
    int64_t pause_ms = target->resume_ms - clock_monotonic_ms();
    if (pause_ms > 0) {
        look_again_in(target, pause_ms);
        return;
    }
    target->is_looking = true;
    /* The deliveries under way are among the answer's. */
    store_outbox_due(notifier->store, str_from(target->key), TARGET_DELIVERIES,
                     (struct store_call){notifier->loop, on_due, target});
}

static void look_everywhere(struct notifier *notifier)
{
    LIST_FOR_EACH_SAFE (node, next, &notifier->targets)
        notifier_look(LIST_ENTRY(node, struct target, node));
}

static void on_notices(void *context)
{
    struct notifier *notifier = notifier_from(context);
    if (!notifier->is_closed)
        look_everywhere(notifier);
}

/* ---- configuring ---- */

static void tell_store(struct notifier *notifier);

static void on_configured(void *context, const struct store_reply *reply)
{
    struct notifier *notifier = notifier_from(context);
    if (notifier->is_closed)
        return;
    ASSERT(notifier->is_configuring);
    notifier->is_configuring = false;
    if (reply->status != STORE_OK) {
        loop_timer_start(&notifier->configure_again, STORE_RETRY_MS);
    } else if (notifier->is_stale) {
        tell_store(notifier);
    } else {
        if (notifier->config->notify_count > 0)
            log_info("Endpoints are told of tasks",
                     LOG_NUMBER("endpoints", (int64_t)notifier->config->notify_count));
        look_everywhere(notifier);
    }
}

static void tell_store(struct notifier *notifier)
{
    const struct config *config = notifier->config;
    notifier->is_stale = notifier->is_configuring;
    if (notifier->is_configuring)
        return;
    notifier->is_configuring = true;
    OWNED struct store_outbox_target *targets =
        memory_alloc_array(config->notify_count, sizeof *targets);
    for (size_t i = 0; i < config->notify_count; i++) {
        channel_key(&config->notify[i], targets[i].key);
        targets[i].events = recipients_events(&config->notify[i], config);
        targets[i].with_arguments = config->notify[i].include_arguments;
    }
    store_outbox_configure(notifier->store, targets, config->notify_count,
                           (struct store_call){notifier->loop, on_configured, notifier});
}

static void on_configure_again(void *context)
{
    tell_store(notifier_from(context));
}

static void notifier_let_go(struct target *target)
{
    delivery_set_failing(target, false);
    LIST_FOR_EACH_SAFE (node, next, &target->deliveries)
        delivery_cancel(LIST_ENTRY(node, struct delivery, node));
    loop_timer_stop(&target->due);
    notifier_settle(target);
}

void notifier_configure(struct notifier *notifier, struct config *config)
{
    struct config *old = notifier->config;
    notifier->config = config_ref(config);
    LIST_FOR_EACH_SAFE (node, next, &notifier->targets)
        LIST_ENTRY(node, struct target, node)->config = NULL;
    for (size_t i = 0; i < config->notify_count; i++) {
        char key[DIGEST_HEX_BYTES];
        channel_key(&config->notify[i], key);
        struct target *target = notifier_find_target(notifier, key);
        if (!target)
            target = notifier_add_target(notifier, key, config->notify[i].url);
        target->config = &config->notify[i];
    }
    LIST_FOR_EACH_SAFE (node, next, &notifier->targets) {
        struct target *target = LIST_ENTRY(node, struct target, node);
        if (!target->config)
            notifier_let_go(target);
    }
    config_unref(old);
    notifier_show_health(notifier);
    tell_store(notifier);
}

/* ---- life ---- */

struct notifier *notifier_create(struct loop *loop, struct store *store, struct error *error)
{
    struct notifier *notifier = memory_alloc(sizeof *notifier);
    MAGIC_SET(notifier, NOTIFIER_MAGIC);
    notifier->loop = loop;
    notifier->store = store;
    notifier->client = upstream_client_create(loop, IDLE_CONNECTIONS, error);
    if (!notifier->client) {
        free(notifier);
        return NULL;
    }
    notifier->mailer = smtp_client_create(loop);
    list_init(&notifier->targets);
    loop_timer_init(&notifier->configure_again, loop, on_configure_again, notifier);
    store_outbox_observe(store, loop, on_notices, notifier);
    return notifier;
}

bool notifier_has_endpoints(const struct notifier *notifier)
{
    return notifier->config && notifier->config->notify_count > 0;
}

bool notifier_is_failing(const struct notifier *notifier)
{
    return notifier->failing > 0;
}

void notifier_write_failing(const struct notifier *notifier, struct buffer *out)
{
    bool is_first = true;
    buffer_append_char(out, '[');
    LIST_FOR_EACH_SAFE (node, next, &notifier->targets) {
        const struct target *target = LIST_ENTRY(node, struct target, node);
        if (!target->is_failing || !target->config)
            continue;
        OWNED char *name = delivery_target_name(target);
        if (!is_first)
            buffer_append_char(out, ',');
        buffer_append_json_string(out, str_from(name));
        is_first = false;
    }
    buffer_append_char(out, ']');
}

void notifier_close(struct notifier *notifier)
{
    if (!notifier)
        return;
    notifier->is_closed = true;
    upstream_client_destroy(notifier->client);
    smtp_client_close(notifier->mailer);
    loop_timer_stop(&notifier->configure_again);
    LIST_FOR_EACH_SAFE (node, next, &notifier->targets) {
        struct target *target = LIST_ENTRY(node, struct target, node);
        loop_timer_stop(&target->due);
        LIST_FOR_EACH_SAFE (inner, after, &target->deliveries)
            loop_timer_stop(&LIST_ENTRY(inner, struct delivery, node)->timer);
    }
}

void notifier_destroy(struct notifier *notifier)
{
    if (!notifier)
        return;
    LIST_FOR_EACH_SAFE (node, next, &notifier->targets)
        destroy_target(LIST_ENTRY(node, struct target, node));
    smtp_client_destroy(notifier->mailer);
    config_unref(notifier->config);
    MAGIC_CLEAR(notifier);
    free(notifier);
}
