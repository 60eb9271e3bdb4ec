/* Carries a request up and its response down: bytes as they come, events whole, or read and
 * rewritten. */
#include "relay.h"

#include <string.h>

#include "call/call.h"
#include "call/call_span.h"
#include "call/deferred_response.h"
#include "server/http.h"
#include "state/source_eras.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/log.h"
#include "taskgate/core/magic.h"
#include "taskgate/core/metrics.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/sse.h"

/* A reply whose id comes after more bytes than this goes down before its id is known. If it turns
 * out to be no response to the request, the client's is cut off. */
#define LOOKING_BYTES ((size_t)64 * 1024)

/* A kept reply gets at most so much room by its announced length, which may be a lie. */
#define WHOLE_RESERVED INT64_C(1048576)

enum relay_mode {
    RELAY_WAITING, /* waits for the head */
    RELAY_LOOKING, /* held until the reply's id is known */
    RELAY_BYTES,   /* streamed as they come */
    RELAY_EVENTS,  /* streamed event by event */
    RELAY_WHOLE,   /* held until the end, then rewritten */
};

/* In the allocation of its exchange. */
struct relay {
    uint32_t magic; /* RELAY_MAGIC */
    struct call_part part;
    struct call *call;
    const struct looks *looks;
    int64_t silence_ms;
    struct exchange *exchange; /* ends with the relay, unless another receives from it */
    enum relay_mode mode;
    int status;
    struct buffer kept;      /* bytes that have not gone down */
    int64_t content_length;  /* of the response; -1 when it is not announced */
    bool inside_event;       /* a long event is passing in parts */
    struct buffer behind;    /* whole events that go down after it */
    struct loop_timer timer; /* to looks.slow, or to the next sign of life */
};
#define RELAY_MAGIC 0x4757420a

static inline struct relay *relay_from(void *context)
{
    return MAGIC_CAST(struct relay, RELAY_MAGIC, context);
}

/* ---- the relay of a call ---- */

/* Whether the response is a stream that has no end of its own, instead of an answer. */
static bool looks_last(const struct looks *looks)
{
    return looks->opened || looks->outlives;
}

static void relay_finish_members(struct relay *relay)
{
    loop_timer_stop(&relay->timer);
    buffer_finish(&relay->behind);
    buffer_finish(&relay->kept);
    MAGIC_CLEAR(relay);
}

static void drop(struct call *call, void *object)
{
    struct relay *relay = object;
    struct exchange *exchange = relay->exchange;
    relay_finish_members(relay);
    exchange_abandon(exchange);
}

static void tell_left(struct call *call, void *object)
{
    const struct relay *relay = object;
    if (relay->looks->left)
        relay->looks->left(call);
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

static bool relay_is_under_way(const struct call *call)
{
    return relay_find(call) != NULL;
}

void relay_end_opening(struct gateway_worker *worker)
{
    LIST_FOR_EACH_SAFE (node, next, &worker->calls) {
        struct call *call = LIST_ENTRY(node, struct call, node);
        const struct relay *relay = relay_find(call);
        if (relay && relay->looks->opened && relay->mode == RELAY_WAITING)
            call_answer_status(call, 503, STR_EMPTY);
    }
}

static void on_slow(void *context)
{
    struct relay *relay = relay_from(context);
    relay->looks->slow(relay->call);
}

static int64_t relay_age_ms(const struct call *call)
{
    return exchange_age_ms(relay_of(call)->exchange);
}

/* Nothing happens without a relay. */
static void relay_repeat_slow(struct call *call, int64_t in_ms)
{
    struct relay *relay = relay_find(call);
    if (relay)
        loop_timer_start(&relay->timer, in_ms);
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
    exchange_resume(relay_from(context)->exchange);
}

static void relay_send_down(struct relay *relay, struct str bytes)
{
    if (bytes.length == 0)
        return;
    if (!http_stream_write(relay->call->exchange, bytes))
        exchange_pause(relay->exchange);
}

/* ---- rewriting one response ---- */

bool looks_read(const struct looks *looks)
{
    return looks->rewrite || looks->replace_error || looks->replace_result;
}

bool looks_cross_eras(const struct looks *looks)
{
    return !looks->head && !looks->refused && !looks->opened && !looks->outlives &&
           !looks->takes_all;
}

bool looks_may_take(const struct looks *looks, const struct call *call, struct str bytes)
{
    if (!looks->take_message || bytes.length == 0)
        return false;
    return looks->takes_all || (call->dialect->server_may_ask &&
                                memmem(bytes.bytes, bytes.length, "\"method\"", 8) != NULL);
}

size_t looks_most_held(const struct looks *looks, const struct call *call)
{
    size_t most = (size_t)call->snapshot->config->limits.result_bytes;
    return looks->most_bytes > most ? looks->most_bytes : most;
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
static bool read_reply(const struct looks *looks, struct str message, struct relay_reply *reply,
                       struct str *error)
{
    static const char *const keys[] = {"error", "id", "result"};
    const char *const list_keys[] = {looks->list, "nextCursor"};
    struct str values[3], list[2] = {STR_EMPTY, STR_EMPTY};
    const struct json_wanted inner = {list_keys, 2, list, 0, NULL},
                             wanted = {keys, 3, values, 2, looks->list ? &inner : NULL};
    if (!json_check_members(message, &wanted))
        return false;
    *error = values[0];
    *reply = (struct relay_reply){message, values[1], values[2], list[0], list[1]};
    return true;
}

bool looks_rewrite(const struct looks *looks, struct call *call, struct str message,
                   struct buffer *out)
{
    struct relay_reply reply;
    struct str error;
    if (looks->recall && looks->recall(call, message, out)) {
        note_acceptance(call);
        return true;
    }
    if (!read_reply(looks, message, &reply, &error))
        return false;
    bool has_our_id = str_equal(reply.id, call->envelope.id);
    if (reply.result.length == 0)
        return has_our_id && error.length > 0 && looks->replace_error &&
               looks->replace_error(call, error, out);
    if (looks->replace_result && looks->replace_result(call, &reply, out)) {
        note_acceptance(call);
        return true;
    }
    /* The server may spell our id otherwise. A reply with another request's id was refused before.
     */
    if (!looks->rewrite) {
        if (has_our_id) {
            note_acceptance(call);
            buffer_append(out, message);
        }
        return has_our_id;
    }
    note_acceptance(call);
    size_t at = str_offset(message, reply.result), behind = at + reply.result.length;
    buffer_append(out, str_slice(message.bytes, at));
    looks->rewrite(call, &reply, out);
    buffer_append(out, str_slice(message.bytes + behind, message.length - behind));
    return true;
}

static bool is_between_events(const struct relay *relay)
{
    return relay->mode == RELAY_EVENTS && !relay->inside_event;
}

/* ---- another takes over what the server sends ---- */

static struct exchange *relay_exchange(const struct call *call)
{
    return relay_of(call)->exchange;
}

static void relay_on_released(void *context)
{
    struct relay *relay = relay_from(context);
    ASSERT(relay->mode == RELAY_WAITING || is_between_events(relay));
    if (relay->mode == RELAY_EVENTS)
        http_on_drained(relay->call->exchange, NULL, NULL);
    call_part_remove(&relay->part);
    relay_finish_members(relay);
}

/* ---- the answer when the server's response does not come, or breaks off ---- */

enum jsonrpc_error relay_failure_error(enum lost_reason reason)
{
    if (reason == LOST_TIMEOUT)
        return JSONRPC_UPSTREAM_TIMEOUT;
    return reason == LOST_UNREADABLE || reason == LOST_STATUS_5XX ? JSONRPC_UPSTREAM_ERROR
                                                                  : JSONRPC_UPSTREAM_FAILED;
}

/* Whether the client waits for a response. A response of its own has an id, too: the server's. */
static bool expects_response(const struct call *call)
{
    return call->envelope.kind == ENVELOPE_REQUEST && call->envelope.id.length > 0;
}

void relay_answer_failure(struct call *call, enum lost_reason reason)
{
    if (expects_response(call)) {
        struct jsonrpc_error_data data = {.tool = call_tool(call)};
        call_answer_error(call, relay_failure_error(reason), STR_EMPTY, &data);
    } else {
        call_answer_status(call, 502, STR_EMPTY);
    }
}

/* Nothing has gone down yet: the call is answered with the failure, or by looks.stand_in. */
static void relay_fail(struct relay *relay, enum lost_reason reason)
{
    const struct looks *looks = relay->looks;
    struct call *call = relay_finish(relay);
    if (!looks->stand_in || !looks->stand_in(call, reason))
        relay_answer_failure(call, reason);
}

/* Ends the response, which has begun. */
static void end_stream_with(struct relay *relay, struct str message)
{
    bool is_cut = !is_between_events(relay);
    call_end_stream(relay_finish(relay), message, is_cut);
}

/* The response is under way and cannot be taken back: its end says the failure. */
static void relay_fail_in_stream(struct relay *relay, enum lost_reason reason)
{
    bool events = is_between_events(relay);
    bool answered = events && exchange_is_answered(relay->exchange);
    struct call *call = relay->call;
    OWNED_BUFFER(message);
    ASSERT(relay->mode == RELAY_EVENTS || relay->mode == RELAY_BYTES);
    call->upstream_broke = true;
    call->outcome = answered ? "success" : "error";
    if (!answered)
        call_span_fail(call, relay_failure_error(reason));
    if (events && !answered && expects_response(call))
        dialect_write_error(call->dialect, &message, call->envelope.id, relay_failure_error(reason),
                            STR_EMPTY, NULL);
    end_stream_with(relay, buffer_str(&message));
}

void relay_end_with(struct call *call, struct str message)
{
    struct relay *relay = relay_find(call);
    if (relay && relay->mode != RELAY_WAITING && relay->mode != RELAY_WHOLE) {
        end_stream_with(relay, message);
        return;
    }
    if (relay)
        relay_finish(relay);
    call_answer(call, message);
}

/* ---- the silence after which there is none ---- */

static void relay_set_silence(struct call *call, int64_t silence_ms)
{
    struct relay *relay = relay_find(call);
    if (!relay || relay->silence_ms == silence_ms)
        return;
    relay->silence_ms = silence_ms;
    exchange_set_silence(relay->exchange, silence_ms);
}

void relay_wait_for_person(struct call *call)
{
    struct relay *relay = relay_find(call);
    if (!relay)
        return;
    relay_set_silence(call, 0);
    if (relay->looks->slow)
        loop_timer_start(&relay->timer, 0);
}

/* ---- whether the server can be reached ---- */

/* An idle client learns of a dead server only from its GET stream. A stream may break off for less,
 * so the server is asked whether it is there. */
static void relay_ask_if_reachable(const struct call *call)
{
    struct headers headers;
    OWNED_BUFFER(body);
    OWNED_BUFFER(id);
    headers_init(&headers, false);
    headers_from_call(&headers, call);
    exchange_write_request(&body, &id, "ping", STR_EMPTY);
    const struct sending sending = {.source = call->source,
                                    .snapshot = call->snapshot,
                                    .headers = &headers,
                                    .body = buffer_str(&body)};
    exchange_notify(call->worker, &sending);
    headers_finish(&headers);
}

/* ---- what the reply may be ---- */

/* The rest does not go down, and its connection is not used again: the next reply on it may be
 * another request's, too. */
static void break_off(struct relay *relay)
{
    if (relay->mode == RELAY_LOOKING || relay->mode == RELAY_WHOLE)
        relay_fail(relay, LOST_UNREADABLE);
    else
        relay_fail_in_stream(relay, LOST_UNREADABLE);
}

static void relay_on_unreadable(void *context)
{
    break_off(relay_from(context));
}

/* ---- an event stream: whole events, with messages taken out or rewritten ---- */

/* Writes what goes down in place of an event's data. false: the event goes down as it came. */
static bool rewrite_data(struct relay *relay, struct str data, struct buffer *message)
{
    if (!looks_read(relay->looks) || data.length == 0)
        return false;
    bool is_too_large = data.length > looks_most_held(relay->looks, relay->call);
    if (is_too_large)
        metrics_count(METRIC_LIMITS_REACHED, STR("result_bytes"));
    if (!is_too_large && looks_rewrite(relay->looks, relay->call, data, message))
        return true;
    if (!is_too_large && json_check(data, NULL) && json_type(data) != JSON_ARRAY)
        return false;
    /* Data that cannot be read cannot be filtered, but a client might read it. Batches are not read
     * either; no server has a reason to send one. */
    dialect_write_error(relay->call->dialect, message, relay->call->envelope.id,
                        relay_failure_error(LOST_UNREADABLE), STR_EMPTY, NULL);
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
    if (looks_may_take(relay->looks, relay->call, data) && json_check(data, NULL) &&
        (relay->looks->takes_all || json_member(data, "method").length > 0) &&
        relay->looks->take_message(relay->call, data)) {
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
    if (!looks_read(relay->looks) && !looks_may_take(relay->looks, relay->call, events)) {
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

/* Messages that are read are not passed in parts. */
static bool relay_on_part(void *context, struct str bytes)
{
    struct relay *relay = relay_from(context);
    if (looks_read(relay->looks) || looks_may_take(relay->looks, relay->call, bytes))
        return false;
    relay_send_down(relay, bytes);
    relay->inside_event = true;
    return true;
}

static void relay_take_events(struct relay *relay, struct str events, bool is_whole)
{
    send_events(relay, events);
    if (!is_whole)
        return;
    relay->inside_event = false;
    relay_send_down(relay, buffer_str(&relay->behind));
    buffer_clear(&relay->behind);
}

void relay_put(struct call *call, struct str events)
{
    struct relay *relay = relay_find(call);
    ASSERT(!relay || relay->mode == RELAY_EVENTS);
    if (!relay)
        http_stream_write(call->exchange, events);
    else if (relay->inside_event)
        buffer_append(&relay->behind, events);
    else
        relay_send_down(relay, events);
}

size_t relay_backlog(const struct call *call)
{
    const struct relay *relay = relay_find(call);
    return http_stream_backlog(call->exchange) + (relay ? relay->behind.length : 0);
}

void relay_pass(struct call *call, struct str message)
{
    OWNED_BUFFER(event);
    if (!relay_find(call)) {
        deferred_response_pass(call, message); /* the call is detached */
        return;
    }
    sse_write_event(&event, STR_EMPTY, STR_EMPTY, message);
    relay_put(call, buffer_str(&event));
}

/* A comment, unless a part of an event has just gone down. */
static void relay_show_life(void *context)
{
    struct relay *relay = relay_from(context);
    loop_timer_start(&relay->timer, SIGN_OF_LIFE_MS);
    if (is_between_events(relay))
        relay_send_down(relay, STR(":ping\n\n"));
}

/* ---- the response comes down ---- */

/* A detached call's stream has whole events alone. */
static bool may_write_error(const struct call *call)
{
    const struct relay *relay = relay_find(call);
    return !relay || (!relay->inside_event && !exchange_is_answered(relay->exchange));
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
    if (looks_last(relay->looks)) {
        token_clock_start(call, may_write_error);
        loop_timer_start(&relay->timer, SIGN_OF_LIFE_MS);
    }
    if (relay->looks->opened && relay->status == 200)
        relay->looks->opened(call);
}

/* Whether looks.stand_in answers in place of a 5xx, which else goes down as it is. */
static bool is_stood_in_for(struct relay *relay)
{
    return relay->status >= 500 && relay->looks->stand_in &&
           relay->looks->stand_in(relay->call, LOST_STATUS_5XX); /* drops the relay */
}

/* The call goes on without this relay, if looks.refused says so. */
static bool is_taken_over(struct relay *relay)
{
    bool (*refused)(struct call *, int) = relay->looks->refused;
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

static enum relay_mode relay_mode_of(const struct relay *relay, const struct exchange_head *head)
{
    bool reads = looks_read(relay->looks) && head->status >= 200 && head->status < 300;
    bool may_outlive = relay->looks->outlives && !head->is_encoded;
    if (head->is_stream)
        return RELAY_EVENTS;
    if (reads || may_outlive)
        return RELAY_WHOLE;
    return head->is_checked ? RELAY_LOOKING : RELAY_BYTES;
}

static void on_head(void *context, const struct exchange_head *head)
{
    struct relay *relay = relay_from(context);
    struct call *call = relay->call;
    int status = head->status;
    relay->status = status;
    relay->content_length = head->length;
    if (!call->dialect->has_sessions && (status == 400 || status == 404 || status == 405))
        source_eras_doubt(call->worker->gateway->eras, call->source,
                          loop_now_ms(call->worker->loop));
    if (is_stood_in_for(relay) || is_taken_over(relay))
        return;
    if (!call->dialect->has_sessions) /* sessions are not of a modern client's world */
        headers_drop(head->headers, HTTP_NAME_OF_SESSION);
    if (head->is_stream)
        headers_let_stream_pass(head->headers);
    if (relay->looks->head)
        relay->looks->head(call, status, head->headers);
    http_prepare(call->exchange, status, head->headers->items, head->headers->count);
    if (head->is_refused) {
        relay_fail(relay, LOST_UNREADABLE);
        return;
    }
    relay->mode = relay_mode_of(relay, head);
    if (relay->mode == RELAY_EVENTS || relay->mode == RELAY_BYTES)
        start_stream(relay);
}

static void take_whole(struct relay *relay, struct str bytes)
{
    size_t most = looks_most_held(relay->looks, relay->call);
    if (bytes.length > most || relay->kept.length > most - bytes.length) {
        metrics_count(METRIC_LIMITS_REACHED, STR("result_bytes"));
        relay_fail(relay, LOST_UNREADABLE);
    } else {
        int64_t room = relay->content_length;
        if (relay->kept.length == 0 && room > 0)
            buffer_reserve(&relay->kept, (size_t)(room < WHOLE_RESERVED ? room : WHOLE_RESERVED));
        buffer_append(&relay->kept, bytes);
    }
}

/* A message that is whole already goes down with its end. */
static void look_at(struct relay *relay, struct str bytes)
{
    size_t so_far = relay->kept.length + bytes.length;
    bool is_known = exchange_is_known(relay->exchange);
    bool is_whole = relay->content_length >= 0 && so_far == (size_t)relay->content_length;
    if ((!is_known || is_whole) && so_far <= LOOKING_BYTES) {
        buffer_append(&relay->kept, bytes);
    } else {
        let_down(relay);
        relay_send_down(relay, bytes);
    }
}

static void relay_on_bytes(void *context, struct str bytes, bool is_whole)
{
    struct relay *relay = relay_from(context);
    if (relay->mode == RELAY_EVENTS)
        relay_take_events(relay, bytes, is_whole);
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
    http_respond_prepared(call_ended(relay_finish(relay)), body);
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
    const struct looks *looks = relay->looks;
    if (!looks->outlives || !looks->outlives(relay->call, relay->status, reply))
        return false;
    if (has_begun)
        http_on_drained(relay->call->exchange, NULL, NULL);
    looks->alone(relay_finish(relay), has_begun);
    return true;
}

static void answer_whole(struct relay *relay)
{
    struct buffer message;
    if (is_outlived(relay, buffer_str(&relay->kept), false))
        return;
    if (!looks_read(relay->looks)) {
        answer_held(relay);
        return;
    }
    buffer_init(&message);
    if (!looks_rewrite(relay->looks, relay->call, buffer_str(&relay->kept), &message)) {
        /* An error of the server's goes down as it is. A reply that cannot be read does not go
         * down. */
        struct str text = buffer_str(&relay->kept);
        if (!json_check(text, NULL) || json_member(text, "error").length == 0) {
            buffer_finish(&message);
            relay_fail(relay, LOST_UNREADABLE);
            return;
        }
        buffer_append(&message, text);
    }
    respond(relay, &message);
}

static void end_stream(struct relay *relay)
{
    if (relay->mode == RELAY_EVENTS && is_outlived(relay, STR_EMPTY, true))
        return;
    http_stream_end(call_ended(relay_finish(relay)));
}

static void on_end(void *context, enum upstream_result result, bool is_response, const char *detail)
{
    struct relay *relay = relay_from(context);
    struct call *call = relay->call;
    if (call->span && relay->status >= 400)
        call_span_fail_status(call, relay->status);
    if (!is_response) {
        break_off(relay);
        return;
    }
    if (relay->mode == RELAY_LOOKING && result != UPSTREAM_DONE)
        let_down(relay);
    if (result == UPSTREAM_DONE && relay->mode == RELAY_WHOLE) {
        answer_whole(relay);
    } else if (result == UPSTREAM_DONE && relay->mode == RELAY_LOOKING) {
        answer_held(relay);
    } else if (result == UPSTREAM_DONE && relay->mode != RELAY_WAITING) {
        end_stream(relay);
    } else {
        log_warn("Upstream failed", LOG_TEXT("source", call->source->id),
                 LOG_TEXT("detail", detail));
        if (relay->mode != RELAY_WAITING && relay->looks->opened)
            relay_ask_if_reachable(call);
        if (relay->mode == RELAY_WAITING || relay->mode == RELAY_WHOLE)
            relay_fail(relay, lost_reason_of(result));
        else
            relay_fail_in_stream(relay, lost_reason_of(result));
    }
}

/* ---- the beginning ---- */

/* Names a new span in the headers, which borrow from it and from `traceparent`, and in the body,
 * where the client has named its own: then `body` gets a copy. */
static SPAN_COLD void relay_begin_span(const struct call *call, const struct envelope *message,
                                       struct headers *headers, char traceparent[TRACEPARENT_BYTES],
                                       struct buffer *body, struct sending *sending)
{
    const struct upstream_trace of_call = {.parent = call_span_parent(call)};
    sending->span =
        server_span_start(&of_call, call->source, call->envelope.method, call->envelope.name.text);
    server_span_set_headers(sending->span, headers, traceparent);
    if (server_span_write_body(sending->span, message, body)) {
        sending->body = buffer_str(body);
        sending->body_lasts = false;
    }
}

static void relay_begin(struct call *call, const struct looks *looks, const struct carried *carried)
{
    static const struct exchange_events events = {.head = on_head,
                                                  .bytes = relay_on_bytes,
                                                  .part = relay_on_part,
                                                  .unreadable = relay_on_unreadable,
                                                  .end = on_end,
                                                  .released = relay_on_released};
    const struct envelope *message = carried->message ? carried->message : &call->envelope;
    bool is_limited = !looks_last(looks) && !carried->url;
    struct str method = http_method(call->exchange);
    struct http_header room[HEADERS_ROOM];
    char traceparent[TRACEPARENT_BYTES];
    struct headers headers;
    OWNED_BUFFER(body);
    headers_init_in(&headers, room, HEADERS_ROOM);
    headers_from_call(&headers, call);
    struct sending sending = {
        .source = call->source,
        .snapshot = call->snapshot,
        .url = carried->url,
        .headers = &headers,
        .method = str_equal(method, STR("GET"))      ? "GET"
                  : str_equal(method, STR("DELETE")) ? "DELETE"
                                                     : "POST",
        .body = message->body,
        .body_lasts = true,
        .id = call->envelope.kind == ENVELOPE_REQUEST ? call->envelope.id : STR_EMPTY,
        .silence_ms = carried->silence_ms,
        .most_bytes = looks_most_held(looks, call),
        .reply_bytes = is_limited ? call->snapshot->config->limits.reply_bytes : 0,
        .authorization = str_from(call->upstream_authorization),
        .own_bytes = sizeof(struct relay),
    };
    if (call->span)
        relay_begin_span(call, message, &headers, traceparent, &body, &sending);
    struct exchange *exchange = exchange_send(call->worker, &sending, &events, NULL);
    headers_finish(&headers);
    struct relay *relay = exchange_own(exchange);
    MAGIC_SET(relay, RELAY_MAGIC);
    relay->call = call;
    relay->looks = looks;
    relay->silence_ms = carried->silence_ms;
    relay->exchange = exchange;
    call_part_add(call, &relay->part, &relay_kind);
    ASSERT(!looks->slow || !looks_last(looks));
    loop_timer_init(&relay->timer, call->worker->loop, looks->slow ? on_slow : relay_show_life,
                    relay);
    if (carried->slow_ms > 0)
        loop_timer_start(&relay->timer, carried->slow_ms);
}

const struct call_carrier relay_carrier = {.start = relay_begin,
                                           .is_under_way = relay_is_under_way,
                                           .age_ms = relay_age_ms,
                                           .repeat_slow = relay_repeat_slow,
                                           .set_silence = relay_set_silence,
                                           .exchange = relay_exchange};

void relay_start(struct call *call, const struct looks *looks, const struct carried *carried)
{
    static const struct carried nothing = {0};
    call_carrier_of(call)->start(call, looks, carried ? carried : &nothing);
}
