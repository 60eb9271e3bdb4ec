/* Requests of the gateway's own. */
#include "http.h"

#include <stdio.h>
#include <stdlib.h>

#include "auth/token_exchange.h"
#include "call/call_span.h"
#include "state/server_status.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"
#include "taskgate/core/magic.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"
#include "taskgate/core/random.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/reply_check.h"
#include "taskgate/mcp/sse.h"

/* The pause before a broken stream is resumed: the server's `retry`, within these bounds. */
#define RETRY_MS 1000
#define RETRY_LEAST_MS 100
#define RETRY_MOST_MS 60000
#define MOST_FAILURES 3

struct exchange {
    uint32_t magic;   /* EXCHANGE_MAGIC */
    struct list node; /* in worker.exchanges_reading */
    struct gateway_worker *worker;
    struct snapshot *snapshot;
    const struct config_source *source;
    struct exchange_events events;
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
    bool is_anothers;         /* a message on the stream has another request's id */
    bool is_foreign;          /* the whole reply is another request's */
    struct reply_check reply; /* of a JSON body */

    /* An event stream that ended before the answer is resumed after its last event. */
    struct buffer last_id;
    struct loop_timer again;
    int64_t retry_ms;  /* the server's `retry` */
    int64_t heard_ms;  /* monotonic: when its last byte came */
    int failures;      /* tries in a row to resume that failed */
    bool is_resumed;   /* the resumed stream is under way, */
    bool is_refused;   /* and the server has refused it */
    struct span *span; /* NULL: it belongs to no trace */
};
#define EXCHANGE_MAGIC 0x47575209

static inline struct exchange *exchange_from(void *context)
{
    return MAGIC_CAST(struct exchange, EXCHANGE_MAGIC, context);
}

static void exchange_destroy(struct exchange *exchange)
{
    list_remove(&exchange->node);
    loop_timer_stop(&exchange->deadline);
    loop_timer_stop(&exchange->again);
    buffer_finish(&exchange->last_id);
    headers_finish(&exchange->request_headers);
    headers_finish(&exchange->headers);
    buffer_finish(&exchange->body);
    reply_check_finish(&exchange->reply);
    buffer_finish(&exchange->id);
    buffer_finish(&exchange->received);
    buffer_finish(&exchange->message);
    snapshot_unref(exchange->snapshot);
    upstream_span_give_up(exchange->span);
    MAGIC_CLEAR(exchange);
    free(exchange);
}

void exchange_abandon(struct exchange *exchange)
{
    if (!exchange)
        return;
    if (exchange->upstream)
        upstream_call_cancel(exchange->upstream);
    exchange_destroy(exchange);
}

void exchange_hand_over(struct exchange *exchange, const struct exchange_events *events,
                        void *context)
{
    exchange->events = *events;
    exchange->context = context;
}

void exchange_set_silence(struct exchange *exchange, int64_t silence_ms)
{
    exchange->silence_ms = silence_ms;
    exchange->heard_ms = clock_monotonic_ms();
    if (exchange->upstream)
        upstream_call_set_silence(exchange->upstream, silence_ms);
}

void exchange_abandon_all(struct gateway_worker *worker)
{
    LIST_FOR_EACH_SAFE (node, next, &worker->exchanges_reading) {
        struct exchange *exchange = LIST_ENTRY(node, struct exchange, node);
        if (exchange->events.dropped)
            exchange->events.dropped(exchange->context);
        exchange_abandon(exchange);
    }
}

bool exchange_reply_forgets_session(const struct exchange_reply *reply,
                                    const struct headers *request)
{
    return reply->result == UPSTREAM_DONE && reply->status == 404 &&
           headers_find(request, "mcp-session-id").length > 0 &&
           json_type(json_member(reply->message, "id")) != JSON_STRING;
}

/* Tells the caller and ends. */
static void conclude(struct exchange *exchange, enum upstream_result result, const char *detail)
{
    struct str source = str_from(exchange->source->id);
    struct exchange_reply reply = {
        .result = result,
        /* The status of another's reply says nothing about this request. */
        .status = exchange->is_foreign && exchange->status >= 300 ? 0 : exchange->status,
        .headers = &exchange->headers,
        .message = buffer_str(&exchange->message),
        .body = exchange->is_stream ? STR_EMPTY : buffer_str(&exchange->received),
        .too_large = exchange->too_large,
        .detail = detail,
    };
    bool has_answer = reply.message.length > 0;
    bool succeeded = reply.status >= 200 && reply.status < 300;
    reply.unreadable =
        exchange->is_encoded || exchange->is_foreign ||
        (result == UPSTREAM_DONE && succeeded && !has_answer && exchange->id.length > 0);
    char status[16];
    snprintf(status, sizeof status, "%d", exchange->status);
    metrics_count(METRIC_UPSTREAM_REQUESTS, source, str_from(status));
    metrics_observe(METRIC_UPSTREAM_DURATION, (double)(clock_monotonic_ms() - exchange->started_ms),
                    METRIC_LABELS(source));
    /* A response that broke off does not show that the server can be reached now. */
    if (result == UPSTREAM_DONE || reply.status == 0)
        server_status_note(exchange->worker->gateway->catalog, source, result == UPSTREAM_DONE);
    upstream_span_end(exchange->span, result, exchange->status);
    exchange->span = NULL;
    exchange->events.reply(exchange->context, &reply);
    exchange_abandon(exchange);
}

static bool is_response(struct str message)
{
    return json_member(message, "result").length > 0 || json_member(message, "error").length > 0;
}

/* Whether the message is the answer: it has our id, or is an error without an id. */
static bool is_answer(const struct exchange *exchange, struct str message)
{
    struct str id = json_member(message, "id");
    if (!is_response(message))
        return false;
    if (id.length > 0 && json_type(id) != JSON_NULL)
        return reply_id_is(buffer_str(&exchange->id), id);
    return json_member(message, "error").length > 0;
}

static void take_message(struct exchange *exchange, struct str message)
{
    if (exchange->message.length > 0 || !json_check(message, NULL) ||
        json_type(message) != JSON_OBJECT)
        return;
    if (is_answer(exchange, message))
        buffer_append(&exchange->message, message);
    else if (json_member(message, "method").length == 0)
        exchange->is_anothers |= exchange->id.length > 0 && is_response(message);
    else if (exchange->events.server_message)
        exchange->events.server_message(exchange->context, message);
}

static void note_place(struct exchange *exchange, const struct sse_event *event)
{
    if (event->id.bytes) {
        buffer_clear(&exchange->last_id);
        buffer_append(&exchange->last_id, event->id);
    }
    if (event->retry_ms >= 0)
        exchange->retry_ms = event->retry_ms;
}

static void take_events(struct exchange *exchange)
{
    struct str rest = buffer_str(&exchange->received);
    size_t length;
    while ((length = sse_first_event(rest)) > 0) {
        struct sse_event event;
        sse_event_read(&event, str_slice(rest.bytes, length));
        note_place(exchange, &event);
        if (event.has_data)
            take_message(exchange, buffer_str(&event.data));
        sse_event_finish(&event);
        rest = str_slice(rest.bytes + length, rest.length - length);
    }
    buffer_drop(&exchange->received, exchange->received.length - rest.length);
}

static void on_head(void *context, int status, const struct http_header *items, size_t count)
{
    struct exchange *exchange = exchange_from(context);
    exchange->status = status;
    headers_from_response(&exchange->headers, items, count);
    exchange->is_stream = headers_name_event_stream(&exchange->headers);
    exchange->is_encoded = headers_find(&exchange->headers, "content-encoding").length > 0;
    if (status == 401)
        token_exchange_note_refused(
            exchange->worker, exchange->snapshot, exchange->source,
            headers_known(&exchange->request_headers, HTTP_NAME_AUTHORIZATION));
    if (exchange->events.head)
        exchange->events.head(exchange->context, status, &exchange->headers);
}

/* Closes the connection with the call: the next reply on it may be another request's, too. */
static void conclude_for_another_id(struct exchange *exchange)
{
    log_warn("Upstream answered with the id of another request",
             LOG_TEXT("source", exchange->source->id));
    buffer_clear(&exchange->received);
    exchange->is_foreign = true;
    conclude(exchange, UPSTREAM_DONE, "the reply has the id of another request");
}

static void look_at(struct exchange *exchange, struct str bytes)
{
    enum reply_verdict verdict = reply_check_feed(&exchange->reply, bytes);
    if (reply_check_is_answer(&exchange->reply))
        upstream_call_prove(exchange->upstream);
    if (verdict == REPLY_FOREIGN)
        conclude_for_another_id(exchange);
}

static void on_body(void *context, struct str bytes)
{
    struct exchange *exchange = exchange_from(context);
    exchange->heard_ms = clock_monotonic_ms();
    if (exchange->is_refused)
        return;
    if (exchange->received.length + bytes.length > exchange->most_bytes) {
        exchange->too_large = true;
        conclude(exchange, UPSTREAM_DONE, "reply too large");
        return;
    }
    buffer_append(&exchange->received, bytes);
    if (!exchange->is_stream) {
        if (exchange->id.length > 0 && !exchange->is_encoded)
            look_at(exchange, bytes);
        return;
    }
    size_t whole = sse_splitter_feed(&exchange->splitter, bytes, NULL);
    if (whole > 0)
        take_events(exchange);
    if (exchange->message.length > 0)
        conclude(exchange, UPSTREAM_DONE, "");
    else if (exchange->is_anothers)
        conclude_for_another_id(exchange);
}

/* Whether a stream that ended before the answer may be resumed. */
static bool can_resume(const struct exchange *exchange, enum upstream_result result)
{
    return exchange->is_stream && exchange->id.length > 0 && exchange->message.length == 0 &&
           exchange->last_id.length > 0 && exchange->failures < MOST_FAILURES &&
           result != UPSTREAM_SILENT;
}

/* A limit of 0 is for a server that waits for a person. */
static bool is_silent(const struct exchange *exchange)
{
    return exchange->silence_ms > 0 &&
           clock_monotonic_ms() - exchange->heard_ms >= exchange->silence_ms;
}

static void wait_to_resume(struct exchange *exchange)
{
    int64_t in_ms = exchange->retry_ms < RETRY_LEAST_MS ? RETRY_LEAST_MS : exchange->retry_ms;
    buffer_clear(&exchange->received);
    sse_splitter_init(&exchange->splitter);
    loop_timer_start(&exchange->again, in_ms < RETRY_MOST_MS ? in_ms : RETRY_MOST_MS);
}

static void on_end(void *context, enum upstream_result result, const char *detail)
{
    struct exchange *exchange = exchange_from(context);
    exchange->upstream = NULL;
    if (exchange->is_stream && !exchange->is_refused)
        take_events(exchange);
    else if (!exchange->is_stream && result == UPSTREAM_DONE)
        take_message(exchange, buffer_str(&exchange->received));
    if (exchange->is_resumed && result == UPSTREAM_CONNECT_FAILED)
        server_status_note(exchange->worker->gateway->catalog, str_from(exchange->source->id),
                           false);
    if (can_resume(exchange, result) && !is_silent(exchange))
        wait_to_resume(exchange);
    else if (can_resume(exchange, result))
        conclude(exchange, UPSTREAM_SILENT, "nothing came on its stream");
    else if (exchange->is_resumed && exchange->message.length == 0 && result != UPSTREAM_SILENT)
        conclude(exchange, UPSTREAM_GONE, "upstream does not give the rest of its stream");
    else
        conclude(exchange, result, detail);
}

static void on_deadline(void *context)
{
    conclude(exchange_from(context), UPSTREAM_SILENT, "time limit");
}

static const struct upstream_callbacks upstream_callbacks = {on_head, on_body, on_end};

/* ---- resuming a stream ---- */

/* The status and headers of the call stay those of the first response. */
static void on_resumed_head(void *context, int status, const struct http_header *items,
                            size_t count)
{
    struct exchange *exchange = exchange_from(context);
    struct headers headers;
    headers_init(&headers, false);
    headers_from_response(&headers, items, count);
    exchange->is_refused = status != 200 || !headers_name_event_stream(&headers) ||
                           headers_find(&headers, "content-encoding").length > 0;
    if (!exchange->is_refused)
        exchange->failures = 0;
    else if (status != 429 && status < 500)
        exchange->failures = MOST_FAILURES;
    headers_finish(&headers);
}

static void open_resumed(void *context)
{
    static const struct upstream_callbacks callbacks = {on_resumed_head, on_body, on_end};
    struct exchange *exchange = exchange_from(context);
    struct headers headers;
    headers_init(&headers, false);
    for (size_t i = 0; i < exchange->request_headers.count; i++) {
        const struct http_header *item = &exchange->request_headers.items[i];
        if (!str_equal_ignore_case(item->name, STR("content-type")))
            headers_add(&headers, item->name, item->value);
    }
    headers_set(&headers, STR("accept"), STR("text/event-stream"));
    headers_set(&headers, STR("last-event-id"), buffer_str(&exchange->last_id));
    struct upstream_request request = {
        .method = "GET",
        .url = exchange->source->url,
        .tls = exchange->source->tls,
        .headers = headers.items,
        .header_count = headers.count,
        .owner = headers_connection_owner(&exchange->request_headers, exchange->source),
        .connect_timeout_ms = exchange->snapshot->config->times.connect_timeout_ms,
        .silence_timeout_ms = exchange->silence_ms,
    };
    exchange->is_refused = false;
    exchange->is_resumed = true;
    exchange->failures++; /* unless it opens */
    exchange->upstream =
        upstream_call_start(exchange->worker->client, &request, &callbacks, exchange);
    headers_finish(&headers);
}

/* ---- beginning ---- */

static struct exchange *create(struct gateway_worker *worker, const struct sending *sending,
                               const struct exchange_events *events, void *context)
{
    struct exchange *exchange = memory_alloc(sizeof *exchange);
    MAGIC_SET(exchange, EXCHANGE_MAGIC);
    exchange->worker = worker;
    list_append(&worker->exchanges_reading, &exchange->node);
    exchange->snapshot = snapshot_ref(sending->snapshot);
    exchange->source = sending->source;
    exchange->events = *events;
    exchange->context = context;
    exchange->most_bytes = sending->most_bytes;
    exchange->started_ms = clock_monotonic_ms();
    headers_init(&exchange->request_headers, true);
    headers_init(&exchange->headers, true);
    buffer_append(&exchange->id, sending->id);
    reply_check_init(&exchange->reply, buffer_str(&exchange->id));
    sse_splitter_init(&exchange->splitter);
    exchange->silence_ms = sending->silence_ms;
    exchange->retry_ms = RETRY_MS;
    exchange->heard_ms = exchange->started_ms;
    headers_add_all(&exchange->request_headers, sending->headers);
    loop_timer_init(&exchange->again, worker->loop, open_resumed, exchange);
    loop_timer_init(&exchange->deadline, worker->loop, on_deadline, exchange);
    if (sending->total_ms > 0)
        loop_timer_start(&exchange->deadline, sending->total_ms);
    return exchange;
}

struct exchange *exchange_send(struct gateway_worker *worker, const struct sending *sending,
                               const struct exchange_events *events, void *context)
{
    struct exchange *exchange = create(worker, sending, events, context);
    buffer_append(&exchange->body, sending->body);
    if (sending->trace.parent.context)
        exchange->span = upstream_span_start_own(&sending->trace, exchange->source, sending->body,
                                                 &exchange->request_headers);
    headers_set(&exchange->request_headers, STR("content-type"), STR("application/json"));
    headers_set(&exchange->request_headers, STR("accept"),
                STR("application/json, text/event-stream"));
    struct upstream_request request = {
        .method = sending->method ? sending->method : "POST",
        .url = exchange->source->url,
        .tls = exchange->source->tls,
        .headers = exchange->request_headers.items,
        .header_count = exchange->request_headers.count,
        .body = buffer_str(&exchange->body),
        .owner = headers_connection_owner(&exchange->request_headers, exchange->source),
        .needs_proof = exchange->id.length > 0,
        .connect_timeout_ms = exchange->snapshot->config->times.connect_timeout_ms,
        .silence_timeout_ms = sending->silence_ms,
    };
    exchange->upstream =
        upstream_call_start(worker->client, &request, &upstream_callbacks, exchange);
    return exchange;
}

struct exchange *exchange_adopt(struct gateway_worker *worker, struct exchange_begun *taken,
                                const struct sending *sending, const struct exchange_events *events,
                                void *context)
{
    struct exchange *exchange = create(worker, sending, events, context);
    exchange->status = taken->status;
    exchange->is_stream = taken->is_stream;
    exchange->received = taken->received;
    exchange->splitter = taken->splitter;
    exchange->last_id = taken->last_id;
    exchange->started_ms = taken->started_ms;
    exchange->upstream = taken->upstream;
    exchange->span = taken->span;
    upstream_call_hand_over(exchange->upstream, &upstream_callbacks, exchange);
    upstream_call_set_silence(exchange->upstream, sending->silence_ms);
    return exchange;
}

/* ---- requests of the gateway's own for a call, and messages whose answer nobody waits for ---- */

void exchange_write_request(struct buffer *body, struct buffer *id, const char *method,
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

static void nobody_waits(void *context, const struct exchange_reply *reply)
{
}

struct exchange *exchange_ask(const struct call *call, const struct exchange_question *question,
                              const struct exchange_events *events, void *context)
{
    const struct sending sending = {
        .source = call->source,
        .snapshot = call->snapshot,
        .headers = question->headers,
        .body = question->body,
        .id = question->id,
        .silence_ms = question->limit_ms,
        .total_ms = question->limit_ms,
        .most_bytes = question->most_bytes,
        .trace.parent = call_span_parent(call),
    };
    return exchange_send(call->worker, &sending, events, context);
}

struct exchange *exchange_ask_page(struct call *call, const char *method, struct str cursor,
                                   size_t most_bytes, const struct exchange_events *events)
{
    struct buffer params = {0}, body = {0}, id = {0};
    struct headers headers;
    int64_t timeout_ms = call->snapshot->config->times.tools_fetch_timeout_ms;
    headers_init(&headers, false);
    headers_from_call(&headers, call);
    if (cursor.length > 0)
        buffer_append_format(&params, "{\"cursor\":%.*s}", STR_ARGS(cursor));
    exchange_write_request(&body, &id, method, buffer_str(&params));
    const struct exchange_question question = {&headers, buffer_str(&body), buffer_str(&id),
                                               timeout_ms, most_bytes};
    struct exchange *exchange = exchange_ask(call, &question, events, call);
    headers_finish(&headers);
    buffer_finish(&params);
    buffer_finish(&body);
    buffer_finish(&id);
    return exchange;
}

void exchange_notify(struct gateway_worker *worker, const struct sending *sending)
{
    static const struct exchange_events events = {.reply = nobody_waits};
    struct sending bounded = *sending;
    bounded.total_ms = 10000;
    bounded.most_bytes = 65536;
    exchange_send(worker, &bounded, &events, NULL);
}
