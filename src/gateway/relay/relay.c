/* Carries a request up and its response down. */
#include "relay_internal.h"

#include <stdlib.h>

#include "auth/token_exchange.h"
#include "call/call_counters.h"
#include "call/token_clock.h"
#include "notification_stream.h"
#include "relay_bridged.h"
#include "relay_rewrite.h"
#include "state/source_eras.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/sse.h"

static void relay_destroy(struct relay *relay)
{
    if (relay->options.slow)
        loop_timer_stop(&relay->slow);
    notification_stream_close(relay->stream);
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

struct relay *relay_find(const struct call *call)
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
        if (relay && relay->options.open_stream && relay->mode == RELAY_WAITING)
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

bool relay_detach(struct call *call, struct rpc_call_begun *taken)
{
    struct relay *relay = relay_of(call);
    bool is_waiting = relay->mode == RELAY_WAITING;
    bool is_between_events = relay->mode == RELAY_EVENTS && !relay->is_encoded &&
                             !relay->inside_event && !relay_is_answered(relay);
    if (!(is_waiting || is_between_events) || !upstream_call_has_sent(relay->upstream))
        return false;
    *taken = (struct rpc_call_begun){
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

struct call *relay_finish(struct relay *relay)
{
    struct call *call = relay->call;
    call_part_remove(&relay->part);
    drop(call, relay);
    return call;
}

/* ---- the response comes down ---- */

static void on_drained(void *context)
{
    struct relay *relay = relay_from(context);
    upstream_call_resume(relay->upstream);
}

void relay_send_down(struct relay *relay, struct str bytes)
{
    if (bytes.length == 0)
        return;
    bool is_behind = !http_stream_write(relay->call->exchange, bytes);
    if (is_behind && relay->upstream) /* upstream is NULL when the response has ended */
        upstream_call_pause(relay->upstream);
}

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
    if (relay->options.open_stream && relay->status == 200)
        relay->stream = notification_stream_open(call, &relay->inside_event);
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
        else if (relay->options.open_stream)
            relay_ask_if_reachable(call);
        if (relay->mode == RELAY_WAITING || relay->mode == RELAY_WHOLE)
            relay_fail(relay, relay_failure_of(result));
        else
            relay_fail_in_stream(relay, relay_failure_of(result));
    }
}

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
