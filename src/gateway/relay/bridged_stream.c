/* Streams of bridged sessions. */
#include "bridged_stream.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "call/broadcast.h"
#include "call/call.h"
#include "call/headers.h"
#include "call/token_clock.h"
#include "notification_stream.h"
#include "server/listen.h"
#include "state/bridged_sessions.h"
#include "state/quota.h"
#include "taskgate/core/log.h"
#include "taskgate/core/magic.h"
#include "taskgate/core/memory.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/sse.h"

#define PAUSE_MS 500
#define PAUSE_MOST_MS 60000
/* The bytes that may wait for a client that does not read. */
#define BACKLOG_BYTES ((size_t)256 * 1024)

struct bridged_stream {
    uint32_t magic; /* BRIDGED_STREAM_MAGIC */
    struct call_part part;
    struct call *call;
    struct notification_stream *stream;
    struct listener *listen; /* acknowledged */
    struct listener *next;   /* takes its place when it is acknowledged */
    struct loop_timer retry;
    int64_t pause_ms;
    uint64_t number; /* of the streams of all workers the newest has the highest */
    bool is_silent;  /* a newer one of its session tells the news */
    bool is_lost;    /* the server's messages since then */
    bool is_inside;  /* an event: never, as the gateway writes whole ones */
};
#define BRIDGED_STREAM_MAGIC 0x47574213

static inline struct bridged_stream *bridged_stream_from(void *context)
{
    return MAGIC_CAST(struct bridged_stream, BRIDGED_STREAM_MAGIC, context);
}

static void let_others_speak(const struct call *call);

/* ---- their number ---- */

static void write_key(const struct call *call, struct buffer *key)
{
    buffer_init(key);
    buffer_append_format(key, "%s/%s", call->source->id, call->session);
}

/* The connections bound it. */
static void count_one_more(const struct call *call)
{
    struct buffer key;
    write_key(call, &key);
    quota_take(call->worker->gateway->bridged_streams, buffer_str(&key), INT64_MAX, INT64_MAX);
    buffer_finish(&key);
}

static void count_one_less(const struct call *call)
{
    struct buffer key;
    write_key(call, &key);
    quota_give_back(call->worker->gateway->bridged_streams, buffer_str(&key));
    buffer_finish(&key);
}

bool bridged_stream_is_open(const struct call *call)
{
    struct buffer key;
    write_key(call, &key);
    bool is_open = quota_has(call->worker->gateway->bridged_streams, buffer_str(&key));
    buffer_finish(&key);
    return is_open;
}

static void drop(struct call *call, void *object)
{
    struct bridged_stream *stream = object;
    count_one_less(call);
    if (!stream->is_silent)
        let_others_speak(call);
    loop_timer_stop(&stream->retry);
    listener_stop(stream->listen);
    listener_stop(stream->next);
    notification_stream_close(stream->stream);
    MAGIC_CLEAR(stream);
    free(stream);
}

static const struct call_part_kind bridged_stream_kind =
    CALL_PART_KIND(struct bridged_stream, drop);

static void send(struct bridged_stream *stream, struct str message)
{
    struct http_exchange *exchange = stream->call->exchange;
    struct buffer event;
    if (http_stream_backlog(exchange) > BACKLOG_BYTES)
        return;
    buffer_init(&event);
    sse_write_event(&event, STR_EMPTY, STR_EMPTY, message);
    http_stream_write(exchange, buffer_str(&event));
    buffer_finish(&event);
}

/* ---- listening ---- */

static void listen_anew(struct bridged_stream *stream);

static void on_retry(void *context)
{
    listen_anew(bridged_stream_from(context));
}

static void try_later(struct bridged_stream *stream)
{
    loop_timer_start(&stream->retry, stream->pause_ms);
    stream->pause_ms = stream->pause_ms * 2 < PAUSE_MOST_MS ? stream->pause_ms * 2 : PAUSE_MOST_MS;
}

/* Changes while no stream was open are unknown. */
static void tell_of_gap(struct bridged_stream *stream, struct str honoured)
{
    static const struct {
        const char *member, *message;
    } lists[] = {
        {"toolsListChanged",
         "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}"},
        {"promptsListChanged",
         "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/prompts/list_changed\"}"},
        {"resourcesListChanged",
         "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/resources/list_changed\"}"},
    };
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        if (json_type(json_member(honoured, lists[i].member)) == JSON_TRUE)
            send(stream, str_from(lists[i].message));
    }
}

static void tell_of_cover(const struct call *call, struct str honoured);

static void on_opened(void *context, struct str honoured)
{
    struct bridged_stream *stream = bridged_stream_from(context);
    listener_stop(stream->listen);
    stream->listen = stream->next;
    stream->next = NULL;
    tell_of_cover(stream->call, honoured);
    stream->pause_ms = PAUSE_MS;
    if (stream->is_lost)
        tell_of_gap(stream, honoured);
    stream->is_lost = false;
}

static void on_news(void *context, struct str method, struct str message)
{
    (void)method;
    send(bridged_stream_from(context), message);
}

/* A server that has nothing to tell ends the stream at once. It is asked again only when the
 * session wants something else. */
static void on_ended(void *context, const struct listener *listener)
{
    struct bridged_stream *stream = bridged_stream_from(context);
    bool was_new = listener == stream->next;
    if (was_new)
        stream->next = NULL;
    else
        stream->listen = NULL;
    if (listener_is_empty(listener))
        return;
    stream->is_lost = stream->is_lost || !was_new;
    log_info("A bridged stream listens anew", LOG_TEXT("source", stream->call->source->id),
             LOG_NUMBER("in_ms", stream->pause_ms));
    try_later(stream);
}

static void write_filter(const struct call *call, struct buffer *filter)
{
    struct buffer said;
    buffer_init(&said);
    bridged_sessions_get(call->worker->gateway->bridged_sessions, str_from(call->source->id),
                         str_from(call->session), &said);
    struct str uris = json_member(buffer_str(&said), "uris");
    buffer_append_text(filter, "{\"toolsListChanged\":true,\"promptsListChanged\":true,"
                               "\"resourcesListChanged\":true");
    if (json_count(uris) > 0) {
        buffer_append_text(filter, ",\"resourceSubscriptions\":");
        buffer_append(filter, uris);
    }
    buffer_append_char(filter, '}');
    buffer_finish(&said);
}

static void listen_anew(struct bridged_stream *stream)
{
    static const struct listener_events events = {
        .opened = on_opened, .message = on_news, .ended = on_ended};
    struct buffer filter;
    buffer_init(&filter);
    loop_timer_stop(&stream->retry);
    listener_stop(stream->next);
    write_filter(stream->call, &filter);
    server_listen(stream->call, buffer_str(&filter), &events, stream, &stream->next);
    buffer_finish(&filter);
}

/* ---- the beginning ---- */

static void speak(struct bridged_stream *stream);

void bridged_stream_open(struct call *call)
{
    struct bridged_stream *stream = memory_alloc(sizeof *stream);
    MAGIC_SET(stream, BRIDGED_STREAM_MAGIC);
    stream->call = call;
    stream->pause_ms = PAUSE_MS;
    loop_timer_init(&stream->retry, call->worker->loop, on_retry, stream);
    call_part_add(call, &stream->part, &bridged_stream_kind);
    count_one_more(call);
    http_stream_start(call->exchange, 200, headers_of_stream, HEADERS_OF_STREAM, -1);
    http_stream_flush(call->exchange);
    token_clock_start(call, NULL);
    stream->stream = notification_stream_open(call, &stream->is_inside);
    speak(stream);
}

/* ---- what happens to the session ---- */

/* For the streams of one session: the message may be empty. */
struct session_broadcast {
    struct str source, session, message;
    uint64_t number;
};

static void own_broadcast(void *message)
{
    struct session_broadcast *broadcast = message;
    broadcast->source = broadcast_copy(broadcast->source);
    broadcast->session = broadcast_copy(broadcast->session);
    broadcast->message = broadcast_copy(broadcast->message);
}

static void finish_broadcast(void *message)
{
    struct session_broadcast *broadcast = message;
    broadcast_release(broadcast->source);
    broadcast_release(broadcast->session);
    broadcast_release(broadcast->message);
}

static void for_streams(struct gateway_worker *worker, const struct session_broadcast *broadcast,
                        void (*act)(struct bridged_stream *stream,
                                    const struct session_broadcast *broadcast))
{
    LIST_FOR_EACH_SAFE (node, next, &worker->calls) {
        struct call *call = LIST_ENTRY(node, struct call, node);
        struct bridged_stream *stream = call_part_find(call, &bridged_stream_kind);
        if (stream && str_equal(broadcast->source, str_from(call->source->id)) &&
            str_equal(broadcast->session, str_from(call->session)))
            act(stream, broadcast);
    }
}

#define SESSION_BROADCAST_KIND(deliver_function)                                                   \
    {                                                                                              \
        .bytes = sizeof(struct session_broadcast), .own = own_broadcast,                           \
        .finish = finish_broadcast, .deliver = (deliver_function)                                  \
    }

/* ---- which of the session's streams speaks ---- */

/* A message goes out on one stream of a session, and never on all of them (2025-11-25, "Multiple
 * Connections"): the newest has it. The others stay open, so that a client which holds two does
 * not begin them anew in turn, and one of them goes on when the newest has gone. */
static void fall_silent(struct bridged_stream *stream, const struct session_broadcast *broadcast)
{
    if (stream->number >= broadcast->number)
        return;
    stream->is_silent = true;
    loop_timer_stop(&stream->retry);
    listener_stop(stream->listen);
    listener_stop(stream->next);
    stream->listen = stream->next = NULL;
}

static void deliver_silence(struct gateway_worker *worker, const void *message)
{
    for_streams(worker, message, fall_silent);
}

static void speak(struct bridged_stream *stream)
{
    static const struct broadcast_kind kind = SESSION_BROADCAST_KIND(deliver_silence);
    static atomic_ullong numbers;
    const struct call *call = stream->call;
    stream->number = atomic_fetch_add(&numbers, 1) + 1;
    stream->is_silent = false;
    broadcast_send(call->worker->gateway, &kind,
                   &(struct session_broadcast){.source = str_from(call->source->id),
                                               .session = str_from(call->session),
                                               .number = stream->number});
    listen_anew(stream);
}

/* Of several that were silent each is newer than the one before it: the last one speaks. */
static void go_on(struct bridged_stream *stream, const struct session_broadcast *broadcast)
{
    (void)broadcast;
    if (!stream->is_silent)
        return;
    stream->is_lost = true;
    speak(stream);
}

static void deliver_speech(struct gateway_worker *worker, const void *message)
{
    for_streams(worker, message, go_on);
}

static void let_others_speak(const struct call *call)
{
    static const struct broadcast_kind kind = SESSION_BROADCAST_KIND(deliver_speech);
    broadcast_send(call->worker->gateway, &kind,
                   &(struct session_broadcast){.source = str_from(call->source->id),
                                               .session = str_from(call->session)});
}

/* ---- what the session wants, hears and ends ---- */

static void renew(struct bridged_stream *stream, const struct session_broadcast *broadcast)
{
    (void)broadcast;
    if (!stream->is_silent)
        listen_anew(stream);
}

static void deliver_renewal(struct gateway_worker *worker, const void *message)
{
    for_streams(worker, message, renew);
}

void bridged_stream_renew(const struct call *call)
{
    static const struct broadcast_kind kind = SESSION_BROADCAST_KIND(deliver_renewal);
    broadcast_send(call->worker->gateway, &kind,
                   &(struct session_broadcast){.source = str_from(call->source->id),
                                               .session = str_from(call->session)});
}

static bool covers(struct str honoured, const char *uri)
{
    struct str uris = json_member(honoured, "resourceSubscriptions"), one;
    for (size_t position = 0; json_next_element(uris, &position, &one);) {
        if (json_string_equals(one, str_from(uri)))
            return true;
    }
    return false;
}

static void deliver_cover(struct gateway_worker *worker, const void *message)
{
    const struct session_broadcast *broadcast = message;
    LIST_FOR_EACH_SAFE (node, next, &worker->handovers) {
        struct bridged_handover *handover = LIST_ENTRY(node, struct bridged_handover, node);
        if (str_equal(broadcast->source, str_from(handover->source)) &&
            str_equal(broadcast->session, str_from(handover->session)) &&
            covers(broadcast->message, handover->uri))
            handover->covered(handover);
    }
}

static void tell_of_cover(const struct call *call, struct str honoured)
{
    static const struct broadcast_kind kind = SESSION_BROADCAST_KIND(deliver_cover);
    if (json_count(json_member(honoured, "resourceSubscriptions")) > 0)
        broadcast_send(call->worker->gateway, &kind,
                       &(struct session_broadcast){.source = str_from(call->source->id),
                                                   .session = str_from(call->session),
                                                   .message = honoured});
}

/* Also where the stream listens to the resource itself by now: it may have begun to after this
 * message was sent. To be told of a change twice does no harm. */
static void tell(struct bridged_stream *stream, const struct session_broadcast *broadcast)
{
    if (!stream->is_silent)
        send(stream, broadcast->message);
}

static void deliver_news(struct gateway_worker *worker, const void *message)
{
    for_streams(worker, message, tell);
}

void bridged_stream_tell(struct gateway *gateway, struct str source, struct str session,
                         struct str message)
{
    static const struct broadcast_kind kind = SESSION_BROADCAST_KIND(deliver_news);
    broadcast_send(
        gateway, &kind,
        &(struct session_broadcast){.source = source, .session = session, .message = message});
}

static void end_stream(struct bridged_stream *stream, const struct session_broadcast *broadcast)
{
    struct call *call = stream->call;
    struct http_exchange *exchange = call->exchange;
    (void)broadcast;
    http_on_gone(exchange, NULL, NULL);
    call_ended(call);
    http_stream_end(exchange);
}

static void deliver_end(struct gateway_worker *worker, const void *message)
{
    for_streams(worker, message, end_stream);
}

void bridged_stream_end_session(const struct call *call)
{
    static const struct broadcast_kind kind = SESSION_BROADCAST_KIND(deliver_end);
    broadcast_send(call->worker->gateway, &kind,
                   &(struct session_broadcast){.source = str_from(call->source->id),
                                               .session = str_from(call->session)});
}
