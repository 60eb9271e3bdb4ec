/* The queue, and the thread behind it. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporter.h"
#include "otlp.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/buffer.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/error.h"
#include "taskgate/core/log.h"
#include "taskgate/core/magic.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"
#include "taskgate/core/owned.h"
#include "taskgate/core/random.h"
#include "taskgate/upstream/upstream.h"

/* The resource's attributes: the first that names one sets it. */

#define SERVICE_NAME "taskgate"

static const char *exporter_process_environment(const char *name)
{
    return getenv(name);
}

static bool exporter_has(const struct resource *resource, const char *name)
{
    for (size_t i = 0; i < resource->count; i++) {
        if (strcmp(resource->items[i].name, name) == 0)
            return true;
    }
    return false;
}

static void exporter_add(struct resource *resource, const char *name, const char *value)
{
    if (!value || !*value || !str_is_utf8(str_from(value)) || exporter_has(resource, name))
        return;
    resource->items =
        memory_grow_array(resource->items, resource->count + 1, sizeof *resource->items);
    resource->items[resource->count++] =
        (struct config_pair){memory_copy_text(name), memory_copy_text(value)};
}

/* The environment is that of the process where `environment` is NULL. */
static void resource_init(struct resource *resource, const struct config_telemetry *telemetry,
                          config_getenv environment)
{
    /* Kubernetes' downward API gives these, under the names that ThoughtGate reads. */
    static const char *const places[][2] = {{"k8s.namespace.name", "K8S_NAMESPACE"},
                                            {"k8s.pod.name", "POD_NAME"},
                                            {"k8s.node.name", "NODE_NAME"},
                                            {"host.name", "HOSTNAME"}};
    char instance[RANDOM_UUID_BYTES];
    if (!environment)
        environment = exporter_process_environment;
    *resource = (struct resource){0};
    exporter_add(resource, "service.name", environment("OTEL_SERVICE_NAME"));
    for (size_t i = 0; i < telemetry->resource_count; i++)
        exporter_add(resource, telemetry->resource[i].name, telemetry->resource[i].value);
    exporter_add(resource, "service.name", SERVICE_NAME);
    exporter_add(resource, "service.version", TASKGATE_VERSION);
    random_uuid(instance);
    exporter_add(resource, "service.instance.id", instance);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        exporter_add(resource, places[i][0], environment(places[i][1]));
}

static void resource_finish(struct resource *resource)
{
    for (size_t i = 0; i < resource->count; i++) {
        free(resource->items[i].name);
        free(resource->items[i].value);
    }
    free(resource->items);
    *resource = (struct resource){0};
}

/* Back-off. */

#define FIRST_MS INT64_C(500)
#define MOST_DOUBLINGS 6 /* 32 s */

bool retry_is_useful(int status)
{
    return status == 0 || status == 429 || status == 502 || status == 503 || status == 504;
}

int64_t retry_pause_ms(unsigned failures, int64_t asked_ms)
{
    unsigned doublings = failures > 0 ? failures - 1 : 0;
    unsigned chance;
    if (asked_ms > 0)
        return asked_ms;
    int64_t pause_ms = FIRST_MS << (doublings < MOST_DOUBLINGS ? doublings : MOST_DOUBLINGS);
    ASSERT_NUMBERS(pause_ms, >=, 4);
    random_bytes(&chance, sizeof chance);
    /* Between three quarters and all of it, so that many gateways do not come at once. */
    return pause_ms - (int64_t)(chance % (unsigned)(pause_ms / 4));
}

struct transport;

struct transport_reply {
    int status;             /* 0: there is no response */
    int64_t retry_after_ms; /* 0: the collector names none */
    struct buffer body;     /* cut at a bound */
    char problem[ERROR_MESSAGE_BYTES];
};

/* One request to the collector at a time. */

#define IDLE_CONNECTIONS 1
#define CONNECT_MS 5000
#define MOST_RESPONSE_BYTES ((size_t)64 * 1024)
#define MOST_RETRY_AFTER_S 300
#define LONGEST_ROUND_MS 1000

struct transport {
    uint32_t magic; /* TRANSPORT_MAGIC */
    const struct config_telemetry *telemetry;
    struct loop *loop;
    struct upstream_client *client;
    struct upstream_call *call; /* under way, or NULL */
    struct transport_reply *reply;
};
#define TRANSPORT_MAGIC 0x544d5401

static struct transport *transport_from(void *context)
{
    return MAGIC_CAST(struct transport, TRANSPORT_MAGIC, context);
}

static void transport_destroy(struct transport *transport);

/* NULL on failure. The configuration must outlive it. */
static struct transport *transport_create(const struct config_telemetry *telemetry,
                                          struct error *error)
{
    struct transport *transport = memory_alloc(sizeof *transport);
    MAGIC_SET(transport, TRANSPORT_MAGIC);
    transport->telemetry = telemetry;
    transport->loop = loop_create(error);
    if (transport->loop)
        transport->client = upstream_client_create(transport->loop, IDLE_CONNECTIONS, error);
    if (transport->client)
        return transport;
    transport_destroy(transport);
    return NULL;
}

/* NULL is allowed */
static void transport_destroy(struct transport *transport)
{
    if (!transport)
        return;
    ASSERT(!transport->call);
    upstream_client_destroy(transport->client);
    loop_destroy(transport->loop);
    MAGIC_CLEAR(transport);
    free(transport);
}

static void exporter_wake(void *context)
{
    (void)context; /* the round that it begins is all */
}

/* Has a post look at its time again. Any thread. */
static void transport_interrupt(struct transport *transport)
{
    loop_post(transport->loop, exporter_wake, NULL);
}

/* ---- the response ---- */

/* RFC 9110 §10.2.3, in seconds; a date is left to the usual pause. */
static int64_t read_retry_after_ms(const struct http_header *headers, size_t count)
{
    uint64_t seconds;
    for (size_t i = 0; i < count; i++) {
        if (str_equal_ignore_case(headers[i].name, STR("retry-after")) &&
            str_to_u64(headers[i].value, &seconds))
            return (int64_t)(seconds < MOST_RETRY_AFTER_S ? seconds : MOST_RETRY_AFTER_S) * 1000;
    }
    return 0;
}

static void exporter_on_head(void *context, int status, const struct http_header *headers,
                             size_t count)
{
    struct transport_reply *reply = transport_from(context)->reply;
    reply->status = status;
    reply->retry_after_ms = read_retry_after_ms(headers, count);
}

static void exporter_on_body(void *context, struct str bytes)
{
    struct buffer *body = &transport_from(context)->reply->body;
    ASSERT_NUMBERS(body->length, <=, MOST_RESPONSE_BYTES);
    size_t room = MOST_RESPONSE_BYTES - body->length;
    buffer_append(body, str_slice(bytes.bytes, bytes.length < room ? bytes.length : room));
}

static void exporter_on_end(void *context, enum upstream_result result, const char *detail)
{
    struct transport *transport = transport_from(context);
    struct transport_reply *reply = transport->reply;
    transport->call = NULL;
    if (result == UPSTREAM_DONE)
        return;
    reply->status = 0;
    snprintf(reply->problem, sizeof reply->problem, "%s",
             detail && *detail ? detail : "the connection broke");
}

/* ---- the request ---- */

static void exporter_start(struct transport *transport, struct str body)
{
    static const struct upstream_callbacks callbacks = {exporter_on_head, exporter_on_body,
                                                        exporter_on_end};
    const struct config_telemetry *telemetry = transport->telemetry;
    size_t count = telemetry->header_count + 2;
    struct http_header *headers = memory_alloc_array(count, sizeof *headers);
    headers[0] = (struct http_header){STR("content-type"), telemetry->protocol == OTLP_JSON
                                                               ? STR("application/json")
                                                               : STR("application/x-protobuf")};
    headers[1] = (struct http_header){STR("user-agent"), STR("taskgate/" TASKGATE_VERSION)};
    for (size_t i = 0; i < telemetry->header_count; i++)
        headers[i + 2] = (struct http_header){str_from(telemetry->headers[i].name),
                                              str_from(telemetry->headers[i].value)};
    const struct upstream_request request = {
        .method = "POST",
        .url = telemetry->url,
        .tls = telemetry->tls,
        .headers = headers,
        .header_count = count,
        .body = body,
        .connect_timeout_ms = CONNECT_MS,
    };
    transport->call = upstream_call_start(transport->client, &request, &callbacks, transport);
    free(headers);
}

/* Waits for the response until that moment (monotonic), which `until_ms` may bring forward while it
 * waits. Always call buffer_finish() on the reply's body. */
static void transport_post(struct transport *transport, struct str body,
                           int64_t (*until_ms)(void *), void *context,
                           struct transport_reply *reply)
{
    ASSERT(!transport->call && !transport->reply); /* one request at a time */
    *reply = (struct transport_reply){0};
    transport->reply = reply;
    loop_run_once(transport->loop, 0); /* sees that an idle connection was closed */
    exporter_start(transport, body);
    while (transport->call) {
        int64_t left_ms = until_ms(context) - clock_monotonic_ms();
        if (left_ms <= 0) {
            upstream_call_cancel(transport->call);
            transport->call = NULL;
            reply->status = 0;
            snprintf(reply->problem, sizeof reply->problem, "no answer within the time limit");
            break;
        }
        loop_run_once(transport->loop,
                      (int)(left_ms < LONGEST_ROUND_MS ? left_ms : LONGEST_ROUND_MS));
    }
    ASSERT(!transport->call); /* nothing writes to `reply` any more */
    transport->reply = NULL;
}

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
            ASSERT_NUMBERS(exporter->waiting, <=, (size_t)exporter->telemetry->max_queue_size);
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
static void exporter_note_failure(struct exporter *exporter, const struct transport_reply *reply)
{
    if (exporter->failures++ > 0)
        return;
    log_warn("The collector does not take telemetry",
             LOG_TEXT("endpoint", exporter->telemetry->origin), LOG_NUMBER("status", reply->status),
             LOG_TEXT("reason", reply->problem));
}

static void note_success(struct exporter *exporter, const struct transport_reply *reply)
{
    OWNED_BUFFER(why);
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
}

/* Whether the collector has the batch. `retry_ms` gets the time before another attempt; -1: another
 * is useless. */
static bool exporter_post(struct exporter *exporter, struct str body, int64_t *retry_ms)
{
    struct deadline deadline = {exporter,
                                clock_monotonic_ms() + exporter->telemetry->export_timeout_ms};
    struct transport_reply reply;
    transport_post(exporter->transport, body, until_ms, &deadline, &reply);
    bool is_taken = reply.status >= 200 && reply.status < 300;
    if (is_taken) {
        note_success(exporter, &reply);
    } else {
        exporter_note_failure(exporter, &reply);
        *retry_ms = retry_is_useful(reply.status)
                        ? retry_pause_ms(exporter->failures, reply.retry_after_ms)
                        : -1;
    }
    buffer_finish(&reply.body);
    return is_taken;
}

static void send_batch(struct exporter *exporter, struct list *spans)
{
    ASSERT(!list_is_empty(spans));
    OWNED_BUFFER(body);
    bool is_taken = false;
    int64_t retry_ms = 0;
    if (exporter->telemetry->protocol == OTLP_JSON)
        otlp_write_json(&body, &exporter->resource, spans);
    else
        otlp_write_protobuf(&body, &exporter->resource, spans);
    for (int attempt = 1; attempt <= MOST_ATTEMPTS; attempt++) {
        is_taken = exporter_post(exporter, buffer_str(&body), &retry_ms);
        if (is_taken || retry_ms < 0 || attempt == MOST_ATTEMPTS || !pause_ms(exporter, retry_ms))
            break;
    }
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
        ASSERT(!list_is_empty(&exporter->queue)); /* `waiting` counts it */
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

static void *exporter_run(void *context)
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
    int code = pthread_create(&exporter->thread, NULL, exporter_run, exporter);
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
    ASSERT(!current); /* there is one at a time */
    current = exporter;
    return exporter;
}

void exporter_destroy(struct exporter *exporter, int64_t end_ms)
{
    if (!exporter)
        return;
    ASSERT(current == exporter);
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
