/* Requests to servers, and what returns: bytes, or messages. */
#include "http.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#include "auth/token_exchange.h"
#include "call/call.h"
#include "call/call_span.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"
#include "taskgate/core/magic.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"
#include "taskgate/core/owned.h"
#include "taskgate/core/random.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/reply_check.h"
#include "taskgate/mcp/sse.h"

/* The pause before a broken stream is resumed: the server's `retry`, within these bounds. */
#define RETRY_MS 1000
#define RETRY_LEAST_MS 100
#define RETRY_MOST_MS 60000
#define MOST_FAILURES 3

/* An event longer than this passes in parts instead of being held until it is whole. */
#define EVENT_BYTES_KEPT ((size_t)1024 * 1024)

/* Bytes kept of either end of the events that were passed on last, to find the id of the last one.
 */
#define GLIMPSE_BYTES 256

/* What an exchange has beside bytes once it reads messages. */
struct reading {
    struct headers request_headers, headers;
    struct buffer id;
    struct buffer message; /* the answer, once it is there */
    struct loop_timer deadline;
    int64_t silence_ms;
    bool too_large;
    bool is_anothers; /* a message on the stream has another request's id */
    bool is_foreign;  /* the whole reply is another request's */

    /* An event stream that ended before the answer is resumed after its last event. */
    struct buffer last_id;
    struct loop_timer again;
    int64_t retry_ms; /* the server's `retry` */
    int64_t heard_ms; /* monotonic: when its last byte came */
    int failures;     /* tries in a row to resume that failed */
    bool is_resumed;  /* the resumed stream is under way, */
    bool is_refused;  /* and the server has refused it */
};

struct exchange {
    uint32_t magic; /* EXCHANGE_MAGIC */
    int status;     /* 0: the response has not begun */
    struct gateway_worker *worker;
    struct snapshot *snapshot; /* messages: a reference */
    const struct config_source *source;
    struct exchange_events events;
    void *context;
    struct upstream_call *upstream; /* NULL: the response has ended */
    struct buffer body;             /* of the request, if it is ours */
    struct str id;
    int64_t started_ms;
    size_t most_bytes;
    struct span *span; /* NULL: it belongs to no trace */
    bool is_stream, is_encoded;
    bool is_parting;                /* counted in gateway.parting */
    struct reply_event_check reply; /* of a JSON body its `message` only */
    struct sse_splitter splitter;
    struct buffer received; /* bytes: of an event that is not whole; messages: of the reply */

    /* Bytes. */
    bool is_elsewhere;    /* at another URL than the source's */
    bool is_checked;      /* `reply` says whose it is */
    bool is_passing;      /* the receiver has bytes of an event stream at hand */
    bool is_inside_event; /* a long event passes in parts */
    struct str authorization;
    struct buffer glimpse; /* first and last bytes of what was passed on last */
    int64_t reply_bytes;
    int64_t passed; /* bytes of the body so far */

    struct reading *reading; /* NULL: bytes */
    struct list node;        /* in worker.exchanges_reading, with `reading` */

    alignas(max_align_t) unsigned char own[]; /* exchange_own() */
};
#define EXCHANGE_MAGIC 0x47575209

static inline struct exchange *exchange_from(void *context)
{
    return MAGIC_CAST(struct exchange, EXCHANGE_MAGIC, context);
}

void *exchange_own(struct exchange *exchange)
{
    return exchange->own;
}

static void finish_reading(struct exchange *exchange)
{
    struct reading *reading = exchange->reading;
    list_remove(&exchange->node);
    loop_timer_stop(&reading->deadline);
    loop_timer_stop(&reading->again);
    headers_finish(&reading->request_headers);
    headers_finish(&reading->headers);
    buffer_finish(&reading->last_id);
    buffer_finish(&reading->id);
    buffer_finish(&reading->message);
    snapshot_unref(exchange->snapshot);
    free(reading);
}

void exchange_abandon(struct exchange *exchange)
{
    if (!exchange)
        return;
    ASSERT(!exchange->is_passing);
    if (exchange->upstream)
        upstream_call_cancel(exchange->upstream);
    if (exchange->reading)
        finish_reading(exchange);
    reply_event_check_finish(&exchange->reply);
    buffer_finish(&exchange->body);
    buffer_finish(&exchange->received);
    buffer_finish(&exchange->glimpse);
    if (exchange->span)
        server_span_give_up(exchange->span);
    if (exchange->is_parting)
        atomic_fetch_sub(&exchange->worker->gateway->parting, 1);
    MAGIC_CLEAR(exchange);
    free(exchange);
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

void exchange_set_silence(struct exchange *exchange, int64_t silence_ms)
{
    if (exchange->reading) {
        exchange->reading->silence_ms = silence_ms;
        exchange->reading->heard_ms = clock_monotonic_ms();
    }
    if (exchange->upstream)
        upstream_call_set_silence(exchange->upstream, silence_ms);
}

void exchange_pause(struct exchange *exchange)
{
    if (exchange->upstream)
        upstream_call_pause(exchange->upstream);
}

void exchange_resume(struct exchange *exchange)
{
    if (exchange->upstream)
        upstream_call_resume(exchange->upstream);
}

bool exchange_is_stream(const struct exchange *exchange)
{
    return exchange->is_stream;
}

bool exchange_is_known(const struct exchange *exchange)
{
    return !exchange->is_checked || exchange->reply.message.verdict != REPLY_UNKNOWN;
}

int64_t exchange_age_ms(const struct exchange *exchange)
{
    return loop_now_ms(exchange->worker->loop) - exchange->started_ms;
}

/* The response has ended, or nothing more of it is wanted. */
static void exchange_count_end(const struct exchange *exchange)
{
    call_counters_upstream(str_from(exchange->source->id), exchange->status,
                           exchange_age_ms(exchange));
}

static SPAN_COLD void end_span(struct exchange *exchange, enum upstream_result result)
{
    server_span_end(exchange->span, result, exchange->status);
    exchange->span = NULL;
}

static void forget_token(const struct exchange *exchange, struct str authorization)
{
    token_exchange_note_refused(exchange->worker, exchange->snapshot, exchange->source,
                                authorization);
}

/* ---- bytes: whether the server can be reached ---- */

/* Noted once a second at most, because every response says the same. */
static void note_reachable(const struct exchange *exchange)
{
    struct gateway_worker *worker = exchange->worker;
    int64_t now_ms = loop_now_ms(worker->loop);
    if (worker->reachable_until_ms > now_ms && worker->reachable_source == exchange->source)
        return;
    server_status_note(worker->gateway->catalog, str_from(exchange->source->id), true);
    worker->reachable_until_ms = now_ms + 1000;
    worker->reachable_source = exchange->source;
}

static void note_unreachable(const struct exchange *exchange)
{
    exchange->worker->reachable_until_ms = 0;
    server_status_note(exchange->worker->gateway->catalog, str_from(exchange->source->id), false);
}

/* ---- bytes: what was passed on last ---- */

static void keep_glimpse(struct exchange *exchange, struct str bytes)
{
    size_t head = bytes.length < GLIMPSE_BYTES ? bytes.length : GLIMPSE_BYTES;
    size_t tail = bytes.length - head < GLIMPSE_BYTES ? bytes.length - head : GLIMPSE_BYTES;
    buffer_clear(&exchange->glimpse);
    buffer_append(&exchange->glimpse, str_slice(bytes.bytes, head));
    buffer_append(&exchange->glimpse, str_slice(bytes.bytes + bytes.length - tail, tail));
}

bool exchange_is_answered(const struct exchange *exchange)
{
    return exchange->reply.is_answered;
}

/* The `id` of the last event that was passed on, or an earlier one's. The server then repeats
 * events, which does no harm. */
static void find_last_id(struct exchange *exchange)
{
    struct str rest = buffer_str(&exchange->glimpse), line;
    while (rest.length > 0) {
        str_cut(rest, '\n', &line, &rest);
        if (!str_starts_with(line, STR("id:")))
            continue;
        buffer_clear(&exchange->reading->last_id);
        buffer_append(&exchange->reading->last_id,
                      str_trim(str_slice(line.bytes + 3, line.length - 3)));
    }
}

/* ---- bytes: whether the reply is the response to the request ---- */

static bool is_too_long(const struct exchange *exchange, int64_t bytes)
{
    if (exchange->reply_bytes == 0 || bytes <= exchange->reply_bytes)
        return false;
    log_warn("Upstream answered with more bytes than limits.reply_bytes",
             LOG_TEXT("source", exchange->source->id));
    metrics_count(METRIC_LIMITS_REACHED, STR("reply_bytes"));
    return true;
}

/* The client would follow it past the gateway. */
static bool is_redirect(const struct exchange *exchange, const struct headers *headers)
{
    if (exchange->status < 300 || exchange->status >= 400 || exchange->is_elsewhere)
        return false;
    log_warn("Upstream redirects, which is not followed", LOG_TEXT("source", exchange->source->id),
             LOG_STR("location", headers_find(headers, "location")));
    return true;
}

/* An encoded reply cannot be read, so nobody knows whose it is. An HTTP error that does not say
 * that it is JSON-RPC is passed on as it is. */
static bool exchange_is_unreadable(const struct exchange *exchange, const struct headers *headers)
{
    if (!exchange->is_encoded || exchange->id.length == 0)
        return false;
    struct str type = headers_known(headers, HTTP_NAME_CONTENT_TYPE);
    return exchange->status < 400 || type.length == 0 || exchange->is_stream ||
           memmem(type.bytes, type.length, "json", 4) != NULL;
}

/* HTTP errors that are no JSON-RPC are passed on as they are. Their connection is not kept. */
static bool is_no_response(const struct exchange *exchange, enum reply_verdict verdict)
{
    if (verdict != REPLY_FOREIGN && (verdict != REPLY_NONE || exchange->status >= 400))
        return false;
    log_warn(verdict == REPLY_FOREIGN ? "Upstream answered with the id of another request"
                                      : "Upstream answered with no JSON-RPC response",
             LOG_TEXT("source", exchange->source->id), LOG_NUMBER("status", exchange->status));
    return true;
}

/* ---- bytes: the reply is passed on ---- */

static int64_t announced_length(const struct http_header *items, size_t count)
{
    uint64_t length;
    for (size_t i = 0; i < count; i++) {
        if (http_name_of(&items[i]) == HTTP_NAME_CONTENT_LENGTH &&
            str_to_u64(items[i].value, &length) && length <= INT64_MAX)
            return (int64_t)length;
    }
    return -1;
}

static void pass_head(struct exchange *exchange, const struct http_header *items, size_t count)
{
    struct http_header room[HEADERS_ROOM];
    struct headers headers;
    headers_init_in(&headers, room, HEADERS_ROOM);
    headers_from_response(&headers, items, count);
    note_reachable(exchange);
    if (exchange->status == 401)
        forget_token(exchange, exchange->authorization);
    exchange->is_stream = headers_name_event_stream(&headers);
    exchange->is_encoded = headers_known(&headers, HTTP_NAME_CONTENT_ENCODING).length > 0;
    exchange->is_checked = exchange->id.length > 0 && !exchange->is_encoded;
    if (exchange->is_checked)
        reply_event_check_init(&exchange->reply, exchange->id);
    struct exchange_head head = {
        .status = exchange->status,
        .headers = &headers,
        .length = announced_length(items, count),
        .is_stream = exchange->is_stream,
        .is_encoded = exchange->is_encoded,
        .is_checked = exchange->is_checked,
    };
    head.is_refused = is_redirect(exchange, &headers) ||
                      exchange_is_unreadable(exchange, &headers) ||
                      is_too_long(exchange, head.length);
    exchange->events.head(exchange->context, &head);
    headers_finish(&headers);
}

static void exchange_pass(struct exchange *exchange, struct str bytes, bool is_whole)
{
    exchange->is_passing = true;
    exchange->events.bytes(exchange->context, bytes, is_whole);
    exchange->is_passing = false;
}

static void keep_part(struct exchange *exchange, struct str bytes)
{
    if (bytes.length == 0)
        return;
    buffer_append(&exchange->received, bytes);
    if (exchange->received.length <= EVENT_BYTES_KEPT)
        return;
    exchange->is_passing = true;
    if (exchange->events.part(exchange->context, buffer_str(&exchange->received))) {
        buffer_clear(&exchange->received);
        exchange->is_inside_event = true;
    }
    exchange->is_passing = false;
}

/* Only whole events are passed on, so that an error event can always follow. An event that is too
 * long to be held passes in parts. */
static void pass_whole_events(struct exchange *exchange, struct str bytes)
{
    size_t whole = sse_splitter_feed(&exchange->splitter, bytes, NULL);
    if (whole > 0) {
        struct str events = str_slice(bytes.bytes, whole);
        if (exchange->received.length > 0) {
            buffer_append(&exchange->received, events);
            exchange_pass(exchange, buffer_str(&exchange->received), true);
            buffer_clear(&exchange->received);
        } else {
            exchange_pass(exchange, events, true);
        }
        exchange->is_inside_event = false;
        keep_glimpse(exchange, events);
    }
    keep_part(exchange, str_slice(bytes.bytes + whole, bytes.length - whole));
}

static void pass_events(struct exchange *exchange, struct str bytes)
{
    bool is_anothers = false;
    if (exchange->is_checked)
        bytes.length = reply_event_check_feed(&exchange->reply, bytes, &is_anothers);
    if (exchange->reply.is_answered && !is_anothers)
        upstream_call_prove(exchange->upstream);
    pass_whole_events(exchange, bytes);
    if (is_anothers) {
        is_no_response(exchange, REPLY_FOREIGN);
        exchange->events.unreadable(exchange->context);
    } else if (exchange->received.length > exchange->most_bytes) {
        metrics_count(METRIC_LIMITS_REACHED, STR("result_bytes"));
        exchange->events.unreadable(exchange->context);
    }
}

static void pass_body(struct exchange *exchange, struct str bytes)
{
    struct reply_check *check = &exchange->reply.message;
    enum reply_verdict verdict = REPLY_UNKNOWN;
    exchange->passed += (int64_t)bytes.length;
    if (is_too_long(exchange, exchange->passed)) {
        exchange->events.unreadable(exchange->context);
        return;
    }
    if (exchange->is_stream) {
        pass_events(exchange, bytes);
        return;
    }
    if (exchange->is_checked)
        verdict = reply_check_feed(check, bytes);
    if (reply_check_is_answer(check))
        upstream_call_prove(exchange->upstream);
    if (is_no_response(exchange, verdict))
        exchange->events.unreadable(exchange->context);
    else
        exchange->events.bytes(exchange->context, bytes, false);
}

/* Whether the reply, which has ended, may be the response. */
static bool ends_as_response(struct exchange *exchange)
{
    enum reply_verdict verdict;
    if (!exchange->is_checked)
        return true;
    if (exchange->is_stream)
        verdict = reply_event_check_end(&exchange->reply) ? REPLY_OURS : REPLY_FOREIGN;
    else
        verdict = reply_check_end(&exchange->reply.message);
    return !is_no_response(exchange, verdict);
}

static void pass_end(struct exchange *exchange, enum upstream_result result, const char *detail)
{
    exchange_count_end(exchange);
    if (exchange->span)
        end_span(exchange, result);
    bool is_response = result != UPSTREAM_DONE || ends_as_response(exchange);
    if (result != UPSTREAM_DONE && exchange->status == 0)
        note_unreachable(exchange);
    /* An event without an empty line. */
    if (result == UPSTREAM_DONE && is_response && exchange->is_stream &&
        exchange->received.length > 0)
        exchange_pass(exchange, buffer_str(&exchange->received), false);
    exchange->events.end(exchange->context, result, is_response, detail);
}

/* ---- messages ---- */

enum lost_reason lost_reason_of(enum upstream_result result)
{
    switch (result) {
    case UPSTREAM_CONNECT_FAILED:
        return LOST_CONNECT;
    case UPSTREAM_SILENT:
        return LOST_TIMEOUT;
    case UPSTREAM_DONE:
        return LOST_UNREADABLE;
    case UPSTREAM_GONE:
        break;
    }
    return LOST_GONE;
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
    struct reading *reading = exchange->reading;
    ASSERT(reading); /* the last event of an exchange of messages */
    struct exchange_reply reply = {
        .result = result,
        /* The status of another's reply says nothing about this request. */
        .status = reading->is_foreign && exchange->status >= 300 ? 0 : exchange->status,
        .headers = &reading->headers,
        .message = buffer_str(&reading->message),
        .body = exchange->is_stream ? STR_EMPTY : buffer_str(&exchange->received),
        .too_large = reading->too_large,
        .detail = detail,
    };
    bool has_answer = reply.message.length > 0;
    bool succeeded = reply.status >= 200 && reply.status < 300;
    reply.unreadable =
        exchange->is_encoded || reading->is_foreign ||
        (result == UPSTREAM_DONE && succeeded && !has_answer && exchange->id.length > 0);
    exchange_count_end(exchange);
    /* A response that broke off does not show that the server can be reached now. */
    if (result == UPSTREAM_DONE || reply.status == 0)
        server_status_note(exchange->worker->gateway->catalog, str_from(exchange->source->id),
                           result == UPSTREAM_DONE);
    if (exchange->span)
        end_span(exchange, result);
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
        return reply_id_is(exchange->id, id);
    return json_member(message, "error").length > 0;
}

static void exchange_take_message(struct exchange *exchange, struct str message)
{
    struct reading *reading = exchange->reading;
    if (reading->message.length > 0 || !json_check(message, NULL) ||
        json_type(message) != JSON_OBJECT)
        return;
    if (is_answer(exchange, message))
        buffer_append(&reading->message, message);
    else if (json_member(message, "method").length == 0)
        reading->is_anothers |= exchange->id.length > 0 && is_response(message);
    else if (exchange->events.server_message)
        exchange->events.server_message(exchange->context, message);
}

static void note_place(struct exchange *exchange, const struct sse_event *event)
{
    struct reading *reading = exchange->reading;
    if (event->id.bytes) {
        buffer_clear(&reading->last_id);
        buffer_append(&reading->last_id, event->id);
    }
    if (event->retry_ms >= 0)
        reading->retry_ms = event->retry_ms;
}

static void exchange_take_events(struct exchange *exchange)
{
    struct str rest = buffer_str(&exchange->received);
    size_t length;
    while ((length = sse_first_event(rest)) > 0) {
        struct sse_event event;
        sse_event_read(&event, str_slice(rest.bytes, length));
        note_place(exchange, &event);
        if (event.has_data)
            exchange_take_message(exchange, buffer_str(&event.data));
        sse_event_finish(&event);
        rest = str_slice(rest.bytes + length, rest.length - length);
    }
    buffer_drop(&exchange->received, exchange->received.length - rest.length);
}

static void exchange_read_head(struct exchange *exchange, const struct http_header *items,
                               size_t count)
{
    struct reading *reading = exchange->reading;
    headers_from_response(&reading->headers, items, count);
    exchange->is_stream = headers_name_event_stream(&reading->headers);
    exchange->is_encoded = headers_find(&reading->headers, "content-encoding").length > 0;
    if (exchange->status == 401)
        forget_token(exchange, headers_known(&reading->request_headers, HTTP_NAME_AUTHORIZATION));
    const struct exchange_head head = {
        .status = exchange->status,
        .headers = &reading->headers,
        .length = -1,
        .is_stream = exchange->is_stream,
        .is_encoded = exchange->is_encoded,
    };
    if (exchange->events.head)
        exchange->events.head(exchange->context, &head);
}

/* Closes the connection with the call: the next reply on it may be another request's, too. */
static void conclude_for_another_id(struct exchange *exchange)
{
    log_warn("Upstream answered with the id of another request",
             LOG_TEXT("source", exchange->source->id));
    buffer_clear(&exchange->received);
    exchange->reading->is_foreign = true;
    conclude(exchange, UPSTREAM_DONE, "the reply has the id of another request");
}

static void exchange_look_at(struct exchange *exchange, struct str bytes)
{
    enum reply_verdict verdict = reply_check_feed(&exchange->reply.message, bytes);
    if (reply_check_is_answer(&exchange->reply.message))
        upstream_call_prove(exchange->upstream);
    if (verdict == REPLY_FOREIGN)
        conclude_for_another_id(exchange);
}

static void exchange_read_body(struct exchange *exchange, struct str bytes)
{
    struct reading *reading = exchange->reading;
    reading->heard_ms = clock_monotonic_ms();
    if (reading->is_refused)
        return;
    if (exchange->received.length + bytes.length > exchange->most_bytes) {
        reading->too_large = true;
        conclude(exchange, UPSTREAM_DONE, "reply too large");
        return;
    }
    buffer_append(&exchange->received, bytes);
    if (!exchange->is_stream) {
        if (exchange->id.length > 0 && !exchange->is_encoded)
            exchange_look_at(exchange, bytes);
        return;
    }
    size_t whole = sse_splitter_feed(&exchange->splitter, bytes, NULL);
    if (whole > 0)
        exchange_take_events(exchange);
    if (reading->message.length > 0)
        conclude(exchange, UPSTREAM_DONE, "");
    else if (reading->is_anothers)
        conclude_for_another_id(exchange);
}

/* Whether a stream that ended before the answer may be resumed. */
static bool can_resume(const struct exchange *exchange, enum upstream_result result)
{
    const struct reading *reading = exchange->reading;
    return exchange->is_stream && exchange->id.length > 0 && reading->message.length == 0 &&
           reading->last_id.length > 0 && reading->failures < MOST_FAILURES &&
           result != UPSTREAM_SILENT;
}

/* A limit of 0 is for a server that waits for a person. */
static bool is_silent(const struct exchange *exchange)
{
    const struct reading *reading = exchange->reading;
    return reading->silence_ms > 0 &&
           clock_monotonic_ms() - reading->heard_ms >= reading->silence_ms;
}

static void wait_to_resume(struct exchange *exchange)
{
    struct reading *reading = exchange->reading;
    ASSERT(!exchange->upstream && reading->last_id.length > 0);
    int64_t in_ms = reading->retry_ms < RETRY_LEAST_MS ? RETRY_LEAST_MS : reading->retry_ms;
    buffer_clear(&exchange->received);
    sse_splitter_init(&exchange->splitter);
    loop_timer_start(&reading->again, in_ms < RETRY_MOST_MS ? in_ms : RETRY_MOST_MS);
}

static void exchange_read_end(struct exchange *exchange, enum upstream_result result,
                              const char *detail)
{
    struct reading *reading = exchange->reading;
    if (exchange->is_stream && !reading->is_refused)
        exchange_take_events(exchange);
    else if (!exchange->is_stream && result == UPSTREAM_DONE)
        exchange_take_message(exchange, buffer_str(&exchange->received));
    if (reading->is_resumed && result == UPSTREAM_CONNECT_FAILED)
        server_status_note(exchange->worker->gateway->catalog, str_from(exchange->source->id),
                           false);
    if (can_resume(exchange, result) && !is_silent(exchange))
        wait_to_resume(exchange);
    else if (can_resume(exchange, result))
        conclude(exchange, UPSTREAM_SILENT, "nothing came on its stream");
    else if (reading->is_resumed && reading->message.length == 0 && result != UPSTREAM_SILENT)
        conclude(exchange, UPSTREAM_GONE, "upstream does not give the rest of its stream");
    else
        conclude(exchange, result, detail);
}

static void on_deadline(void *context)
{
    conclude(exchange_from(context), UPSTREAM_SILENT, "time limit");
}

/* ---- what upstream calls ---- */

static void exchange_on_head(void *context, int status, const struct http_header *items,
                             size_t count)
{
    struct exchange *exchange = exchange_from(context);
    exchange->status = status;
    if (exchange->reading)
        exchange_read_head(exchange, items, count);
    else
        pass_head(exchange, items, count);
}

static void exchange_on_body(void *context, struct str bytes)
{
    struct exchange *exchange = exchange_from(context);
    if (exchange->reading)
        exchange_read_body(exchange, bytes);
    else
        pass_body(exchange, bytes);
}

static void exchange_on_end(void *context, enum upstream_result result, const char *detail)
{
    struct exchange *exchange = exchange_from(context);
    exchange->upstream = NULL; /* gone when this returns */
    if (exchange->reading)
        exchange_read_end(exchange, result, detail);
    else
        pass_end(exchange, result, detail);
}

/* ---- resuming a stream ---- */

/* The status and headers of the call stay those of the first response. */
static void on_resumed_head(void *context, int status, const struct http_header *items,
                            size_t count)
{
    struct exchange *exchange = exchange_from(context);
    struct reading *reading = exchange->reading;
    OWNED_HEADERS(headers, false);
    headers_from_response(&headers, items, count);
    reading->is_refused = status != 200 || !headers_name_event_stream(&headers) ||
                          headers_find(&headers, "content-encoding").length > 0;
    if (!reading->is_refused)
        reading->failures = 0;
    else if (status != 429 && status < 500)
        reading->failures = MOST_FAILURES;
}

static void open_resumed(void *context)
{
    static const struct upstream_callbacks callbacks = {on_resumed_head, exchange_on_body,
                                                        exchange_on_end};
    struct exchange *exchange = exchange_from(context);
    struct reading *reading = exchange->reading;
    OWNED_HEADERS(headers, false);
    ASSERT(!exchange->upstream);
    ASSERT_NUMBERS(reading->failures, <, MOST_FAILURES);
    for (size_t i = 0; i < reading->request_headers.count; i++) {
        const struct http_header *item = &reading->request_headers.items[i];
        if (!str_equal_ignore_case(item->name, STR("content-type")))
            headers_add(&headers, item->name, item->value);
    }
    headers_set(&headers, STR("accept"), STR("text/event-stream"));
    headers_set(&headers, STR("last-event-id"), buffer_str(&reading->last_id));
    struct upstream_request request = {
        .method = "GET",
        .url = exchange->source->url,
        .tls = exchange->source->tls,
        .headers = headers.items,
        .header_count = headers.count,
        .owner = headers_connection_owner(&reading->request_headers, exchange->source),
        .connect_timeout_ms = exchange->snapshot->config->times.connect_timeout_ms,
        .silence_timeout_ms = reading->silence_ms,
    };
    reading->is_refused = false;
    reading->is_resumed = true;
    reading->failures++; /* unless it opens */
    exchange->upstream =
        upstream_call_start(exchange->worker->client, &request, &callbacks, exchange);
}

/* ---- beginning ---- */

static void exchange_begin_reading(struct exchange *exchange, const struct sending *sending)
{
    ASSERT(!exchange->reading && exchange->events.reply);
    struct reading *reading = exchange->reading = memory_alloc(sizeof *reading);
    struct gateway_worker *worker = exchange->worker;
    list_append(&worker->exchanges_reading, &exchange->node);
    exchange->snapshot = snapshot_ref(sending->snapshot);
    exchange->source = sending->source;
    exchange->most_bytes = sending->most_bytes;
    headers_init(&reading->request_headers, true);
    headers_init(&reading->headers, true);
    headers_add_all(&reading->request_headers, sending->headers);
    buffer_append(&reading->id, sending->id);
    exchange->id = buffer_str(&reading->id);
    reply_event_check_finish(&exchange->reply);
    reply_event_check_init(&exchange->reply, exchange->id);
    reading->silence_ms = sending->silence_ms;
    reading->retry_ms = RETRY_MS;
    reading->heard_ms = clock_monotonic_ms();
    loop_timer_init(&reading->again, worker->loop, open_resumed, exchange);
    loop_timer_init(&reading->deadline, worker->loop, on_deadline, exchange);
    if (sending->total_ms > 0)
        loop_timer_start(&reading->deadline, sending->total_ms);
}

/* Adds to its headers what a request of the gateway's own needs. */
static void http_complete_headers(struct exchange *exchange, const struct sending *sending)
{
    struct headers *headers = &exchange->reading->request_headers;
    if (sending->trace.parent.context)
        exchange->span =
            server_span_start_own(&sending->trace, exchange->source, sending->body, headers);
    headers_set(headers, STR("content-type"), STR("application/json"));
    headers_set(headers, STR("accept"), STR("application/json, text/event-stream"));
}

struct exchange *exchange_send(struct gateway_worker *worker, const struct sending *sending,
                               const struct exchange_events *events, void *context)
{
    static const struct upstream_callbacks callbacks = {exchange_on_head, exchange_on_body,
                                                        exchange_on_end};
    struct exchange *exchange = memory_alloc(sizeof *exchange + sending->own_bytes);
    const struct headers *headers = sending->headers;
    MAGIC_SET(exchange, EXCHANGE_MAGIC);
    exchange->worker = worker;
    exchange->events = *events;
    exchange->context = sending->own_bytes > 0 ? exchange->own : context;
    exchange->started_ms = loop_now_ms(worker->loop);
    exchange->span = sending->span;
    sse_splitter_init(&exchange->splitter);
    if (events->bytes) {
        exchange->snapshot = sending->snapshot;
        exchange->source = sending->source;
        exchange->id = sending->id;
        exchange->most_bytes = sending->most_bytes;
        exchange->reply_bytes = sending->reply_bytes;
        exchange->authorization = sending->authorization;
        exchange->is_elsewhere = sending->url != NULL;
    } else {
        exchange->is_parting = sending->is_parting;
        if (exchange->is_parting)
            atomic_fetch_add(&worker->gateway->parting, 1);
        exchange_begin_reading(exchange, sending);
        http_complete_headers(exchange, sending);
        headers = &exchange->reading->request_headers;
    }
    if (!sending->body_lasts)
        buffer_append(&exchange->body, sending->body);
    struct upstream_request request = {
        .method = sending->method ? sending->method : "POST",
        .url = sending->url ? sending->url : sending->source->url,
        .tls = sending->source->tls,
        .headers = headers->items,
        .header_count = headers->count,
        .body = sending->body_lasts ? sending->body : buffer_str(&exchange->body),
        .owner = headers_connection_owner(headers, sending->source),
        .needs_proof = exchange->id.length > 0,
        .connect_timeout_ms = sending->snapshot->config->times.connect_timeout_ms,
        .silence_timeout_ms = sending->silence_ms,
    };
    exchange->upstream = upstream_call_start(worker->client, &request, &callbacks, exchange);
    return exchange;
}

/* ---- from bytes to messages ---- */

bool exchange_may_read_messages(const struct exchange *exchange)
{
    bool is_between = exchange->is_stream && !exchange->is_encoded && !exchange->is_passing &&
                      !exchange->is_inside_event && !exchange_is_answered(exchange);
    return exchange->reading ||
           ((exchange->status == 0 || is_between) && upstream_call_has_sent(exchange->upstream));
}

void exchange_read_messages(struct exchange *exchange, const struct sending *sending,
                            const struct exchange_events *events, void *context)
{
    void (*released)(void *) = exchange->events.released;
    void *former = exchange->context;
    ASSERT(exchange_may_read_messages(exchange) && released);
    exchange->events = *events;
    exchange->context = context;
    released(former);
    if (!exchange->reading) {
        exchange_begin_reading(exchange, sending);
        find_last_id(exchange);
        upstream_call_resume(exchange->upstream);
    }
    exchange_set_silence(exchange, sending->silence_ms);
}

/* ---- requests of the gateway's own for a call, and messages whose answer nobody waits for ---- */

void server_write_id(struct buffer *id)
{
    char uuid[RANDOM_UUID_BYTES];
    random_uuid(uuid);
    buffer_append_format(id, "\"tg:%s\"", uuid);
}

void exchange_write_request(struct buffer *body, struct buffer *id, const char *method,
                            struct str params)
{
    server_write_id(id);
    buffer_append_text(body, "{\"jsonrpc\":\"2.0\",\"id\":");
    buffer_append(body, buffer_str(id));
    buffer_append_text(body, ",\"method\":");
    buffer_append_json_string(body, str_from(method));
    if (params.length > 0) {
        buffer_append_text(body, ",\"params\":");
        buffer_append(body, params);
    }
    buffer_append_char(body, '}');
}

static void nobody_waits(void *context, const struct exchange_reply *reply)
{
}

/* A question under way, in the memory of its exchange. */
struct errand {
    struct call_part part;
    struct call *call;
    struct exchange *exchange;
    void (*answered)(struct call *call, const struct exchange_reply *reply, call_step next);
    call_step next;
};

static void drop_errand(struct call *call, void *object)
{
    exchange_abandon(((struct errand *)object)->exchange);
}

static const struct call_part_kind errand_kind = CALL_PART_KIND(struct errand, drop_errand);

static void on_errand_reply(void *context, const struct exchange_reply *reply)
{
    struct errand *errand = context;
    call_part_remove(&errand->part);
    errand->answered(errand->call, reply, errand->next);
}

void server_ask(struct call *call, const struct exchange_question *question)
{
    static const struct exchange_events events = {.reply = on_errand_reply};
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
        .own_bytes = sizeof(struct errand),
    };
    ASSERT(!call_part_find(call, &errand_kind));
    struct exchange *exchange = exchange_send(call->worker, &sending, &events, NULL);
    struct errand *errand = exchange_own(exchange);
    errand->call = call;
    errand->exchange = exchange;
    errand->answered = question->answered;
    errand->next = question->next;
    call_part_add(call, &errand->part, &errand_kind);
}

void server_ask_page(struct call *call, const char *method, struct str cursor, size_t most_bytes,
                     void (*answered)(struct call *call, const struct exchange_reply *reply,
                                      call_step next))
{
    OWNED_BUFFER(params);
    OWNED_BUFFER(body);
    OWNED_BUFFER(id);
    OWNED_HEADERS(headers, false);
    headers_from_call(&headers, call);
    if (cursor.length > 0)
        buffer_append_format(&params, "{\"cursor\":%.*s}", STR_ARGS(cursor));
    exchange_write_request(&body, &id, method, buffer_str(&params));
    server_ask(call, &(struct exchange_question){
                         .headers = &headers,
                         .body = buffer_str(&body),
                         .id = buffer_str(&id),
                         .limit_ms = call->snapshot->config->times.tools_fetch_timeout_ms,
                         .most_bytes = most_bytes,
                         .answered = answered});
}

/* Servers answer such a message with 202 and no body. */
static void send_bounded(struct gateway_worker *worker, const struct sending *sending,
                         const struct exchange_events *events, void *context)
{
    static const struct exchange_events nobody = {.reply = nobody_waits};
    struct sending bounded = *sending;
    bounded.total_ms = 10000;
    bounded.most_bytes = 65536;
    bounded.is_parting = true;
    exchange_send(worker, &bounded, events ? events : &nobody, context);
}

void exchange_notify(struct gateway_worker *worker, const struct sending *sending)
{
    send_bounded(worker, sending, NULL, NULL);
}

void server_respond(struct gateway_worker *worker, const struct sending *sending, struct str id,
                    const struct server_response *response, const struct exchange_events *events,
                    void *context)
{
    struct sending whole = *sending;
    OWNED_BUFFER(body);
    ASSERT(!response->result.length != !response->error.length);
    if (response->result.length > 0)
        jsonrpc_write_result(&body, id, response->result);
    else
        jsonrpc_write_error_text(&body, id, response->error);
    whole.body = buffer_str(&body);
    send_bounded(worker, &whole, events, context);
}
