/* GET streams of legacy clients. */
#include "legacy_stream.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "call/broadcast.h"
#include "call/client_profile.h"
#include "call/deferred_response.h"
#include "call/headers.h"
#include "conversation/question.h"
#include "conversation/relay.h"
#include "server/listen.h"
#include "state/quota.h"
#include "state/session_table.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"
#include "taskgate/core/magic.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/sse.h"

/* How many bytes may wait for a client that does not read. */
#define WAITING_BYTES ((size_t)256 * 1024)
#define PAUSE_MS 500
#define PAUSE_MOST_MS 60000

struct legacy_stream {
    uint32_t magic; /* LEGACY_STREAM_MAGIC */
    struct list node;
    struct call_part part;
    struct call *call;
    char key[CLIENT_KEY_BYTES]; /* of its client; the key of its session, if it has one */
    uint64_t claimant;          /* its number once it carries questions */

    /* ---- of one that a listener feeds ---- */
    struct listener *listener; /* has opened */
    struct listener *next;     /* takes its place when it has */
    struct loop_timer retry;
    int64_t pause_ms;
    uint64_t number; /* of the streams of all workers the newest has the highest; 0: the server's
                        own stream passes */
    bool is_silent;  /* a newer one of its session speaks */
    bool is_lost;    /* the server's messages since then */
};
#define LEGACY_STREAM_MAGIC 0x47574c02

static inline struct legacy_stream *legacy_stream_from(void *context)
{
    return MAGIC_CAST(struct legacy_stream, LEGACY_STREAM_MAGIC, context);
}

static void legacy_stream_end(struct legacy_stream *stream)
{
    http_stream_end(call_ended(stream->call)); /* closes the stream, too */
}

/* ---- messages, between the server's events ---- */

/* NULL: all questions to this client. */
static void offer_questions(struct legacy_stream *stream, const struct task *task)
{
    OWNED_BUFFER(events);
    question_claim(stream->call, task, &stream->claimant, &events);
    relay_put(stream->call, buffer_str(&events));
}

static void notify_events(struct legacy_stream *stream, struct str events)
{
    if (relay_backlog(stream->call) <= WAITING_BYTES)
        relay_put(stream->call, events); /* a courtesy; the task itself can be asked for */
}

static void notify_message(struct legacy_stream *stream, struct str message)
{
    OWNED_BUFFER(event);
    sse_write_event(&event, STR_EMPTY, STR_EMPTY, message);
    notify_events(stream, buffer_str(&event));
}

/* ---- its life ---- */

static void drop_stream(struct call *call, void *object);

static const struct call_part_kind stream_kind = CALL_PART_KIND(struct legacy_stream, drop_stream);

/* The response has begun. */
static struct legacy_stream *legacy_stream_begin(struct call *call)
{
    struct legacy_stream *stream = memory_alloc(sizeof *stream);
    MAGIC_SET(stream, LEGACY_STREAM_MAGIC);
    stream->call = call;
    client_key_of_call(call, stream->key);
    call_part_add(call, &stream->part, &stream_kind);
    list_append(&call->worker->streams, &stream->node);
    atomic_fetch_add(&call->worker->gateway->listening, 1);
    offer_questions(stream, NULL);
    return stream;
}

void client_stream_opened(struct call *call)
{
    legacy_stream_begin(call);
}

/* ---- messages for the streams of one session, at whatever worker ---- */

struct session_broadcast {
    struct str key, message; /* the message may be empty */
    uint64_t number;
    void (*act)(struct legacy_stream *stream, const struct session_broadcast *broadcast);
};

static void deliver_session_broadcast(struct gateway_worker *worker, const void *message)
{
    const struct session_broadcast *broadcast = message;
    LIST_FOR_EACH_SAFE (node, next, &worker->streams) {
        struct legacy_stream *stream = LIST_ENTRY(node, struct legacy_stream, node);
        if (stream->number > 0 && str_equal(broadcast->key, str_from(stream->key)))
            broadcast->act(stream, broadcast);
    }
}

static const struct broadcast_kind session_kind = {
    .bytes = sizeof(struct session_broadcast), .texts = 2, .deliver = deliver_session_broadcast};

/* `act` is done with each stream of the session that a listener feeds. */
static void send_to_session(const struct call *call,
                            void (*act)(struct legacy_stream *stream,
                                        const struct session_broadcast *broadcast),
                            uint64_t number)
{
    char key[CLIENT_KEY_BYTES];
    client_key_of_call(call, key);
    broadcast_send(call->worker->gateway, &session_kind,
                   &(struct session_broadcast){.key = str_from(key), .number = number, .act = act});
}

/* ---- listening ---- */

static void listen_anew(struct legacy_stream *stream);

static void legacy_stream_on_retry(void *context)
{
    listen_anew(legacy_stream_from(context));
}

static void listen_later(struct legacy_stream *stream)
{
    loop_timer_start(&stream->retry, stream->pause_ms);
    stream->pause_ms = stream->pause_ms * 2 < PAUSE_MOST_MS ? stream->pause_ms * 2 : PAUSE_MOST_MS;
}

static void report_cover(const struct legacy_stream *stream, struct str honoured);

static void on_stream_listener_opened(void *context, struct str honoured)
{
    struct legacy_stream *stream = legacy_stream_from(context);
    ASSERT(stream->next);
    listener_stop(stream->listener);
    stream->listener = stream->next;
    stream->next = NULL;
    report_cover(stream, honoured);
    stream->pause_ms = PAUSE_MS;
    if (stream->is_lost) /* changes while no listener was open are unknown */
        listener_notify_of_lists(stream->listener);
    stream->is_lost = false;
}

static void on_stream_news(void *context, struct str message)
{
    notify_message(legacy_stream_from(context), message);
}

/* A server that serves nothing ends the listener at once. It is asked again only when the session
 * wants something else. */
static void on_stream_listener_ended(void *context, const struct listener *listener)
{
    struct legacy_stream *stream = legacy_stream_from(context);
    bool was_new = listener == stream->next;
    ASSERT(was_new || listener == stream->listener);
    if (was_new)
        stream->next = NULL;
    else
        stream->listener = NULL;
    if (listener_is_empty(listener))
        return;
    stream->is_lost = stream->is_lost || !was_new;
    log_info("A bridged stream listens anew", LOG_TEXT("source", stream->call->source->id),
             LOG_NUMBER("in_ms", stream->pause_ms));
    listen_later(stream);
}

static void write_filter(const struct call *call, struct buffer *filter)
{
    OWNED_BUFFER(said);
    given_sessions_get(call->worker->gateway->given_sessions, str_from(call->source->id),
                       str_from(call->session), &said);
    struct str uris = json_member(buffer_str(&said), "uris");
    buffer_append_text(filter, "{\"toolsListChanged\":true,\"promptsListChanged\":true,"
                               "\"resourcesListChanged\":true");
    if (json_count(uris) > 0) {
        buffer_append_text(filter, ",\"resourceSubscriptions\":");
        buffer_append(filter, uris);
    }
    buffer_append_char(filter, '}');
}

static void listen_anew(struct legacy_stream *stream)
{
    static const struct listener_events events = {.opened = on_stream_listener_opened,
                                                  .message = on_stream_news,
                                                  .ended = on_stream_listener_ended};
    OWNED_BUFFER(filter);
    ASSERT(stream->number > 0); /* a listener feeds it */
    loop_timer_stop(&stream->retry);
    listener_stop(stream->next);
    write_filter(stream->call, &filter);
    server_listen(stream->call, buffer_str(&filter), &events, stream, &stream->next);
}

/* ---- which of the session's streams speaks ---- */

/* A message goes out on one stream of a session, and never on all of them (2025-11-25, "Multiple
 * Connections"): the newest has it. The others stay open, so that a client which holds two does
 * not begin them anew in turn, and one of them goes on when the newest has gone. */
static void fall_silent(struct legacy_stream *stream, const struct session_broadcast *broadcast)
{
    if (stream->number >= broadcast->number)
        return;
    stream->is_silent = true;
    loop_timer_stop(&stream->retry);
    listener_stop(stream->listener);
    listener_stop(stream->next);
    stream->listener = stream->next = NULL;
}

static void speak(struct legacy_stream *stream)
{
    static atomic_ullong numbers;
    stream->number = atomic_fetch_add(&numbers, 1) + 1;
    stream->is_silent = false;
    send_to_session(stream->call, fall_silent, stream->number);
    listen_anew(stream);
}

/* Of several that were silent each is newer than the one before it: the last one speaks. */
static void speak_again(struct legacy_stream *stream, const struct session_broadcast *broadcast)
{
    (void)broadcast;
    if (!stream->is_silent)
        return;
    stream->is_lost = true;
    speak(stream);
}

/* ---- the stream of a session ---- */

static void end_feed(struct legacy_stream *stream)
{
    quota_give_back(stream->call->worker->gateway->fed_streams, str_from(stream->key));
    if (!stream->is_silent)
        send_to_session(stream->call, speak_again, 0);
    loop_timer_stop(&stream->retry);
    listener_stop(stream->listener);
    listener_stop(stream->next);
}

static void drop_stream(struct call *call, void *object)
{
    struct legacy_stream *stream = legacy_stream_from(object);
    if (stream->number > 0)
        end_feed(stream);
    list_remove(&stream->node);
    atomic_fetch_sub(&call->worker->gateway->listening, 1);
    question_release(call->worker, stream->claimant);
    MAGIC_CLEAR(stream);
    free(stream);
}

void legacy_stream_open(struct call *call)
{
    struct legacy_stream *stream;
    http_stream_start(call->exchange, 200, headers_of_stream, HEADERS_OF_STREAM, -1);
    http_stream_flush(call->exchange);
    deferred_response_begin(call, &(struct deferred_options){.what = "", .has_stream = true});
    token_clock_start(call, NULL);
    stream = legacy_stream_begin(call);
    /* The connections bound it. */
    quota_take(call->worker->gateway->fed_streams, str_from(stream->key), INT64_MAX, INT64_MAX);
    stream->pause_ms = PAUSE_MS;
    loop_timer_init(&stream->retry, call->worker->loop, legacy_stream_on_retry, stream);
    speak(stream);
}

static void end_fed_stream(struct legacy_stream *stream, const struct session_broadcast *broadcast)
{
    (void)broadcast;
    legacy_stream_end(stream);
}

void legacy_stream_end_session(const struct call *call)
{
    send_to_session(call, end_fed_stream, 0);
}

/* ---- subscriptions of a session: changing what its streams listen to ---- */

#define ANSWER_MS 10000
/* So long the news of the resource are passed on, unless a stream of the session listens itself
 * before. */
#define HAND_OVER_MS 5000
/* And so long from then on: what the server said before may be under way. */
#define COVERED_MS 100

/* The listener that asks whether the server serves the resource. It outlives the call. */
struct subscription {
    uint32_t magic; /* SUBSCRIPTION_MAGIC */
    struct list
        handed_over; /* in worker.handovers, until a stream listens to the resource itself */
    struct call_part part;
    struct call *call; /* NULL once it is answered, or has gone */
    struct gateway *gateway;
    struct listener *listener;
    struct loop_timer timer; /* the end of the wait for the server, or of the handing over */
    char *source, *uri;
    char session[DIGEST_HEX_BYTES], key[CLIENT_KEY_BYTES];
};
#define SUBSCRIPTION_MAGIC 0x47575314

static inline struct subscription *subscription_from(void *context)
{
    return MAGIC_CAST(struct subscription, SUBSCRIPTION_MAGIC, context);
}

static void subscription_destroy(struct subscription *subscription)
{
    listener_stop(subscription->listener);
    loop_timer_stop(&subscription->timer);
    list_remove(&subscription->handed_over);
    free(subscription->source);
    free(subscription->uri);
    MAGIC_CLEAR(subscription);
    free(subscription);
}

static void drop_subscription(struct call *call, void *object)
{
    (void)call;
    subscription_destroy(subscription_from(object));
}

static const struct call_part_kind subscription_kind =
    CALL_PART_KIND(struct subscription, drop_subscription);

/* The call goes on to its answer by itself. */
static struct call *let_call_go(struct subscription *subscription)
{
    struct call *call = subscription->call;
    ASSERT(call);
    call_part_remove(&subscription->part);
    subscription->call = NULL;
    return call;
}

static void on_subscription_timer(void *context)
{
    struct subscription *subscription = subscription_from(context);
    struct call *call = subscription->call ? let_call_go(subscription) : NULL;
    subscription_destroy(subscription);
    if (call)
        call_answer_error(call, JSONRPC_UPSTREAM_TIMEOUT, STR_EMPTY, NULL);
}

/* ---- what the session's streams listen to from now on ---- */

static void legacy_stream_renew(struct legacy_stream *stream,
                                const struct session_broadcast *broadcast)
{
    (void)broadcast;
    if (!stream->is_silent)
        listen_anew(stream);
}

static void change_subscriptions(struct call *call, bool is_wanted)
{
    if (!given_sessions_subscribe(call->worker->gateway->given_sessions, str_from(call->source->id),
                                  str_from(call->session), call->envelope.uri.text, is_wanted)) {
        call_answer_error(call, JSONRPC_RATE_LIMITED, STR("The session has too many subscriptions"),
                          NULL);
        return;
    }
    send_to_session(call, legacy_stream_renew, 0);
    call_store_session_then_answer(call);
}

static void refuse_subscription(struct call *call)
{
    call_answer_error(call, JSONRPC_INVALID_PARAMS,
                      STR("The server does not tell of changes of this resource"), NULL);
}

static bool covers(struct str honoured, const char *uri)
{
    return json_has_text(json_member(honoured, "resourceSubscriptions"), str_from(uri));
}

static void deliver_cover(struct gateway_worker *worker, const void *message)
{
    const struct session_broadcast *broadcast = message;
    LIST_FOR_EACH_SAFE (node, next, &worker->handovers) {
        struct subscription *subscription = LIST_ENTRY(node, struct subscription, handed_over);
        if (str_equal(broadcast->key, str_from(subscription->key)) &&
            covers(broadcast->message, subscription->uri))
            loop_timer_start(&subscription->timer, COVERED_MS);
    }
}

static void report_cover(const struct legacy_stream *stream, struct str honoured)
{
    static const struct broadcast_kind kind = {
        .bytes = sizeof(struct session_broadcast), .texts = 2, .deliver = deliver_cover};
    if (json_count(json_member(honoured, "resourceSubscriptions")) > 0)
        broadcast_send(
            stream->call->worker->gateway, &kind,
            &(struct session_broadcast){.key = str_from(stream->key), .message = honoured});
}

/* ---- asking the server ---- */

/* Without a stream nobody is to be notified. One that is opened later listens by itself. */
static void hand_subscription_over(struct subscription *subscription, const struct call *call)
{
    bool is_needed = quota_has(call->worker->gateway->fed_streams, str_from(subscription->key));
    if (is_needed)
        list_append(&call->worker->handovers, &subscription->handed_over);
    loop_timer_start(&subscription->timer, is_needed ? HAND_OVER_MS : 0);
}

static void on_subscription_opened(void *context, struct str honoured)
{
    struct subscription *subscription = subscription_from(context);
    struct call *call = let_call_go(subscription);
    if (covers(honoured, subscription->uri)) {
        hand_subscription_over(subscription, call);
        change_subscriptions(call, true);
    } else {
        loop_timer_start(&subscription->timer, 0);
        refuse_subscription(call);
    }
}

/* The session may have unsubscribed meanwhile. */
static bool is_subscribed(const struct subscription *subscription)
{
    OWNED_BUFFER(said);
    given_sessions_get(subscription->gateway->given_sessions, str_from(subscription->source),
                       str_from(subscription->session), &said);
    return json_has_text(json_member(buffer_str(&said), "uris"), str_from(subscription->uri));
}

/* Also where the stream listens to the resource itself by now: it may have begun to after this
 * message was sent. A change that is notified twice does no harm. */
static void pass_on(struct legacy_stream *stream, const struct session_broadcast *broadcast)
{
    if (!stream->is_silent)
        notify_message(stream, broadcast->message);
}

static void on_subscription_news(void *context, struct str message)
{
    const struct subscription *subscription = subscription_from(context);
    struct str uri = str_from(subscription->uri);
    if (!json_string_equals(json_member(message, "method"),
                            STR("notifications/resources/updated")) ||
        !json_string_equals(json_path(message, "params", "uri"), uri) ||
        !is_subscribed(subscription))
        return;
    broadcast_send(subscription->gateway, &session_kind,
                   &(struct session_broadcast){
                       .key = str_from(subscription->key), .message = message, .act = pass_on});
}

static void on_subscription_ended(void *context, const struct listener *listener)
{
    struct subscription *subscription = subscription_from(context);
    struct call *call = subscription->call ? let_call_go(subscription) : NULL;
    (void)listener;
    subscription->listener = NULL;
    subscription_destroy(subscription);
    if (call)
        refuse_subscription(call);
}

static void subscribe_session(struct call *call)
{
    static const struct listener_events events = {.opened = on_subscription_opened,
                                                  .message = on_subscription_news,
                                                  .ended = on_subscription_ended};
    struct subscription *subscription = memory_alloc(sizeof *subscription);
    OWNED_BUFFER(filter);
    MAGIC_SET(subscription, SUBSCRIPTION_MAGIC);
    list_init(&subscription->handed_over);
    subscription->call = call;
    subscription->gateway = call->worker->gateway;
    subscription->source = memory_copy_text(call->source->id);
    subscription->uri = memory_copy_str(call->envelope.uri.text);
    memcpy(subscription->session, call->session, sizeof subscription->session);
    client_key_of_call(call, subscription->key);
    loop_timer_init(&subscription->timer, call->worker->loop, on_subscription_timer, subscription);
    loop_timer_start(&subscription->timer, ANSWER_MS);
    call_part_add(call, &subscription->part, &subscription_kind);
    buffer_append_text(&filter, "{\"resourceSubscriptions\":[");
    buffer_append_json_string(&filter, call->envelope.uri.text);
    buffer_append_text(&filter, "]}");
    server_listen(call, buffer_str(&filter), &events, subscription, &subscription->listener);
}

bool client_stream_takes(struct call *call)
{
    struct str method = call->envelope.method;
    if (call->declared.length == 0)
        return false; /* the session is the server's */
    if (str_equal(method, STR("resources/subscribe")))
        subscribe_session(call);
    else if (str_equal(method, STR("resources/unsubscribe")))
        change_subscriptions(call, false);
    else
        return false;
    return true;
}

/* ---- what the gateway itself has to say ---- */

/* Whether the stream is the owner's. Anonymous clients cannot be told apart, so only the id
 * protects their tasks. */
static bool is_owners(const struct legacy_stream *stream, const struct task *task)
{
    return strcmp(task->owner, OWNER_ANONYMOUS) != 0 && call_owns(stream->call, task);
}

void client_streams_send_view(struct gateway_worker *worker, struct task *task,
                              const struct dialect_view *shared)
{
    LIST_FOR_EACH_SAFE (node, next, &worker->streams) {
        struct legacy_stream *stream = LIST_ENTRY(node, struct legacy_stream, node);
        struct call *call = stream->call;
        if (!call->facts.server.has_task_status || !is_owners(stream, task))
            continue;
        struct dialect_view view = *shared;
        OWNED_BUFFER(data);
        OWNED_BUFFER(events);
        view.pending = client_pending_look(call);
        dialect_write_status_event(&data, task, &view, clock_now_ms());
        sse_write_event(&events, STR("task_status"), STR_EMPTY, buffer_str(&data));
        buffer_clear(&data);
        dialect_write_status_notification(&data, task, &view);
        sse_write_event(&events, STR_EMPTY, STR_EMPTY, buffer_str(&data));
        notify_events(stream, buffer_str(&events));
    }
}

void client_streams_send_status(struct gateway_worker *worker, struct task *task)
{
    struct dialect_view view = {.is_asking = false};
    OWNED_BUFFER(elicitations);
    if (list_is_empty(&worker->streams))
        return;
    question_view(worker->gateway, task, &view, &elicitations);
    client_streams_send_view(worker, task, &view);
}

void client_streams_offer(struct gateway_worker *worker, const struct task *task)
{
    LIST_FOR_EACH_SAFE (node, next, &worker->streams) {
        struct legacy_stream *stream = LIST_ENTRY(node, struct legacy_stream, node);
        const struct call *call = stream->call;
        if (client_knows_tasks(call) || !is_owners(stream, task) ||
            strcmp(call->session, task->session) != 0)
            continue;
        offer_questions(stream, task);
    }
}

void client_streams_offer_client(struct gateway_worker *worker, struct str key)
{
    LIST_FOR_EACH_SAFE (node, next, &worker->streams) {
        struct legacy_stream *stream = LIST_ENTRY(node, struct legacy_stream, node);
        if (str_equal(str_from(stream->key), key))
            offer_questions(stream, NULL);
    }
}

void client_streams_send(struct gateway_worker *worker, uint64_t claimant, struct str message)
{
    LIST_FOR_EACH_SAFE (node, next, &worker->streams) {
        struct legacy_stream *stream = LIST_ENTRY(node, struct legacy_stream, node);
        if (stream->claimant != claimant)
            continue;
        OWNED_BUFFER(event);
        sse_write_event(&event, STR_EMPTY, STR_EMPTY, message);
        relay_put(stream->call, buffer_str(&event));
        return;
    }
}

void client_streams_send_owner(struct gateway_worker *worker, struct task *task, struct str message)
{
    LIST_FOR_EACH_SAFE (node, next, &worker->streams) {
        struct legacy_stream *stream = LIST_ENTRY(node, struct legacy_stream, node);
        if (is_owners(stream, task))
            notify_message(stream, message);
    }
}

void client_streams_send_list_changed(struct gateway_worker *worker)
{
    LIST_FOR_EACH_SAFE (node, next, &worker->streams) {
        notify_message(LIST_ENTRY(node, struct legacy_stream, node),
                       STR("{\"jsonrpc\":\"2.0\",\"method\":\"" MCP_TOOLS_CHANGED "\"}"));
    }
}

void client_streams_end_all(struct gateway_worker *worker)
{
    LIST_FOR_EACH_SAFE (node, next, &worker->streams) {
        legacy_stream_end(LIST_ENTRY(node, struct legacy_stream, node));
    }
}
