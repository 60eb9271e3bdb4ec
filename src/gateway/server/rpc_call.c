/* Requests of the gateway's own. */
#include "rpc_call.h"

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

struct rpc_call {
    uint32_t magic;   /* RPC_CALL_MAGIC */
    struct list node; /* in worker.rpc_calls */
    struct gateway_worker *worker;
    struct snapshot *snapshot;
    const struct config_source *source;
    struct rpc_call_callbacks callbacks;
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
#define RPC_CALL_MAGIC 0x47575209

static inline struct rpc_call *rpc_call_from(void *context)
{
    return MAGIC_CAST(struct rpc_call, RPC_CALL_MAGIC, context);
}

static void rpc_call_destroy(struct rpc_call *rpc)
{
    list_remove(&rpc->node);
    loop_timer_stop(&rpc->deadline);
    loop_timer_stop(&rpc->again);
    buffer_finish(&rpc->last_id);
    headers_finish(&rpc->request_headers);
    headers_finish(&rpc->headers);
    buffer_finish(&rpc->body);
    reply_check_finish(&rpc->reply);
    buffer_finish(&rpc->id);
    buffer_finish(&rpc->received);
    buffer_finish(&rpc->message);
    snapshot_unref(rpc->snapshot);
    upstream_span_give_up(rpc->span);
    MAGIC_CLEAR(rpc);
    free(rpc);
}

void rpc_call_cancel(struct rpc_call *rpc)
{
    if (!rpc)
        return;
    if (rpc->upstream)
        upstream_call_cancel(rpc->upstream);
    rpc_call_destroy(rpc);
}

void rpc_call_hand_over(struct rpc_call *rpc, const struct rpc_call_callbacks *callbacks,
                        void *context)
{
    rpc->callbacks = *callbacks;
    rpc->context = context;
}

void rpc_call_set_silence(struct rpc_call *rpc, int64_t silence_ms)
{
    rpc->silence_ms = silence_ms;
    rpc->heard_ms = clock_monotonic_ms();
    if (rpc->upstream)
        upstream_call_set_silence(rpc->upstream, silence_ms);
}

void rpc_call_cancel_all(struct gateway_worker *worker)
{
    LIST_FOR_EACH_SAFE (node, next, &worker->rpc_calls) {
        struct rpc_call *rpc = LIST_ENTRY(node, struct rpc_call, node);
        if (rpc->callbacks.dropped)
            rpc->callbacks.dropped(rpc->context);
        rpc_call_cancel(rpc);
    }
}

bool rpc_call_reply_forgets_session(const struct rpc_call_reply *reply,
                                    const struct headers *request)
{
    return reply->result == UPSTREAM_DONE && reply->status == 404 &&
           headers_find(request, "mcp-session-id").length > 0 &&
           json_type(json_member(reply->message, "id")) != JSON_STRING;
}

/* Tells the caller and ends. */
static void conclude(struct rpc_call *rpc, enum upstream_result result, const char *detail)
{
    struct str source = str_from(rpc->source->id);
    struct rpc_call_reply reply = {
        .result = result,
        /* The status of another's reply says nothing about this request. */
        .status = rpc->is_foreign && rpc->status >= 300 ? 0 : rpc->status,
        .headers = &rpc->headers,
        .message = buffer_str(&rpc->message),
        .body = rpc->is_stream ? STR_EMPTY : buffer_str(&rpc->received),
        .too_large = rpc->too_large,
        .detail = detail,
    };
    bool has_answer = reply.message.length > 0;
    bool succeeded = reply.status >= 200 && reply.status < 300;
    reply.unreadable = rpc->is_encoded || rpc->is_foreign ||
                       (result == UPSTREAM_DONE && succeeded && !has_answer && rpc->id.length > 0);
    char status[16];
    snprintf(status, sizeof status, "%d", rpc->status);
    metrics_count(METRIC_UPSTREAM_REQUESTS, source, str_from(status));
    metrics_observe(METRIC_UPSTREAM_DURATION, (double)(clock_monotonic_ms() - rpc->started_ms),
                    METRIC_LABELS(source));
    /* A response that broke off does not show that the server can be reached now. */
    if (result == UPSTREAM_DONE || reply.status == 0)
        server_status_note(rpc->worker->gateway->catalog, source, result == UPSTREAM_DONE);
    upstream_span_end(rpc->span, result, rpc->status);
    rpc->span = NULL;
    rpc->callbacks.reply(rpc->context, &reply);
    rpc_call_cancel(rpc);
}

static bool is_response(struct str message)
{
    return json_member(message, "result").length > 0 || json_member(message, "error").length > 0;
}

/* Whether the message is the answer: it has our id, or is an error without an id. */
static bool is_answer(const struct rpc_call *rpc, struct str message)
{
    struct str id = json_member(message, "id");
    if (!is_response(message))
        return false;
    if (id.length > 0 && json_type(id) != JSON_NULL)
        return reply_id_is(buffer_str(&rpc->id), id);
    return json_member(message, "error").length > 0;
}

static void take_message(struct rpc_call *rpc, struct str message)
{
    if (rpc->message.length > 0 || !json_check(message, NULL) || json_type(message) != JSON_OBJECT)
        return;
    if (is_answer(rpc, message))
        buffer_append(&rpc->message, message);
    else if (json_member(message, "method").length == 0)
        rpc->is_anothers |= rpc->id.length > 0 && is_response(message);
    else if (rpc->callbacks.server_message)
        rpc->callbacks.server_message(rpc->context, message);
}

static void note_place(struct rpc_call *rpc, const struct sse_event *event)
{
    if (event->id.bytes) {
        buffer_clear(&rpc->last_id);
        buffer_append(&rpc->last_id, event->id);
    }
    if (event->retry_ms >= 0)
        rpc->retry_ms = event->retry_ms;
}

static void take_events(struct rpc_call *rpc)
{
    struct str rest = buffer_str(&rpc->received);
    size_t length;
    while ((length = sse_first_event(rest)) > 0) {
        struct sse_event event;
        sse_event_read(&event, str_slice(rest.bytes, length));
        note_place(rpc, &event);
        if (event.has_data)
            take_message(rpc, buffer_str(&event.data));
        sse_event_finish(&event);
        rest = str_slice(rest.bytes + length, rest.length - length);
    }
    buffer_drop(&rpc->received, rpc->received.length - rest.length);
}

static void on_head(void *context, int status, const struct http_header *items, size_t count)
{
    struct rpc_call *rpc = rpc_call_from(context);
    rpc->status = status;
    headers_from_response(&rpc->headers, items, count);
    rpc->is_stream = headers_name_event_stream(&rpc->headers);
    rpc->is_encoded = headers_find(&rpc->headers, "content-encoding").length > 0;
    if (status == 401)
        token_exchange_note_refused(rpc->worker, rpc->snapshot, rpc->source,
                                    headers_known(&rpc->request_headers, HTTP_NAME_AUTHORIZATION));
    if (rpc->callbacks.head)
        rpc->callbacks.head(rpc->context, status, &rpc->headers);
}

/* Closes the connection with the call: the next reply on it may be another request's, too. */
static void conclude_for_another_id(struct rpc_call *rpc)
{
    log_warn("Upstream answered with the id of another request",
             LOG_TEXT("source", rpc->source->id));
    buffer_clear(&rpc->received);
    rpc->is_foreign = true;
    conclude(rpc, UPSTREAM_DONE, "the reply has the id of another request");
}

static void look_at(struct rpc_call *rpc, struct str bytes)
{
    enum reply_verdict verdict = reply_check_feed(&rpc->reply, bytes);
    if (reply_check_is_answer(&rpc->reply))
        upstream_call_prove(rpc->upstream);
    if (verdict == REPLY_FOREIGN)
        conclude_for_another_id(rpc);
}

static void on_body(void *context, struct str bytes)
{
    struct rpc_call *rpc = rpc_call_from(context);
    rpc->heard_ms = clock_monotonic_ms();
    if (rpc->is_refused)
        return;
    if (rpc->received.length + bytes.length > rpc->most_bytes) {
        rpc->too_large = true;
        conclude(rpc, UPSTREAM_DONE, "reply too large");
        return;
    }
    buffer_append(&rpc->received, bytes);
    if (!rpc->is_stream) {
        if (rpc->id.length > 0 && !rpc->is_encoded)
            look_at(rpc, bytes);
        return;
    }
    size_t whole = sse_splitter_feed(&rpc->splitter, bytes, NULL);
    if (whole > 0)
        take_events(rpc);
    if (rpc->message.length > 0)
        conclude(rpc, UPSTREAM_DONE, "");
    else if (rpc->is_anothers)
        conclude_for_another_id(rpc);
}

/* Whether a stream that ended before the answer may be resumed. */
static bool can_resume(const struct rpc_call *rpc, enum upstream_result result)
{
    return rpc->is_stream && rpc->id.length > 0 && rpc->message.length == 0 &&
           rpc->last_id.length > 0 && rpc->failures < MOST_FAILURES && result != UPSTREAM_SILENT;
}

/* A limit of 0 is for a server that waits for a person. */
static bool is_silent(const struct rpc_call *rpc)
{
    return rpc->silence_ms > 0 && clock_monotonic_ms() - rpc->heard_ms >= rpc->silence_ms;
}

static void wait_to_resume(struct rpc_call *rpc)
{
    int64_t in_ms = rpc->retry_ms < RETRY_LEAST_MS ? RETRY_LEAST_MS : rpc->retry_ms;
    buffer_clear(&rpc->received);
    sse_splitter_init(&rpc->splitter);
    loop_timer_start(&rpc->again, in_ms < RETRY_MOST_MS ? in_ms : RETRY_MOST_MS);
}

static void on_end(void *context, enum upstream_result result, const char *detail)
{
    struct rpc_call *rpc = rpc_call_from(context);
    rpc->upstream = NULL;
    if (rpc->is_stream && !rpc->is_refused)
        take_events(rpc);
    else if (!rpc->is_stream && result == UPSTREAM_DONE)
        take_message(rpc, buffer_str(&rpc->received));
    if (rpc->is_resumed && result == UPSTREAM_CONNECT_FAILED)
        server_status_note(rpc->worker->gateway->catalog, str_from(rpc->source->id), false);
    if (can_resume(rpc, result) && !is_silent(rpc))
        wait_to_resume(rpc);
    else if (can_resume(rpc, result))
        conclude(rpc, UPSTREAM_SILENT, "nothing came on its stream");
    else if (rpc->is_resumed && rpc->message.length == 0 && result != UPSTREAM_SILENT)
        conclude(rpc, UPSTREAM_GONE, "upstream does not give the rest of its stream");
    else
        conclude(rpc, result, detail);
}

static void on_deadline(void *context)
{
    conclude(rpc_call_from(context), UPSTREAM_SILENT, "time limit");
}

static const struct upstream_callbacks upstream_callbacks = {on_head, on_body, on_end};

/* ---- resuming a stream ---- */

/* The status and headers of the call stay those of the first response. */
static void on_resumed_head(void *context, int status, const struct http_header *items,
                            size_t count)
{
    struct rpc_call *rpc = rpc_call_from(context);
    struct headers headers;
    headers_init(&headers, false);
    headers_from_response(&headers, items, count);
    rpc->is_refused = status != 200 || !headers_name_event_stream(&headers) ||
                      headers_find(&headers, "content-encoding").length > 0;
    if (!rpc->is_refused)
        rpc->failures = 0;
    else if (status != 429 && status < 500)
        rpc->failures = MOST_FAILURES;
    headers_finish(&headers);
}

static void open_resumed(void *context)
{
    static const struct upstream_callbacks callbacks = {on_resumed_head, on_body, on_end};
    struct rpc_call *rpc = rpc_call_from(context);
    struct headers headers;
    headers_init(&headers, false);
    for (size_t i = 0; i < rpc->request_headers.count; i++) {
        const struct http_header *item = &rpc->request_headers.items[i];
        if (!str_equal_ignore_case(item->name, STR("content-type")))
            headers_add(&headers, item->name, item->value);
    }
    headers_set(&headers, STR("accept"), STR("text/event-stream"));
    headers_set(&headers, STR("last-event-id"), buffer_str(&rpc->last_id));
    struct upstream_request request = {
        .method = "GET",
        .url = rpc->source->url,
        .tls = rpc->source->tls,
        .headers = headers.items,
        .header_count = headers.count,
        .owner = headers_connection_owner(&rpc->request_headers, rpc->source),
        .connect_timeout_ms = rpc->snapshot->config->times.connect_timeout_ms,
        .silence_timeout_ms = rpc->silence_ms,
    };
    rpc->is_refused = false;
    rpc->is_resumed = true;
    rpc->failures++; /* unless it opens */
    rpc->upstream = upstream_call_start(rpc->worker->client, &request, &callbacks, rpc);
    headers_finish(&headers);
}

/* ---- beginning ---- */

static struct rpc_call *create(struct gateway_worker *worker,
                               const struct rpc_call_options *options,
                               const struct rpc_call_callbacks *callbacks, void *context)
{
    struct rpc_call *rpc = memory_alloc(sizeof *rpc);
    MAGIC_SET(rpc, RPC_CALL_MAGIC);
    rpc->worker = worker;
    list_append(&worker->rpc_calls, &rpc->node);
    rpc->snapshot = snapshot_ref(options->snapshot);
    rpc->source = options->source;
    rpc->callbacks = *callbacks;
    rpc->context = context;
    rpc->most_bytes = options->most_bytes;
    rpc->started_ms = clock_monotonic_ms();
    headers_init(&rpc->request_headers, true);
    headers_init(&rpc->headers, true);
    buffer_append(&rpc->id, options->id);
    reply_check_init(&rpc->reply, buffer_str(&rpc->id));
    sse_splitter_init(&rpc->splitter);
    rpc->silence_ms = options->silence_ms;
    rpc->retry_ms = RETRY_MS;
    rpc->heard_ms = rpc->started_ms;
    headers_add_all(&rpc->request_headers, options->headers);
    loop_timer_init(&rpc->again, worker->loop, open_resumed, rpc);
    loop_timer_init(&rpc->deadline, worker->loop, on_deadline, rpc);
    if (options->total_ms > 0)
        loop_timer_start(&rpc->deadline, options->total_ms);
    return rpc;
}

struct rpc_call *rpc_call_start(struct gateway_worker *worker,
                                const struct rpc_call_options *options,
                                const struct rpc_call_callbacks *callbacks, void *context)
{
    struct rpc_call *rpc = create(worker, options, callbacks, context);
    buffer_append(&rpc->body, options->body);
    if (options->trace.parent.context)
        rpc->span = upstream_span_start_own(&options->trace, rpc->source, options->body,
                                            &rpc->request_headers);
    headers_set(&rpc->request_headers, STR("content-type"), STR("application/json"));
    headers_set(&rpc->request_headers, STR("accept"), STR("application/json, text/event-stream"));
    struct upstream_request request = {
        .method = options->method ? options->method : "POST",
        .url = rpc->source->url,
        .tls = rpc->source->tls,
        .headers = rpc->request_headers.items,
        .header_count = rpc->request_headers.count,
        .body = buffer_str(&rpc->body),
        .owner = headers_connection_owner(&rpc->request_headers, rpc->source),
        .needs_proof = rpc->id.length > 0,
        .connect_timeout_ms = rpc->snapshot->config->times.connect_timeout_ms,
        .silence_timeout_ms = options->silence_ms,
    };
    rpc->upstream = upstream_call_start(worker->client, &request, &upstream_callbacks, rpc);
    return rpc;
}

struct rpc_call *rpc_call_adopt(struct gateway_worker *worker, struct rpc_call_begun *taken,
                                const struct rpc_call_options *options,
                                const struct rpc_call_callbacks *callbacks, void *context)
{
    struct rpc_call *rpc = create(worker, options, callbacks, context);
    rpc->status = taken->status;
    rpc->is_stream = taken->is_stream;
    rpc->received = taken->received;
    rpc->splitter = taken->splitter;
    rpc->last_id = taken->last_id;
    rpc->started_ms = taken->started_ms;
    rpc->upstream = taken->upstream;
    rpc->span = taken->span;
    upstream_call_hand_over(rpc->upstream, &upstream_callbacks, rpc);
    upstream_call_set_silence(rpc->upstream, options->silence_ms);
    return rpc;
}

/* ---- requests of the gateway's own for a call, and messages whose answer nobody waits for ---- */

void rpc_call_write_request(struct buffer *body, struct buffer *id, const char *method,
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

static void nobody_waits(void *context, const struct rpc_call_reply *reply)
{
}

struct rpc_call *rpc_call_ask(const struct call *call, const struct rpc_call_question *question,
                              const struct rpc_call_callbacks *callbacks, void *context)
{
    const struct rpc_call_options options = {
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
    return rpc_call_start(call->worker, &options, callbacks, context);
}

struct rpc_call *rpc_call_start_page(struct call *call, const char *method, struct str cursor,
                                     size_t most_bytes, const struct rpc_call_callbacks *callbacks)
{
    struct buffer params = {0}, body = {0}, id = {0};
    struct headers headers;
    int64_t timeout_ms = call->snapshot->config->times.tools_fetch_timeout_ms;
    headers_init(&headers, false);
    headers_from_call(&headers, call);
    if (cursor.length > 0)
        buffer_append_format(&params, "{\"cursor\":%.*s}", STR_ARGS(cursor));
    rpc_call_write_request(&body, &id, method, buffer_str(&params));
    const struct rpc_call_question question = {&headers, buffer_str(&body), buffer_str(&id),
                                               timeout_ms, most_bytes};
    struct rpc_call *rpc = rpc_call_ask(call, &question, callbacks, call);
    headers_finish(&headers);
    buffer_finish(&params);
    buffer_finish(&body);
    buffer_finish(&id);
    return rpc;
}

void rpc_call_notify(struct gateway_worker *worker, const struct rpc_call_options *options)
{
    static const struct rpc_call_callbacks callbacks = {.reply = nobody_waits};
    struct rpc_call_options bounded = *options;
    bounded.total_ms = 10000;
    bounded.most_bytes = 65536;
    rpc_call_start(worker, &bounded, &callbacks, NULL);
}
