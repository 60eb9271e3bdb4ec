/* Carries a request up and its response down: bytes as they come, events whole, or read and
 * rewritten. */
#include "relay.h"

#include <stdlib.h>
#include <string.h>

#include "auth/token_exchange.h"
#include "bridge/bridge_call.h"
#include "call/call.h"
#include "call/call_counters.h"
#include "call/call_span.h"
#include "call/deferred_response.h"
#include "call/token_clock.h"
#include "call/upstream_span.h"
#include "server/http.h"
#include "server/server_refusal.h"
#include "state/server_status.h"
#include "state/source_eras.h"
#include "state/tool_catalog.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"
#include "taskgate/core/magic.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/cacheable.h"
#include "taskgate/mcp/legacy_bridge.h"
#include "taskgate/mcp/reply_check.h"
#include "taskgate/mcp/sse.h"

/* An event longer than this passes in pieces instead of being held until it is whole. */
#define EVENT_BYTES_KEPT ((size_t)1024 * 1024)

/* A reply whose id comes after more bytes than this goes down before its id is known. If it turns
 * out to be no response to the request, the client's is cut off. */
#define LOOKING_BYTES ((size_t)64 * 1024)

/* A kept reply gets at most so much room by its announced length, which may be a lie. */
#define WHOLE_RESERVED INT64_C(1048576)

/* Bytes kept of either end of the last event that went down, to see whether it was the answer. */
#define GLIMPSE_BYTES 256

enum relay_mode {
    RELAY_WAITING, /* waits for the head */
    RELAY_LOOKING, /* held until the reply's id is known */
    RELAY_BYTES,   /* streamed as they come */
    RELAY_EVENTS,  /* streamed event by event */
    RELAY_WHOLE,   /* held until the end, then rewritten */
};

struct relay {
    uint32_t magic; /* RELAY_MAGIC */
    struct call_part part;
    struct call *call;
    struct relay_options options;
    struct upstream_call *upstream;
    enum relay_mode mode;
    int status;
    struct buffer kept; /* bytes that have not gone down: all so far, or a part of an event */
    struct reply_event_check reply;
    struct sse_splitter splitter;
    void *stream; /* of options.stream; NULL before it is open */
    int64_t started_ms;
    int64_t received;          /* bytes of the body so far */
    bool inside_event;         /* a long event is passing in pieces */
    struct buffer behind;      /* whole events that go down behind it */
    struct buffer glimpse;     /* first and last bytes of what went down last */
    int64_t content_length;    /* of the response; -1 when it is not announced */
    bool is_encoded;           /* the body has an encoding, so it cannot be read */
    bool is_looked_at;         /* the reply must be the request's: `reply` tells */
    struct loop_timer slow;    /* only with options.slow */
    struct relay_trace *trace; /* NULL without telemetry */
};
#define RELAY_MAGIC 0x4757420a

static inline struct relay *relay_from(void *context)
{
    return MAGIC_CAST(struct relay, RELAY_MAGIC, context);
}

/* ---- the span of a relayed request, for calls that have one ---- */

struct relay_trace {
    struct span *span;
    char traceparent[TRACEPARENT_BYTES];
    struct buffer body; /* the body that names the span; else empty */
};

/* Names a new span in the headers, which borrow from it. Returns the body that goes up: that of the
 * message, or the relay's copy that names the span where the client has named its own. */
static SPAN_COLD struct str relay_span_begin(struct relay *relay, const struct envelope *message,
                                             struct headers *headers)
{
    const struct call *call = relay->call;
    const struct upstream_trace of_call = {.parent = call_span_parent(call)};
    struct relay_trace *trace = memory_alloc(sizeof *trace);
    relay->trace = trace;
    trace->span = upstream_span_start(&of_call, call->source, call->envelope.method,
                                      call->envelope.name.text);
    upstream_span_set_headers(trace->span, headers, trace->traceparent);
    bool is_named = upstream_span_write_body(trace->span, message, &trace->body);
    return is_named ? buffer_str(&trace->body) : message->body;
}

/* Another ends it: NULL without one. */
static SPAN_COLD struct span *relay_span_take(struct relay *relay)
{
    struct span *span = relay->trace->span;
    buffer_finish(&relay->trace->body);
    free(relay->trace);
    relay->trace = NULL;
    return span;
}

static SPAN_COLD void relay_span_end(struct relay *relay, enum upstream_result result)
{
    if (relay->status >= 400)
        call_span_fail_status(relay->call, relay->status);
    upstream_span_end(relay_span_take(relay), result, relay->status);
}

/* The request to the server goes with the relay. */
static SPAN_COLD void relay_span_give_up(struct relay *relay)
{
    upstream_span_give_up(relay_span_take(relay));
}

/* ---- the relay of a call ---- */

static void relay_destroy(struct relay *relay)
{
    if (relay->options.slow)
        loop_timer_stop(&relay->slow);
    if (relay->stream)
        relay->options.stream->close(relay->stream);
    buffer_finish(&relay->behind);
    buffer_finish(&relay->glimpse);
    reply_event_check_finish(&relay->reply);
    buffer_finish(&relay->kept);
    if (relay->trace)
        relay_span_give_up(relay);
    MAGIC_CLEAR(relay);
    free(relay);
}

static void drop(struct call *call, void *object)
{
    struct relay *relay = object;
    if (relay->upstream)
        upstream_call_cancel(relay->upstream);
    relay_destroy(relay);
}

static void tell_left(struct call *call, void *object)
{
    const struct relay *relay = object;
    if (relay->options.left)
        relay->options.left(call);
}

static const struct call_part_kind relay_kind = {
    .offset = offsetof(struct relay, part), .drop = drop, .gone = tell_left};

static struct relay *relay_of(const struct call *call)
{
    return call_part_get(call, &relay_kind);
}

static struct relay *relay_find(const struct call *call)
{
    return call_part_find(call, &relay_kind);
}

bool relay_is_under_way(const struct call *call)
{
    return relay_find(call) != NULL;
}

void relay_end_opening(struct gateway_worker *worker)
{
    LIST_FOR_EACH_SAFE (node, next, &worker->calls) {
        struct call *call = LIST_ENTRY(node, struct call, node);
        const struct relay *relay = relay_find(call);
        if (relay && relay->options.stream && relay->mode == RELAY_WAITING)
            call_answer_status(call, 503, STR_EMPTY);
    }
}

static void on_slow(void *context)
{
    struct relay *relay = relay_from(context);
    relay->options.slow(relay->call);
}

int64_t relay_age_ms(const struct call *call)
{
    return loop_now_ms(call->worker->loop) - relay_of(call)->started_ms;
}

void relay_repeat_slow(struct call *call, int64_t in_ms)
{
    loop_timer_start(&relay_of(call)->slow, in_ms);
}

/* Takes the relay off its call, which is about to be answered. */
static struct call *relay_finish(struct relay *relay)
{
    struct call *call = relay->call;
    call_part_remove(&relay->part);
    drop(call, relay);
    return call;
}

static void on_drained(void *context)
{
    struct relay *relay = relay_from(context);
    upstream_call_resume(relay->upstream);
}

static void relay_send_down(struct relay *relay, struct str bytes)
{
    if (bytes.length == 0)
        return;
    bool is_behind = !http_stream_write(relay->call->exchange, bytes);
    if (is_behind && relay->upstream) /* upstream is NULL when the response has ended */
        upstream_call_pause(relay->upstream);
}

/* ---- rewriting one response ---- */

bool relay_rewrites(const struct relay_options *options)
{
    return options->rewrite || options->replace_error || options->replace_result;
}

bool relay_may_take(const struct relay_options *options, struct str bytes)
{
    return options->take_message && bytes.length > 0 &&
           (options->takes_responses || memmem(bytes.bytes, bytes.length, "\"method\"", 8) != NULL);
}

/* A result shows that the server has accepted the session and the token. An error shows nothing,
 * whatever its HTTP status, and neither does an open stream. `initialize` has no session yet; its
 * own file notes what its result shows. */
static void note_acceptance(struct call *call)
{
    bool is_request = call->envelope.kind == ENVELOPE_REQUEST && call->method;
    if (call->identified && is_request && call->method->treatment != MCP_INITIALIZE)
        call_note_acceptance(call, str_from(call->session));
}

/* Checks the message. */
static bool read_reply(const struct relay_options *options, struct str message,
                       struct relay_reply *reply, struct str *error)
{
    static const char *const keys[] = {"error", "id", "result"};
    const char *const list_keys[] = {options->list, "nextCursor"};
    struct str values[3], list[2] = {STR_EMPTY, STR_EMPTY};
    const struct json_wanted inner = {list_keys, 2, list, 0, NULL},
                             wanted = {keys, 3, values, 2, options->list ? &inner : NULL};
    if (!json_check_members(message, &wanted))
        return false;
    *error = values[0];
    *reply = (struct relay_reply){message, values[1], values[2], list[0], list[1]};
    return true;
}

bool relay_rewrite(struct call *call, const struct relay_options *options, struct str message,
                   struct buffer *out)
{
    struct relay_reply reply;
    struct str error;
    if (options->recall && options->recall(call, message, out)) {
        note_acceptance(call);
        return true;
    }
    if (!read_reply(options, message, &reply, &error))
        return false;
    bool has_our_id = str_equal(reply.id, call->envelope.id);
    if (reply.result.length == 0)
        return has_our_id && error.length > 0 && options->replace_error &&
               options->replace_error(call, error, out);
    if (options->replace_result && options->replace_result(call, &reply, out)) {
        note_acceptance(call);
        return true;
    }
    /* The server may spell our id otherwise. A reply with another request's id was refused before.
     */
    if (!options->rewrite) {
        if (has_our_id) {
            note_acceptance(call);
            buffer_append(out, message);
        }
        return has_our_id;
    }
    note_acceptance(call);
    size_t at = str_offset(message, reply.result), behind = at + reply.result.length;
    buffer_append(out, str_slice(message.bytes, at));
    options->rewrite(call, &reply, out);
    buffer_append(out, str_slice(message.bytes + behind, message.length - behind));
    return true;
}

/* ---- what went down last ---- */

static void keep_glimpse(struct relay *relay, struct str bytes)
{
    size_t head = bytes.length < GLIMPSE_BYTES ? bytes.length : GLIMPSE_BYTES;
    size_t tail = bytes.length - head < GLIMPSE_BYTES ? bytes.length - head : GLIMPSE_BYTES;
    buffer_clear(&relay->glimpse);
    buffer_append(&relay->glimpse, str_slice(bytes.bytes, head));
    buffer_append(&relay->glimpse, str_slice(bytes.bytes + bytes.length - tail, tail));
}

/* Whether the last event that went down was the answer to this call. The id of a message is near
 * its beginning or its end, so nothing is parsed on the way down. false when in doubt: clients
 * ignore a second answer, but wait for a missing one. */
static bool relay_is_answered(const struct relay *relay)
{
    struct str id = relay->call->envelope.id;
    struct str glimpse = buffer_str(&relay->glimpse);
    if (glimpse.length == 0 || id.length == 0)
        return false; /* a GET stream answers nothing */
    const char *at = glimpse.bytes, *end = at + glimpse.length;
    while ((at = memmem(at, (size_t)(end - at), "\"id\":", 5)) != NULL) {
        at += 5;
        while (at < end && *at == ' ')
            at++;
        if ((size_t)(end - at) > id.length && memcmp(at, id.bytes, id.length) == 0 &&
            strchr(",} \r\n", at[id.length]))
            return memmem(glimpse.bytes, glimpse.length, "\"method\":", 9) == NULL;
    }
    return false;
}

/* The `id` of the last event that went down, or an earlier one's. The server then repeats events,
 * which does no harm. */
static void relay_find_last_id(const struct relay *relay, struct buffer *id)
{
    struct str rest = buffer_str(&relay->glimpse), line;
    while (rest.length > 0) {
        str_cut(rest, '\n', &line, &rest);
        if (!str_starts_with(line, STR("id:")))
            continue;
        buffer_clear(id);
        buffer_append(id, str_trim(str_slice(line.bytes + 3, line.length - 3)));
    }
}

bool relay_detach(struct call *call, struct exchange_begun *taken)
{
    struct relay *relay = relay_of(call);
    bool is_waiting = relay->mode == RELAY_WAITING;
    bool is_between_events = relay->mode == RELAY_EVENTS && !relay->is_encoded &&
                             !relay->inside_event && !relay_is_answered(relay);
    if (!(is_waiting || is_between_events) || !upstream_call_has_sent(relay->upstream))
        return false;
    *taken = (struct exchange_begun){
        .upstream = relay->upstream,
        .status = relay->status,
        .is_stream = relay->mode == RELAY_EVENTS,
        .received = relay->kept,
        .splitter = relay->splitter,
        .started_ms = relay->started_ms,
        .span = relay->trace ? relay_span_take(relay) : NULL,
    };
    relay_find_last_id(relay, &taken->last_id);
    if (taken->is_stream)
        http_on_drained(call->exchange, NULL, NULL);
    upstream_call_resume(relay->upstream);
    buffer_init(&relay->kept);
    relay->upstream = NULL;
    call_part_remove(&relay->part);
    relay_destroy(relay);
    return true;
}

/* ---- the answer when the server's response does not come, or breaks off ---- */

enum relay_failure relay_failure_of(enum upstream_result result)
{
    switch (result) {
    case UPSTREAM_CONNECT_FAILED:
        return RELAY_CONNECT_FAILED;
    case UPSTREAM_SILENT:
        return RELAY_TIMEOUT;
    case UPSTREAM_DONE:
        return RELAY_UNREADABLE;
    case UPSTREAM_GONE:
        break;
    }
    return RELAY_GONE;
}

enum jsonrpc_error relay_failure_error(enum relay_failure failure)
{
    switch (failure) {
    case RELAY_TIMEOUT:
        return JSONRPC_UPSTREAM_TIMEOUT;
    case RELAY_UNREADABLE:
    case RELAY_STATUS_5XX:
        return JSONRPC_UPSTREAM_ERROR;
    case RELAY_CONNECT_FAILED:
    case RELAY_GONE:
        break;
    }
    return JSONRPC_UPSTREAM_FAILED;
}

void relay_answer_failure(struct call *call, enum relay_failure failure)
{
    if (call->envelope.kind == ENVELOPE_REQUEST && call->envelope.id.length > 0) {
        struct jsonrpc_error_data data = {.tool = call_tool(call)};
        call_answer_error(call, relay_failure_error(failure), STR_EMPTY, &data);
    } else {
        call_answer_status(call, 502, STR_EMPTY);
    }
}

/* Nothing has gone down yet: the call is answered with the failure, or by options.failed. */
static void relay_fail(struct relay *relay, enum relay_failure failure)
{
    bool (*failed)(struct call *, enum relay_failure) = relay->options.failed;
    struct call *call = relay_finish(relay);
    if (!failed || !failed(call, failure))
        relay_answer_failure(call, failure);
}

/* The response is under way and cannot be taken back: its end says the failure. */
static void relay_fail_in_stream(struct relay *relay, enum relay_failure failure)
{
    bool events = relay->mode == RELAY_EVENTS && !relay->inside_event;
    bool answered = events && relay_is_answered(relay);
    struct call *call = relay_finish(relay);
    struct http_exchange *exchange = call->exchange;
    call->upstream_broke = true;
    call->outcome = answered ? "success" : "error";
    if (!answered)
        call_span_fail(call, relay_failure_error(failure));
    http_on_gone(exchange, NULL, NULL);
    if (events && !answered && call->envelope.id.length > 0) {
        struct buffer message, event;
        buffer_init(&message);
        buffer_init(&event);
        dialect_write_error(call->dialect, &message, call->envelope.id,
                            relay_failure_error(failure), STR_EMPTY, NULL);
        sse_write_event(&event, STR_EMPTY, STR_EMPTY, buffer_str(&message));
        http_stream_write(exchange, buffer_str(&event));
        buffer_finish(&event);
        buffer_finish(&message);
    }
    call_ended(call);
    if (events)
        http_stream_end(exchange);
    else
        http_stream_abort(exchange);
}

void relay_end_with(struct call *call, struct str message)
{
    struct relay *relay = relay_find(call);
    bool has_begun = relay->mode != RELAY_WAITING && relay->mode != RELAY_WHOLE;
    bool is_between_events = relay->mode == RELAY_EVENTS && !relay->inside_event;
    relay_finish(relay);
    if (!has_begun) {
        call_answer(call, message);
        return;
    }
    struct http_exchange *exchange = call->exchange;
    struct buffer event;
    buffer_init(&event);
    sse_write_event(&event, STR_EMPTY, STR_EMPTY, message);
    http_on_gone(exchange, NULL, NULL);
    call_ended(call);
    if (is_between_events) {
        http_stream_write(exchange, buffer_str(&event));
        http_stream_end(exchange);
    } else {
        http_stream_abort(exchange);
    }
    buffer_finish(&event);
}

/* ---- the silence after which there is none ---- */

void relay_set_silence(struct call *call, int64_t silence_ms)
{
    struct relay *relay = relay_find(call);
    if (!relay || !relay->upstream || relay->options.silence_ms == silence_ms)
        return;
    relay->options.silence_ms = silence_ms;
    upstream_call_set_silence(relay->upstream, silence_ms);
}

void relay_wait_for_person(struct call *call)
{
    struct relay *relay = relay_find(call);
    if (!relay)
        return;
    relay_set_silence(call, 0);
    if (relay->options.slow)
        loop_timer_start(&relay->slow, 0);
}

/* ---- whether the server can be reached ---- */

/* Noted once a second at most, because every response says the same. */
static void relay_note_reachable(struct call *call)
{
    struct gateway_worker *worker = call->worker;
    int64_t now_ms = loop_now_ms(worker->loop);
    if (worker->reachable_until_ms > now_ms &&
        str_equal(buffer_str(&worker->reachable_source), str_from(call->source->id)))
        return;
    server_status_note(worker->gateway->catalog, str_from(call->source->id), true);
    worker->reachable_until_ms = now_ms + 1000;
    buffer_clear(&worker->reachable_source);
    buffer_append_text(&worker->reachable_source, call->source->id);
}

static void relay_note_unreachable(struct call *call)
{
    call->worker->reachable_until_ms = 0;
    server_status_note(call->worker->gateway->catalog, str_from(call->source->id), false);
}

/* An idle client learns of a dead server only from its GET stream. A stream may break off for less,
 * so the server is asked whether it is there. */
static void relay_ask_if_reachable(const struct call *call)
{
    struct headers headers;
    struct buffer body = {0}, id = {0};
    headers_init(&headers, false);
    headers_from_call(&headers, call);
    exchange_write_request(&body, &id, "ping", STR_EMPTY);
    const struct sending sending = {.source = call->source,
                                    .snapshot = call->snapshot,
                                    .headers = &headers,
                                    .body = buffer_str(&body)};
    exchange_notify(call->worker, &sending);
    buffer_finish(&id);
    buffer_finish(&body);
    headers_finish(&headers);
}

/* ---- whether the reply is the response to the request ---- */

static bool relay_is_of_request(const struct relay *relay)
{
    const struct envelope *envelope = &relay->call->envelope;
    return envelope->kind == ENVELOPE_REQUEST && envelope->id.length > 0;
}

/* Whether the response is a stream that has no end of its own, instead of an answer. */
static bool relay_lasts(const struct relay *relay)
{
    return relay->options.stream || relay->options.outlives;
}

/* Whether a body of so many bytes is longer than an answer may be, which is counted. */
static bool relay_reply_is_too_large(const struct relay *relay, int64_t bytes)
{
    int64_t most = relay->call->snapshot->config->limits.reply_bytes;
    if (most == 0 || bytes <= most || relay_lasts(relay) || relay->options.url)
        return false;
    log_warn("Upstream answered with more bytes than limits.reply_bytes",
             LOG_TEXT("source", relay->call->source->id));
    metrics_count(METRIC_LIMITS_REACHED, STR("reply_bytes"));
    return true;
}

/* That are held of a reply that is read. */
static size_t relay_most_held(const struct relay *relay)
{
    size_t most = (size_t)relay->call->snapshot->config->limits.result_bytes;
    return relay->options.most_bytes > most ? relay->options.most_bytes : most;
}

/* The client would follow it past the gateway. Metadata (options.url) is no message. */
static bool is_redirect(const struct relay *relay)
{
    return relay->status >= 300 && relay->status < 400 && !relay->options.url;
}

/* An encoded reply cannot be read, so nobody knows whose it is. An HTTP error that does not say
 * that it is JSON-RPC goes down as it is. */
static bool is_unreadable(const struct relay *relay, const struct headers *headers)
{
    struct str type = headers_known(headers, HTTP_NAME_CONTENT_TYPE);
    bool is_message = relay->status < 400 || type.length == 0 ||
                      headers_name_event_stream(headers) ||
                      memmem(type.bytes, type.length, "json", 4) != NULL;
    return relay->is_encoded && relay_is_of_request(relay) && is_message;
}

/* The head has come. false: the reply must not be passed on. */
static bool relay_reply_begin(struct relay *relay, const struct headers *headers)
{
    struct str source = str_from(relay->call->source->id);
    relay->is_looked_at = relay_is_of_request(relay) && !relay->is_encoded;
    if (relay->is_looked_at)
        reply_event_check_init(&relay->reply, relay->call->envelope.id);
    if (!is_redirect(relay))
        return !is_unreadable(relay, headers);
    log_warn("Upstream redirects, which is not followed", LOG_STR("source", source),
             LOG_STR("location", headers_find(headers, "location")));
    return false;
}

/* Ends the call and its connection, on which the next reply may be another request's, too. */
static void relay_reply_fail(struct relay *relay, enum reply_verdict verdict)
{
    log_warn(verdict == REPLY_FOREIGN ? "Upstream answered with the id of another request"
                                      : "Upstream answered with no JSON-RPC response",
             LOG_TEXT("source", relay->call->source->id), LOG_NUMBER("status", relay->status));
    if (relay->mode == RELAY_LOOKING || relay->mode == RELAY_WHOLE)
        relay_fail(relay, RELAY_UNREADABLE);
    else
        relay_fail_in_stream(relay, RELAY_UNREADABLE);
}

/* HTTP errors that are no JSON-RPC go down as they are. Their connection is not kept. */
static bool relay_reply_is_refused(const struct relay *relay, enum reply_verdict verdict)
{
    return verdict == REPLY_FOREIGN || (verdict == REPLY_NONE && relay->status < 400);
}

/* The reply has ended. false: it was none, and the call is answered. */
static bool relay_reply_end(struct relay *relay)
{
    if (!relay->is_looked_at || relay->mode == RELAY_WAITING)
        return true;
    enum reply_verdict verdict;
    if (relay->mode == RELAY_EVENTS)
        verdict = reply_event_check_end(&relay->reply) ? REPLY_OURS : REPLY_FOREIGN;
    else
        verdict = reply_check_end(&relay->reply.message);
    if (!relay_reply_is_refused(relay, verdict))
        return true;
    relay_reply_fail(relay, verdict);
    return false;
}

/* ---- an event stream: whole events, with messages taken out or rewritten ---- */

/* Writes what goes down in place of an event's data. false: the event goes down as it came. */
static bool rewrite_data(struct relay *relay, struct str data, struct buffer *message)
{
    if (!relay_rewrites(&relay->options) || data.length == 0)
        return false;
    bool is_too_large = data.length > relay_most_held(relay);
    if (is_too_large)
        metrics_count(METRIC_LIMITS_REACHED, STR("result_bytes"));
    if (!is_too_large && relay_rewrite(relay->call, &relay->options, data, message))
        return true;
    if (!is_too_large && json_check(data, NULL) && json_type(data) != JSON_ARRAY)
        return false;
    /* Data that cannot be read cannot be filtered, but a client might read it. Batches are not read
     * either; no server has a reason to send one. */
    dialect_write_error(relay->call->dialect, message, relay->call->envelope.id,
                        relay_failure_error(RELAY_UNREADABLE), STR_EMPTY, NULL);
    return true;
}

/* Sends one whole event of a reply that is read. */
static void send_event_read(struct relay *relay, struct str raw)
{
    struct sse_event event;
    struct buffer message, changed;
    sse_event_read(&event, raw);
    buffer_init(&message);
    buffer_init(&changed);
    struct str data = buffer_str(&event.data);
    if (relay_may_take(&relay->options, data) && json_check(data, NULL) &&
        (relay->options.takes_responses || json_member(data, "method").length > 0) &&
        relay->options.take_message(relay->call, data)) {
        /* The client sees nothing of it. */
    } else if (rewrite_data(relay, data, &message)) {
        sse_write_with_data(&changed, raw, buffer_str(&message));
        relay_send_down(relay, buffer_str(&changed));
    } else {
        relay_send_down(relay, raw);
    }
    buffer_finish(&changed);
    buffer_finish(&message);
    sse_event_finish(&event);
}

/* Sends whole events, one after the other. */
static void send_events(struct relay *relay, struct str events)
{
    if (!relay_rewrites(&relay->options) && !relay_may_take(&relay->options, events)) {
        relay_send_down(relay, events);
        return;
    }
    while (events.length > 0) {
        size_t first = sse_first_event(events);
        size_t length = first > 0 ? first : events.length;
        send_event_read(relay, str_slice(events.bytes, length));
        events = str_slice(events.bytes + length, events.length - length);
    }
}

/* Only whole events go down, so that an error event can always follow. An event that is too long to
 * be held passes in pieces. */
static void relay_take_events(struct relay *relay, struct str bytes)
{
    size_t whole = sse_splitter_feed(&relay->splitter, bytes, NULL);
    if (whole > 0) {
        if (relay->kept.length > 0) {
            buffer_append(&relay->kept, str_slice(bytes.bytes, whole));
            send_events(relay, buffer_str(&relay->kept));
            buffer_clear(&relay->kept);
        } else {
            send_events(relay, str_slice(bytes.bytes, whole));
        }
        relay->inside_event = false;
        relay_send_down(relay, buffer_str(&relay->behind));
        buffer_clear(&relay->behind);
        keep_glimpse(relay, str_slice(bytes.bytes, whole));
        if (relay->stream)
            relay->options.stream->flush(relay->stream);
        bytes = str_slice(bytes.bytes + whole, bytes.length - whole);
    }
    if (bytes.length == 0)
        return;
    buffer_append(&relay->kept, bytes);
    if (relay->kept.length > EVENT_BYTES_KEPT && !relay_rewrites(&relay->options) &&
        !relay_may_take(&relay->options, buffer_str(&relay->kept))) {
        relay_send_down(relay, buffer_str(&relay->kept));
        buffer_clear(&relay->kept);
        relay->inside_event = true;
    }
}

void relay_pass(struct call *call, struct str message)
{
    struct relay *relay = relay_find(call);
    struct buffer event;
    buffer_init(&event);
    sse_write_event(&event, STR_EMPTY, STR_EMPTY, message);
    if (!relay)
        deferred_response_pass(call, message); /* the call is detached */
    else if (relay->inside_event)
        buffer_append(&relay->behind, buffer_str(&event));
    else
        relay_send_down(relay, buffer_str(&event));
    buffer_finish(&event);
}

void relay_show_life(struct call *call)
{
    struct relay *relay = relay_find(call);
    if (relay && relay->mode == RELAY_EVENTS && !relay->inside_event)
        relay_send_down(relay, STR(":ping\n\n"));
}

/* The response has ended, and with it an event without an empty line. */
static void relay_end_events(struct relay *relay)
{
    if (relay->kept.length > 0)
        send_events(relay, buffer_str(&relay->kept));
}

/* ---- the response comes down ---- */

/* A detached call's stream has whole events alone. */
static bool may_write_error(const struct call *call)
{
    const struct relay *relay = relay_find(call);
    return !relay || (!relay->inside_event && !relay_is_answered(relay));
}

/* With the head that was prepared. */
static void start_stream(struct relay *relay)
{
    struct call *call = relay->call;
    http_on_drained(call->exchange, on_drained, relay);
    http_stream_start_prepared(call->exchange,
                               relay->mode == RELAY_BYTES ? relay->content_length : -1);
    if (relay->mode != RELAY_EVENTS)
        return;
    http_stream_flush(call->exchange); /* the client sees a stream open before its first event */
    if (relay_lasts(relay))
        token_clock_start(call, may_write_error);
    if (relay->options.stream && relay->status == 200)
        relay->stream = relay->options.stream->open(call, &relay->inside_event);
}

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

/* Whether options.failed answers in place of a 5xx, which else goes down as it is. */
static bool is_stood_in_for(struct relay *relay)
{
    return relay->status >= 500 && relay->options.failed &&
           relay->options.failed(relay->call, RELAY_STATUS_5XX); /* drops the relay */
}

/* The call goes on without this relay, if options.refused says so. */
static bool is_taken_over(struct relay *relay)
{
    bool (*refused)(struct call *, int) = relay->options.refused;
    struct call *call = relay->call;
    int status = relay->status;
    if (!refused || status < 400 || status >= 500 || !refused(call, status))
        return false;
    relay_finish(relay);
    return true;
}

/* Sends down what was held back. */
static void let_down(struct relay *relay)
{
    relay->mode = RELAY_BYTES;
    start_stream(relay);
    relay_send_down(relay, buffer_str(&relay->kept));
    buffer_clear(&relay->kept);
}

/* Sessions are not of a modern client's world. */
static void take_headers(const struct call *call, struct headers *headers,
                         const struct http_header *items, size_t count)
{
    headers_from_response(headers, items, count);
    if (!call->dialect->has_sessions)
        headers_drop(headers, HTTP_NAME_OF_SESSION);
    if (headers_name_event_stream(headers))
        headers_let_stream_pass(headers);
}

static void on_head(void *context, int status, const struct http_header *items, size_t count)
{
    struct relay *relay = relay_from(context);
    struct call *call = relay->call;
    relay->status = status;
    relay->content_length = announced_length(items, count);
    relay_note_reachable(call);
    if (status == 401)
        token_exchange_note_refused(call->worker, call->snapshot, call->source,
                                    str_from(call->upstream_authorization));
    if (!call->dialect->has_sessions && (status == 400 || status == 404 || status == 405))
        source_eras_doubt(call->worker->gateway->eras, call->source,
                          loop_now_ms(call->worker->loop));
    if (is_stood_in_for(relay) || is_taken_over(relay))
        return;
    struct http_header room[HEADERS_ROOM];
    struct headers headers;
    headers_init_in(&headers, room, HEADERS_ROOM);
    take_headers(call, &headers, items, count);
    if (relay->options.head)
        relay->options.head(call, status, &headers);
    relay->is_encoded = headers_known(&headers, HTTP_NAME_CONTENT_ENCODING).length > 0;
    bool reads = relay_rewrites(&relay->options) && status >= 200 && status < 300;
    bool is_stream = headers_name_event_stream(&headers);
    bool is_good = relay_reply_begin(relay, &headers) && !(reads && relay->is_encoded);
    http_prepare(call->exchange, status, headers.items, headers.count);
    headers_finish(&headers);
    bool may_outlive = relay->options.outlives && !relay->is_encoded;
    if (!is_good || relay_reply_is_too_large(relay, relay->content_length)) {
        relay_fail(relay, RELAY_UNREADABLE);
    } else if ((reads || may_outlive) && !is_stream) {
        relay->mode = RELAY_WHOLE;
    } else if (relay->is_looked_at && !is_stream) {
        relay->mode = RELAY_LOOKING;
    } else {
        relay->mode = is_stream ? RELAY_EVENTS : RELAY_BYTES;
        start_stream(relay);
    }
}

static void count_too_large(void)
{
    metrics_count(METRIC_LIMITS_REACHED, STR("result_bytes"));
}

static void take_whole(struct relay *relay, struct str bytes)
{
    size_t most = relay_most_held(relay);
    if (bytes.length > most || relay->kept.length > most - bytes.length) {
        count_too_large();
        relay_fail(relay, RELAY_UNREADABLE);
    } else {
        int64_t room = relay->content_length;
        if (relay->kept.length == 0 && room > 0)
            buffer_reserve(&relay->kept, (size_t)(room < WHOLE_RESERVED ? room : WHOLE_RESERVED));
        buffer_append(&relay->kept, bytes);
    }
}

static void take_events(struct relay *relay, struct str bytes)
{
    size_t most = relay_most_held(relay);
    bool is_anothers = false;
    if (relay->is_looked_at)
        bytes.length = reply_event_check_feed(&relay->reply, bytes, &is_anothers);
    if (relay->reply.is_answered && !is_anothers)
        upstream_call_prove(relay->upstream);
    relay_take_events(relay, bytes);
    if (is_anothers) {
        relay_reply_fail(relay, REPLY_FOREIGN);
    } else if (relay->kept.length > most) {
        count_too_large();
        relay_fail_in_stream(relay, RELAY_UNREADABLE);
    }
}

/* A message that is whole already goes down with its end. */
static void look_at(struct relay *relay, struct str bytes)
{
    size_t so_far = relay->kept.length + bytes.length;
    bool is_known = relay->reply.message.verdict != REPLY_UNKNOWN;
    bool is_whole = relay->content_length >= 0 && so_far == (size_t)relay->content_length;
    if ((!is_known || is_whole) && so_far <= LOOKING_BYTES) {
        buffer_append(&relay->kept, bytes);
    } else {
        let_down(relay);
        relay_send_down(relay, bytes);
    }
}

/* Nothing has gone down, or the rest does not. */
static void break_off(struct relay *relay)
{
    if (relay->mode == RELAY_LOOKING || relay->mode == RELAY_WHOLE)
        relay_fail(relay, RELAY_UNREADABLE);
    else
        relay_fail_in_stream(relay, RELAY_UNREADABLE);
}

static void on_body(void *context, struct str bytes)
{
    struct relay *relay = relay_from(context);
    relay->received += (int64_t)bytes.length;
    if (relay_reply_is_too_large(relay, relay->received)) {
        break_off(relay);
        return;
    }
    if (relay->mode == RELAY_EVENTS) {
        take_events(relay, bytes);
        return;
    }
    struct reply_check *reply = &relay->reply.message;
    enum reply_verdict verdict =
        relay->is_looked_at ? reply_check_feed(reply, bytes) : REPLY_UNKNOWN;
    if (reply_check_is_answer(reply))
        upstream_call_prove(relay->upstream);
    if (relay_reply_is_refused(relay, verdict))
        relay_reply_fail(relay, verdict);
    else if (relay->mode == RELAY_WHOLE)
        take_whole(relay, bytes);
    else if (relay->mode == RELAY_LOOKING)
        look_at(relay, bytes);
    else
        relay_send_down(relay, bytes);
}

/* ---- the end ---- */

/* With the head that was prepared. Takes over what is in `body`. */
static void respond(struct relay *relay, struct buffer *body)
{
    struct call *call = relay_finish(relay);
    struct http_exchange *exchange = call->exchange;
    http_on_gone(exchange, NULL, NULL);
    call_ended(call);
    http_respond_prepared(exchange, body);
}

static void answer_held(struct relay *relay)
{
    struct buffer body = relay->kept;
    buffer_init(&relay->kept);
    respond(relay, &body);
}

/* True: the call goes on, and the relay is gone. */
static bool is_outlived(struct relay *relay, struct str reply, bool has_begun)
{
    void (*alone)(struct call *, bool) = relay->options.alone;
    if (!relay->options.outlives || !relay->options.outlives(relay->call, relay->status, reply))
        return false;
    if (has_begun)
        http_on_drained(relay->call->exchange, NULL, NULL);
    alone(relay_finish(relay), has_begun);
    return true;
}

static void answer_whole(struct relay *relay)
{
    struct buffer message;
    if (is_outlived(relay, buffer_str(&relay->kept), false))
        return;
    if (!relay_rewrites(&relay->options)) {
        answer_held(relay);
        return;
    }
    buffer_init(&message);
    if (!relay_rewrite(relay->call, &relay->options, buffer_str(&relay->kept), &message)) {
        /* An error of the server's goes down as it is. A reply that cannot be read does not go
         * down. */
        struct str text = buffer_str(&relay->kept);
        if (!json_check(text, NULL) || json_member(text, "error").length == 0) {
            buffer_finish(&message);
            relay_fail(relay, RELAY_UNREADABLE);
            return;
        }
        buffer_append(&message, text);
    }
    respond(relay, &message);
}

static void end_stream(struct relay *relay)
{
    relay_end_events(relay);
    if (relay->mode == RELAY_EVENTS && is_outlived(relay, STR_EMPTY, true))
        return;
    struct call *call = relay_finish(relay);
    struct http_exchange *exchange = call->exchange;
    http_on_gone(exchange, NULL, NULL);
    call_ended(call);
    http_stream_end(exchange);
}

static void on_end(void *context, enum upstream_result result, const char *detail)
{
    struct relay *relay = relay_from(context);
    struct call *call = relay->call;
    struct str source = str_from(call->source->id);
    call_counters_upstream(source, relay->status,
                           loop_now_ms(call->worker->loop) - relay->started_ms);
    relay->upstream = NULL; /* gone when this returns */
    if (relay->trace)
        relay_span_end(relay, result);
    if (result == UPSTREAM_DONE && !relay_reply_end(relay))
        return;
    if (relay->mode == RELAY_LOOKING && result != UPSTREAM_DONE)
        let_down(relay);
    if (result == UPSTREAM_DONE && relay->mode == RELAY_WHOLE) {
        answer_whole(relay);
    } else if (result == UPSTREAM_DONE && relay->mode == RELAY_LOOKING) {
        answer_held(relay);
    } else if (result == UPSTREAM_DONE && relay->mode != RELAY_WAITING) {
        end_stream(relay);
    } else {
        log_warn("Upstream failed", LOG_STR("source", source), LOG_TEXT("detail", detail));
        if (relay->mode == RELAY_WAITING)
            relay_note_unreachable(call);
        else if (relay->options.stream)
            relay_ask_if_reachable(call);
        if (relay->mode == RELAY_WAITING || relay->mode == RELAY_WHOLE)
            relay_fail(relay, relay_failure_of(result));
        else
            relay_fail_in_stream(relay, relay_failure_of(result));
    }
}

/* ---- a legacy client whose server speaks the modern era alone: the bridge brings the response
 * whole ---- */

struct bridged_relay {
    struct call_part part;
    struct relay_options options;
};

static void drop_options(struct call *call, void *object)
{
    (void)call;
    free(object);
}

static const struct call_part_kind bridged_relay_kind =
    CALL_PART_KIND(struct bridged_relay, drop_options);

static struct relay_options take_options(struct call *call)
{
    struct bridged_relay *relay = call_part_get(call, &bridged_relay_kind);
    const struct relay_options options = relay->options;
    call_part_remove(&relay->part);
    free(relay);
    return options;
}

/* ---- an answer ---- */

static void write_answer(struct call *call, struct str result, struct buffer *out)
{
    struct catalog_tool tool = {0};
    size_t start = out->length;
    if (call->method->treatment == MCP_TOOLS_LIST) {
        legacy_bridge_write_tools(out, result);
    } else if (call->method->treatment == MCP_TOOLS_CALL) {
        call_find_tool(call, call->envelope.name.text, &tool);
        legacy_bridge_write_call_result(out, result, tool.wraps_output);
    } else {
        legacy_bridge_write_result(out, result);
    }
    if (mcp_method_is_list(call->method))
        mcp_cacheable_drop_tags(out, start, result);
}

/* The catalogue learns from the server's own words, so they are rewritten first. */
static void on_whole_answer(struct call *call, struct str message)
{
    const struct relay_options options = take_options(call);
    struct buffer rewritten, written, whole;
    buffer_init(&rewritten);
    buffer_init(&written);
    buffer_init(&whole);
    if (relay_rewrite(call, &options, message, &rewritten))
        message = buffer_str(&rewritten);
    struct str result = json_member(message, "result");
    if (result.length > 0) {
        write_answer(call, result, &written);
        buffer_append_replaced(&whole, message, result, buffer_str(&written));
        message = buffer_str(&whole);
    } else {
        call->outcome = "error";
    }
    if (result.length > 0 && options.answer_result)
        options.answer_result(call, buffer_str(&written));
    else
        call_answer(call, message);
    buffer_finish(&whole);
    buffer_finish(&written);
    buffer_finish(&rewritten);
}

/* ---- no answer ---- */

static enum relay_failure failure_of_reply(const struct exchange_reply *reply)
{
    if (reply->result != UPSTREAM_DONE)
        return relay_failure_of(reply->result);
    return reply->status >= 500 ? RELAY_STATUS_5XX : RELAY_UNREADABLE;
}

/* Its headers tell the client how to log in, or when to come again. */
static bool goes_down_as_it_is(const struct call *call, const struct exchange_reply *reply)
{
    int status = reply->status;
    return reply->result == UPSTREAM_DONE && !reply->too_large &&
           (status == 401 || status == 403 || status == 429 || status >= 500) &&
           !deferred_response_is_stream(call);
}

void relay_bridged_answer_failure(struct call *call, const struct exchange_reply *reply)
{
    log_warn("Upstream failed", LOG_TEXT("source", call->source->id),
             LOG_NUMBER("status", reply->status), LOG_TEXT("detail", reply->detail));
    if (reply->too_large)
        metrics_count(METRIC_LIMITS_REACHED, STR("result_bytes"));
    if (goes_down_as_it_is(call, reply))
        server_refusal_pass(call, reply);
    else
        relay_answer_failure(call, failure_of_reply(reply));
}

static void on_no_answer(struct call *call, const struct exchange_reply *reply)
{
    const struct relay_options options = take_options(call);
    bool is_login = reply->status == 401 || reply->status == 403;
    if (is_login || !options.failed || !options.failed(call, failure_of_reply(reply)))
        relay_bridged_answer_failure(call, reply);
}

/* ---- the beginning ---- */

/* A method goes into a header. */
static bool is_plain(struct str method)
{
    for (size_t i = 0; i < method.length; i++) {
        char c = method.bytes[i];
        if (c <= ' ' || c >= 0x7f)
            return false;
    }
    return method.length > 0;
}

/* A modern server is not asked for what its era lacks. All tasks here are the gateway's own. */
static bool can_be_asked(struct call *call)
{
    struct str method = call->envelope.method;
    bool is_of_tasks = str_starts_with(method, STR("tasks/"));
    bool is_legacy_alone = call->method->treatment != MCP_UNKNOWN &&
                           mcp_method_find(method, MCP_ERA_MODERN)->treatment == MCP_UNKNOWN;
    if (is_of_tasks)
        call_answer_error(call, JSONRPC_TASK_NOT_FOUND, STR_EMPTY, NULL);
    else if (is_legacy_alone || !is_plain(method))
        call_answer_error(call, JSONRPC_METHOD_NOT_FOUND, STR_EMPTY, NULL);
    return !is_of_tasks && !is_legacy_alone && is_plain(method);
}

static void relay_bridged_start(struct call *call, const struct relay_options *options)
{
    const struct bridge_call_options bridged = {.silence_ms = options->silence_ms,
                                                .answered = on_whole_answer,
                                                .failed = on_no_answer,
                                                .slow_ms = options->slow_ms,
                                                .slow = options->slow,
                                                .left = options->left,
                                                .forbidden = options->forbidden,
                                                .asks_later = options->asks_later};
    if (!can_be_asked(call))
        return;
    struct bridged_relay *relay = memory_alloc(sizeof *relay);
    relay->options = *options;
    call_part_add(call, &relay->part, &bridged_relay_kind);
    bridge_call_start(call, &bridged);
}

/* ---- the beginning ---- */

void relay_start(struct call *call, const struct relay_options *options)
{
    static const struct upstream_callbacks callbacks = {on_head, on_body, on_end};
    if (call->is_bridged) {
        relay_bridged_start(call, options);
        return;
    }
    struct relay *relay = memory_alloc(sizeof *relay);
    MAGIC_SET(relay, RELAY_MAGIC);
    struct str method = http_method(call->exchange);
    struct http_header room[HEADERS_ROOM];
    struct headers headers;
    relay->call = call;
    relay->options = *options;
    relay->started_ms = loop_now_ms(call->worker->loop);
    headers_init_in(&headers, room, HEADERS_ROOM);
    buffer_init(&relay->glimpse);
    buffer_init(&relay->kept);
    sse_splitter_init(&relay->splitter);
    headers_from_call(&headers, call);
    call_part_add(call, &relay->part, &relay_kind);
    const struct envelope *message = options->message ? options->message : &call->envelope;
    struct str body = call->span ? relay_span_begin(relay, message, &headers) : message->body;
    struct upstream_request request = {
        .method = str_equal(method, STR("GET"))      ? "GET"
                  : str_equal(method, STR("DELETE")) ? "DELETE"
                                                     : "POST",
        .url = options->url ? options->url : call->source->url,
        .tls = call->source->tls,
        .headers = headers.items,
        .header_count = headers.count,
        .body = body,
        .owner = headers_connection_owner(&headers, call->source),
        .needs_proof = relay_is_of_request(relay),
        .connect_timeout_ms = call->snapshot->config->times.connect_timeout_ms,
        .silence_timeout_ms = options->silence_ms,
    };
    if (options->slow)
        loop_timer_init(&relay->slow, call->worker->loop, on_slow, relay);
    if (options->slow_ms > 0)
        loop_timer_start(&relay->slow, options->slow_ms);
    relay->upstream = upstream_call_start(call->worker->client, &request, &callbacks, relay);
    headers_finish(&headers);
}
