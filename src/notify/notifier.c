/*
 * The targets, and the looks into the outbox: at each change, when something falls due, and when
 * a delivery has made room.
 */
#include <stdlib.h>
#include <string.h>

#include "notifier_internal.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"

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
        char *name = target->config ? delivery_target_name(target) : NULL;
        if (name)
            metrics_set(METRIC_NOTIFIER_UP, target->is_failing ? 0 : 1,
                        METRIC_LABELS(str_from(name)));
        free(name);
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
    struct store_outbox_target *targets = memory_alloc_array(config->notify_count, sizeof *targets);
    for (size_t i = 0; i < config->notify_count; i++) {
        channel_key(&config->notify[i], targets[i].key);
        targets[i].events = recipients_events(&config->notify[i], config);
        targets[i].with_arguments = config->notify[i].include_arguments;
    }
    store_outbox_configure(notifier->store, targets, config->notify_count,
                           (struct store_call){notifier->loop, on_configured, notifier});
    free(targets);
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
        char *name = delivery_target_name(target);
        if (!is_first)
            buffer_append_char(out, ',');
        buffer_append_json_string(out, str_from(name));
        is_first = false;
        free(name);
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
