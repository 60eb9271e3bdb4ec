/* The queue, and the thread behind it. */
#include "exporter.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "otlp.h"
#include "retry.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"
#include "taskgate/core/magic.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"
#include "transport.h"

#define MOST_ATTEMPTS 3 /* to send one batch */

struct exporter {
    uint32_t magic; /* EXPORTER_MAGIC */
    const struct config_telemetry *telemetry;
    struct resource resource;
    pthread_t thread;

    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t changed;
    struct list queue; /* struct span.node */
    size_t waiting;
    bool has_started, is_ending;
    int64_t end_ms; /* monotonic; once it is ending */

    /* The thread's. */
    struct transport *transport;
    struct error error;
    int64_t pause_until_ms;
    unsigned failures; /* in a row */
};
#define EXPORTER_MAGIC 0x544d5402

static struct exporter *exporter_from(void *context)
{
    return MAGIC_CAST(struct exporter, EXPORTER_MAGIC, context);
}

/* The one that spans go to: written before there are other threads, and after they have ended. */
static struct exporter *current;

static void count_dropped(size_t count)
{
    metrics_add(METRIC_TELEMETRY_DROPPED, (double)count, METRIC_LABELS(STR("traces")));
}

/* ---- taking spans ---- */

void exporter_take(struct span *span)
{
    struct exporter *exporter = current;
    bool is_full = !exporter;
    if (exporter) {
        pthread_mutex_lock(&exporter->lock);
        is_full = exporter->waiting >= (size_t)exporter->telemetry->max_queue_size;
        if (!is_full) {
            list_append(&exporter->queue, &span->node);
            exporter->waiting++;
            /* The first starts the clock of its batch, the last ends it. */
            if (exporter->waiting == 1 ||
                exporter->waiting == (size_t)exporter->telemetry->max_export_batch_size)
                pthread_cond_signal(&exporter->changed);
        }
        pthread_mutex_unlock(&exporter->lock);
    }
    if (!is_full)
        return;
    count_dropped(1);
    span_destroy(span);
}

/* ---- the thread: one batch ---- */

static size_t destroy_spans(struct list *spans)
{
    size_t count = 0;
    LIST_FOR_EACH_SAFE (node, next, spans) {
        list_remove(node);
        span_destroy(LIST_ENTRY(node, struct span, node));
        count++;
    }
    return count;
}

struct deadline {
    struct exporter *exporter;
    int64_t until_ms;
};

/* The end of the process brings the deadline forward. */
static int64_t until_ms(void *context)
{
    const struct deadline *deadline = context;
    struct exporter *exporter = deadline->exporter;
    pthread_mutex_lock(&exporter->lock);
    bool is_earlier = exporter->is_ending && exporter->end_ms < deadline->until_ms;
    int64_t until = is_earlier ? exporter->end_ms : deadline->until_ms;
    pthread_mutex_unlock(&exporter->lock);
    return until;
}

/* false: the process ends, and there is no time to wait for another attempt. */
static bool pause_ms(struct exporter *exporter, int64_t for_ms)
{
    int64_t end_ms = clock_monotonic_ms() + for_ms;
    struct timespec until = clock_monotonic_until(end_ms);
    pthread_mutex_lock(&exporter->lock);
    while (!exporter->is_ending && clock_monotonic_ms() < end_ms)
        pthread_cond_timedwait(&exporter->changed, &exporter->lock, &until);
    bool goes_on = !exporter->is_ending;
    pthread_mutex_unlock(&exporter->lock);
    return goes_on;
}

/* One line when it begins to fail, and one when it works again. */
static void note_failure(struct exporter *exporter, const struct transport_reply *reply)
{
    if (exporter->failures++ > 0)
        return;
    log_warn("The collector does not take telemetry",
             LOG_TEXT("endpoint", exporter->telemetry->origin), LOG_NUMBER("status", reply->status),
             LOG_TEXT("reason", reply->problem));
}

static void note_success(struct exporter *exporter, const struct transport_reply *reply)
{
    struct buffer why = {0};
    int64_t rejected = otlp_read_rejected(buffer_str(&reply->body),
                                          exporter->telemetry->protocol == OTLP_JSON, &why);
    if (exporter->failures > 0)
        log_info("The collector takes telemetry again",
                 LOG_TEXT("endpoint", exporter->telemetry->origin));
    exporter->failures = 0;
    if (rejected > 0) {
        count_dropped((size_t)rejected);
        log_warn("The collector has rejected spans", LOG_NUMBER("count", rejected),
                 LOG_STR("reason", buffer_str(&why)));
    }
    buffer_finish(&why);
}

/* Whether the collector has the batch. `retry_ms` gets the time before another attempt; -1: another
 * is useless. */
static bool post(struct exporter *exporter, struct str body, int64_t *retry_ms)
{
    struct deadline deadline = {exporter,
                                clock_monotonic_ms() + exporter->telemetry->export_timeout_ms};
    struct transport_reply reply;
    transport_post(exporter->transport, body, until_ms, &deadline, &reply);
    bool is_taken = reply.status >= 200 && reply.status < 300;
    if (is_taken) {
        note_success(exporter, &reply);
    } else {
        note_failure(exporter, &reply);
        *retry_ms = retry_is_useful(reply.status)
                        ? retry_pause_ms(exporter->failures, reply.retry_after_ms)
                        : -1;
    }
    buffer_finish(&reply.body);
    return is_taken;
}

static void send_batch(struct exporter *exporter, struct list *spans)
{
    struct buffer body = {0};
    bool is_taken = false;
    int64_t retry_ms = 0;
    if (exporter->telemetry->protocol == OTLP_JSON)
        otlp_write_json(&body, &exporter->resource, spans);
    else
        otlp_write_protobuf(&body, &exporter->resource, spans);
    for (int attempt = 1; attempt <= MOST_ATTEMPTS; attempt++) {
        is_taken = post(exporter, buffer_str(&body), &retry_ms);
        if (is_taken || retry_ms < 0 || attempt == MOST_ATTEMPTS || !pause_ms(exporter, retry_ms))
            break;
    }
    buffer_finish(&body);
    size_t count = destroy_spans(spans);
    if (is_taken)
        return;
    count_dropped(count);
    exporter->pause_until_ms = retry_ms > 0 ? clock_monotonic_ms() + retry_ms : 0;
}

/* ---- the thread: its life ---- */

static void cut_batch(struct exporter *exporter, struct list *batch)
{
    for (int64_t i = 0; i < exporter->telemetry->max_export_batch_size && exporter->waiting > 0;
         i++) {
        struct list *node = exporter->queue.next;
        list_remove(node);
        list_append(batch, node);
        exporter->waiting--;
    }
}

/* The moment at which what waits now is sent. */
static int64_t due_ms(const struct exporter *exporter, int64_t first_seen_ms)
{
    bool is_full = exporter->waiting >= (size_t)exporter->telemetry->max_export_batch_size;
    int64_t due = is_full ? 0 : first_seen_ms + exporter->telemetry->scheduled_delay_ms;
    return due > exporter->pause_until_ms ? due : exporter->pause_until_ms;
}

/* Waits for a batch that is due. false: none is left, and the process ends. */
static bool next_batch(struct exporter *exporter, struct list *batch)
{
    int64_t first_seen_ms = 0;
    pthread_mutex_lock(&exporter->lock);
    while (!exporter->is_ending) {
        if (exporter->waiting == 0) {
            pthread_cond_wait(&exporter->changed, &exporter->lock);
            continue;
        }
        int64_t now_ms = clock_monotonic_ms();
        if (first_seen_ms == 0)
            first_seen_ms = now_ms;
        int64_t due = due_ms(exporter, first_seen_ms);
        if (now_ms >= due)
            break;
        struct timespec until = clock_monotonic_until(due);
        pthread_cond_timedwait(&exporter->changed, &exporter->lock, &until);
    }
    bool has_time = !exporter->is_ending || clock_monotonic_ms() < exporter->end_ms;
    if (has_time)
        cut_batch(exporter, batch);
    pthread_mutex_unlock(&exporter->lock);
    return !list_is_empty(batch);
}

static void drop_queue(struct exporter *exporter)
{
    size_t count = destroy_spans(&exporter->queue);
    if (count == 0)
        return;
    count_dropped(count);
    log_warn("Spans were dropped at the end of the process", LOG_NUMBER("count", (int64_t)count));
}

static void *run(void *context)
{
    struct exporter *exporter = exporter_from(context);
    struct transport *transport = transport_create(exporter->telemetry, &exporter->error);
    struct list batch;
    list_init(&batch);
    pthread_mutex_lock(&exporter->lock);
    exporter->transport = transport;
    exporter->has_started = true;
    pthread_cond_broadcast(&exporter->changed);
    pthread_mutex_unlock(&exporter->lock);
    while (transport && next_batch(exporter, &batch))
        send_batch(exporter, &batch);
    transport_destroy(transport); /* its loop belongs to this thread */
    return NULL;
}

static void exporter_free(struct exporter *exporter)
{
    resource_finish(&exporter->resource);
    pthread_mutex_destroy(&exporter->lock);
    pthread_cond_destroy(&exporter->changed);
    MAGIC_CLEAR(exporter);
    free(exporter);
}

struct exporter *exporter_create(const struct config_telemetry *telemetry, struct error *error)
{
    struct exporter *exporter = memory_alloc(sizeof *exporter);
    MAGIC_SET(exporter, EXPORTER_MAGIC);
    exporter->telemetry = telemetry;
    resource_init(&exporter->resource, telemetry, NULL);
    pthread_mutex_init(&exporter->lock, NULL);
    clock_condition_init(&exporter->changed);
    list_init(&exporter->queue);
    int code = pthread_create(&exporter->thread, NULL, run, exporter);
    if (code != 0) {
        error_set(error, "cannot start the thread that exports telemetry: %s", strerror(code));
        exporter_free(exporter);
        return NULL;
    }
    pthread_mutex_lock(&exporter->lock);
    while (!exporter->has_started)
        pthread_cond_wait(&exporter->changed, &exporter->lock);
    pthread_mutex_unlock(&exporter->lock);
    if (!exporter->transport) {
        pthread_join(exporter->thread, NULL);
        error_set(error, "%s", exporter->error.message);
        exporter_free(exporter);
        return NULL;
    }
    count_dropped(0); /* so that the series is there before anything is lost */
    current = exporter;
    return exporter;
}

void exporter_destroy(struct exporter *exporter, int64_t end_ms)
{
    if (!exporter)
        return;
    current = NULL;
    pthread_mutex_lock(&exporter->lock);
    exporter->is_ending = true;
    exporter->end_ms = end_ms;
    pthread_cond_broadcast(&exporter->changed);
    transport_interrupt(exporter->transport); /* it lives until the thread has seen the end */
    pthread_mutex_unlock(&exporter->lock);
    pthread_join(exporter->thread, NULL);
    drop_queue(exporter);
    exporter_free(exporter);
}
