/* Requests of the gateway's own. */
#include "rpc_call.h"

#include <stdio.h>
#include <stdlib.h>

#include "state/server_status.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"
#include "taskgate/core/random.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/reply_check.h"
#include "taskgate/mcp/sse.h"

/* How soon the rest of a stream is asked for: as upstream has it, within bounds. */
#define RETRY_MS 1000
#define RETRY_LEAST_MS 100
#define RETRY_MOST_MS 60000
#define MOST_FAILURES 3

struct ask {
    struct list node; /* in worker.asks */
    struct gateway_worker *worker;
    struct snapshot *snapshot;
    const struct config_source *source;
    struct ask_callbacks callbacks;
    void *context;
    struct upstream_call *upstream;
    struct headers request_headers, headers;
    struct buffer body; /* of the request */
    struct buffer id;
    struct buffer received;
    struct buffer message; /* the answer, once it is there */
    struct sse_splitter splitter;
    struct loop_timer deadline;
    size_t most_bytes;
    int64_t started_ms;
    int64_t silence_ms;
    int status;
    bool is_stream, is_encoded, too_large;
    bool is_anothers;         /* the reply is to another request */
    struct reply_check reply; /* of a JSON body */

    /* An event stream that ended before the answer goes on behind its last event. */
    struct buffer last_id;
    struct loop_timer again;
    int64_t retry_ms; /* as upstream has it */
    int64_t heard_ms; /* monotonic: when its last byte came */
    int failures;     /* to open the rest, one after the other */
    bool is_rest;     /* what is under way is the rest, and */
    bool is_refused;  /* upstream does not give it */
};

void ask_write_request(struct buffer *body, struct buffer *id, const char *method,
                       struct str params)
{
    char uuid[RANDOM_UUID_BYTES];
    random_uuid(uuid);
    buffer_append_format(id, "\"tg:%s\"", uuid);
    buffer_append_text(body, "{\"jsonrpc\":\"2.0\",\"id\":");
    buffer_append(body, buffer_str(id));
    buffer_append_format(body, ",\"method\":\"%s\"", method);
    if (params.length > 0) {
        buffer_append_text(body, ",\"params\":");
        buffer_append(body, params);
    }
    buffer_append_char(body, '}');
}

static void ask_destroy(struct ask *ask)
{
    list_remove(&ask->node);
    loop_timer_stop(&ask->deadline);
    loop_timer_stop(&ask->again);
    buffer_finish(&ask->last_id);
    headers_finish(&ask->request_headers);
    headers_finish(&ask->headers);
    buffer_finish(&ask->body);
    reply_check_finish(&ask->reply);
    buffer_finish(&ask->id);
    buffer_finish(&ask->received);
    buffer_finish(&ask->message);
    snapshot_unref(ask->snapshot);
    free(ask);
}

void ask_cancel(struct ask *ask)
{
    if (!ask)
        return;
    if (ask->upstream)
        upstream_call_cancel(ask->upstream);
    ask_destroy(ask);
}

void ask_set_silence(struct ask *ask, int64_t silence_ms)
{
    ask->silence_ms = silence_ms;
    ask->heard_ms = clock_monotonic_ms();
    if (ask->upstream)
        upstream_call_set_silence(ask->upstream, silence_ms);
}

void ask_cancel_all(struct gateway_worker *worker)
{
    LIST_FOR_EACH_SAFE (node, next, &worker->asks) {
        struct ask *ask = LIST_ENTRY(node, struct ask, node);
        if (ask->callbacks.dropped)
            ask->callbacks.dropped(ask->context);
        ask_cancel(ask);
    }
}

/* Tells the asker and ends. */
static void conclude(struct ask *ask, enum upstream_result result, const char *detail)
{
    struct str source = str_from(ask->source->id);
    struct ask_reply reply = {
        .result = result,
        .status = ask->status,
        .headers = &ask->headers,
        .message = buffer_str(&ask->message),
        .body = ask->is_stream ? STR_EMPTY : buffer_str(&ask->received),
        .too_large = ask->too_large,
        .detail = detail,
    };
    bool has_answer = reply.message.length > 0;
    bool succeeded = reply.status >= 200 && reply.status < 300;
    reply.unreadable = ask->is_encoded ||
                       (result == UPSTREAM_DONE && succeeded && !has_answer && ask->id.length > 0);
    char status[16];
    snprintf(status, sizeof status, "%d", reply.status);
    metrics_count(METRIC_UPSTREAM_REQUESTS, source, str_from(status));
    metrics_observe(METRIC_UPSTREAM_DURATION, (double)(clock_monotonic_ms() - ask->started_ms),
                    METRIC_LABELS(source));
    /* An answer that broke off says nothing of now: a later try may have failed before its end. */
    if (result == UPSTREAM_DONE || reply.status == 0)
        server_status_note(ask->worker->gateway->catalog, source, result == UPSTREAM_DONE);
    ask->callbacks.reply(ask->context, &reply);
    ask_cancel(ask);
}

static bool is_response(struct str message)
{
    return json_member(message, "result").length > 0 || json_member(message, "error").length > 0;
}

/* Whether the message is the answer: our id, or an error that upstream could not match. */
static bool is_answer(const struct ask *ask, struct str message)
{
    struct str id = json_member(message, "id");
    if (!is_response(message))
        return false;
    if (id.length > 0 && json_type(id) != JSON_NULL)
        return reply_id_is(buffer_str(&ask->id), id);
    return json_member(message, "error").length > 0;
}

static void take_message(struct ask *ask, struct str message)
{
    if (ask->message.length > 0 || !json_check(message, NULL) || json_type(message) != JSON_OBJECT)
        return;
    if (is_answer(ask, message))
        buffer_append(&ask->message, message);
    else if (json_member(message, "method").length == 0)
        ask->is_anothers |= ask->id.length > 0 && is_response(message);
    else if (ask->callbacks.interim)
        ask->callbacks.interim(ask->context, message);
}

static void note_place(struct ask *ask, const struct sse_event *event)
{
    if (event->id.bytes) {
        buffer_clear(&ask->last_id);
        buffer_append(&ask->last_id, event->id);
    }
    if (event->retry_ms >= 0)
        ask->retry_ms = event->retry_ms;
}

static void take_events(struct ask *ask)
{
    struct str rest = buffer_str(&ask->received);
    size_t length;
    while ((length = sse_first_event(rest)) > 0) {
        struct sse_event event;
        sse_event_read(&event, str_slice(rest.bytes, length));
        note_place(ask, &event);
        if (event.has_data)
            take_message(ask, buffer_str(&event.data));
        sse_event_finish(&event);
        rest = str_slice(rest.bytes + length, rest.length - length);
    }
    buffer_drop(&ask->received, ask->received.length - rest.length);
}

static void on_head(void *context, int status, const struct http_header *items, size_t count)
{
    struct ask *ask = context;
    ask->status = status;
    headers_from_response(&ask->headers, items, count);
    ask->is_stream = headers_name_event_stream(&ask->headers);
    ask->is_encoded = headers_find(&ask->headers, "content-encoding").length > 0;
}

/* What comes next on the connection may be another's, too: it is closed with the call. */
static void conclude_for_another_id(struct ask *ask)
{
    log_warn("Upstream answered with the id of another request",
             LOG_TEXT("source", ask->source->id));
    buffer_clear(&ask->received);
    conclude(ask, UPSTREAM_DONE, "the reply has the id of another request");
}

static void on_body(void *context, struct str bytes)
{
    struct ask *ask = context;
    ask->heard_ms = clock_monotonic_ms();
    if (ask->is_refused)
        return;
    if (ask->received.length + bytes.length > ask->most_bytes) {
        ask->too_large = true;
        conclude(ask, UPSTREAM_DONE, "reply too large");
        return;
    }
    buffer_append(&ask->received, bytes);
    if (!ask->is_stream) {
        bool is_looked_at = ask->id.length > 0 && ask->status >= 200 && ask->status < 300;
        if (is_looked_at && reply_check_feed(&ask->reply, bytes) == REPLY_FOREIGN)
            conclude_for_another_id(ask);
        return;
    }
    size_t whole = sse_splitter_feed(&ask->splitter, bytes, NULL);
    if (whole > 0)
        take_events(ask);
    if (ask->message.length > 0)
        conclude(ask, UPSTREAM_DONE, "");
    else if (ask->is_anothers)
        conclude_for_another_id(ask);
}

/* Whether upstream may have the rest of a stream that ended before the answer. */
static bool has_rest(const struct ask *ask, enum upstream_result result)
{
    return ask->is_stream && ask->id.length > 0 && ask->message.length == 0 &&
           ask->last_id.length > 0 && ask->failures < MOST_FAILURES && result != UPSTREAM_SILENT;
}

/* A person may be asked meanwhile, and then upstream has nothing to say. */
static bool is_silent(const struct ask *ask)
{
    return ask->silence_ms > 0 && clock_monotonic_ms() - ask->heard_ms >= ask->silence_ms;
}

static void wait_for_rest(struct ask *ask)
{
    int64_t in_ms = ask->retry_ms < RETRY_LEAST_MS ? RETRY_LEAST_MS : ask->retry_ms;
    buffer_clear(&ask->received);
    sse_splitter_init(&ask->splitter);
    loop_timer_start(&ask->again, in_ms < RETRY_MOST_MS ? in_ms : RETRY_MOST_MS);
}

static void on_end(void *context, enum upstream_result result, const char *detail)
{
    struct ask *ask = context;
    ask->upstream = NULL;
    if (ask->is_stream && !ask->is_refused)
        take_events(ask);
    else if (!ask->is_stream && result == UPSTREAM_DONE)
        take_message(ask, buffer_str(&ask->received));
    if (ask->is_rest && result == UPSTREAM_CONNECT_FAILED)
        server_status_note(ask->worker->gateway->catalog, str_from(ask->source->id), false);
    if (has_rest(ask, result) && !is_silent(ask))
        wait_for_rest(ask);
    else if (has_rest(ask, result))
        conclude(ask, UPSTREAM_SILENT, "nothing came on its stream");
    else if (ask->is_rest && ask->message.length == 0 && result != UPSTREAM_SILENT)
        conclude(ask, UPSTREAM_GONE, "upstream does not give the rest of its stream");
    else
        conclude(ask, result, detail);
}

static void on_deadline(void *context)
{
    conclude(context, UPSTREAM_SILENT, "time limit");
}

static const struct upstream_callbacks upstream_callbacks = {on_head, on_body, on_end};

/* ---- the rest of a stream ---- */

/* The response that counts stays the first one: what upstream says here is of the stream alone. */
static void on_rest_head(void *context, int status, const struct http_header *items, size_t count)
{
    struct ask *ask = context;
    struct headers headers;
    headers_init(&headers, false);
    headers_from_response(&headers, items, count);
    ask->is_refused = status != 200 || !headers_name_event_stream(&headers) ||
                      headers_find(&headers, "content-encoding").length > 0;
    if (!ask->is_refused)
        ask->failures = 0;
    else if (status != 429 && status < 500)
        ask->failures = MOST_FAILURES;
    headers_finish(&headers);
}

static void open_rest(void *context)
{
    static const struct upstream_callbacks callbacks = {on_rest_head, on_body, on_end};
    struct ask *ask = context;
    struct headers headers;
    headers_init(&headers, false);
    for (size_t i = 0; i < ask->request_headers.count; i++) {
        const struct http_header *item = &ask->request_headers.items[i];
        if (!str_equal_ignore_case(item->name, STR("content-type")))
            headers_add(&headers, item->name, item->value);
    }
    headers_set(&headers, STR("accept"), STR("text/event-stream"));
    headers_set(&headers, STR("last-event-id"), buffer_str(&ask->last_id));
    struct upstream_request request = {
        .method = "GET",
        .url = ask->source->url,
        .headers = headers.items,
        .header_count = headers.count,
        .connect_timeout_ms = ask->snapshot->config->times.connect_timeout_ms,
        .silence_timeout_ms = ask->silence_ms,
    };
    ask->is_refused = false;
    ask->is_rest = true;
    ask->failures++; /* unless it opens */
    ask->upstream = upstream_call_start(ask->worker->client, &request, &callbacks, ask);
    headers_finish(&headers);
}

/* ---- beginning ---- */

static struct ask *create(struct gateway_worker *worker, const struct ask_options *options,
                          const struct ask_callbacks *callbacks, void *context)
{
    struct ask *ask = memory_alloc(sizeof *ask);
    ask->worker = worker;
    list_append(&worker->asks, &ask->node);
    ask->snapshot = snapshot_ref(options->snapshot);
    ask->source = options->source;
    ask->callbacks = *callbacks;
    ask->context = context;
    ask->most_bytes = options->most_bytes;
    ask->started_ms = clock_monotonic_ms();
    headers_init(&ask->request_headers, true);
    headers_init(&ask->headers, true);
    buffer_append(&ask->id, options->id);
    reply_check_init(&ask->reply, buffer_str(&ask->id));
    sse_splitter_init(&ask->splitter);
    ask->silence_ms = options->silence_ms;
    ask->retry_ms = RETRY_MS;
    ask->heard_ms = ask->started_ms;
    for (size_t i = 0; i < options->headers->count; i++)
        headers_add(&ask->request_headers, options->headers->items[i].name,
                    options->headers->items[i].value);
    loop_timer_init(&ask->again, worker->loop, open_rest, ask);
    loop_timer_init(&ask->deadline, worker->loop, on_deadline, ask);
    if (options->total_ms > 0)
        loop_timer_start(&ask->deadline, options->total_ms);
    return ask;
}

struct ask *ask_start(struct gateway_worker *worker, const struct ask_options *options,
                      const struct ask_callbacks *callbacks, void *context)
{
    struct ask *ask = create(worker, options, callbacks, context);
    buffer_append(&ask->body, options->body);
    headers_set(&ask->request_headers, STR("content-type"), STR("application/json"));
    headers_set(&ask->request_headers, STR("accept"), STR("application/json, text/event-stream"));
    struct upstream_request request = {
        .method = options->method ? options->method : "POST",
        .url = ask->source->url,
        .headers = ask->request_headers.items,
        .header_count = ask->request_headers.count,
        .body = buffer_str(&ask->body),
        .connect_timeout_ms = ask->snapshot->config->times.connect_timeout_ms,
        .silence_timeout_ms = options->silence_ms,
    };
    ask->upstream = upstream_call_start(worker->client, &request, &upstream_callbacks, ask);
    return ask;
}

struct ask *ask_adopt(struct gateway_worker *worker, struct relay_taken *taken,
                      const struct ask_options *options, const struct ask_callbacks *callbacks,
                      void *context)
{
    struct ask *ask = create(worker, options, callbacks, context);
    ask->status = taken->status;
    ask->is_stream = taken->is_stream;
    ask->received = taken->received;
    ask->splitter = taken->splitter;
    ask->last_id = taken->last_id;
    ask->started_ms = taken->started_ms;
    ask->upstream = taken->upstream;
    upstream_call_hand_over(ask->upstream, &upstream_callbacks, ask);
    upstream_call_set_silence(ask->upstream, options->silence_ms);
    return ask;
}

static void nobody_waits(void *context, const struct ask_reply *reply)
{
}

void ask_tell(struct gateway_worker *worker, const struct ask_options *options)
{
    static const struct ask_callbacks callbacks = {.reply = nobody_waits};
    struct ask_options bounded = *options;
    bounded.total_ms = 10000;
    bounded.most_bytes = 65536;
    ask_start(worker, &bounded, &callbacks, NULL);
}
