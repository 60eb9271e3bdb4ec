/* Listeners at servers of both eras. */
#include "listen.h"

#include <stdlib.h>

#include "catalogue.h"
#include "http.h"
#include "own.h"
#include "sessions.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/magic.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/era.h"
#include "taskgate/mcp/subscription.h"

#define RESOURCE_UPDATED "notifications/resources/updated"
/* So many resources a listener subscribes to at a legacy server; the others are left out of what is
 * honoured. */
#define MOST_RESOURCES 256

struct listener {
    uint32_t magic; /* LISTENER_MAGIC */
    struct gateway_worker *worker;
    struct snapshot *snapshot;
    const struct config_source *source; /* of the snapshot */
    const struct listener_events *events;
    void *context;
    struct exchange *exchange; /* the listen, or the subscription under way */
    struct buffer honoured;    /* JSON object; empty: not opened yet */
    bool is_inside;            /* a message of the server is being passed on */
    bool is_stopped;           /* during that, or at the end */
    struct loop_timer end;     /* then it ends after it */

    /* ---- at a legacy server ---- */
    struct call_part part;
    struct call *call; /* NULL when it has ended */
    struct buffer filter;
    struct opened_session *session; /* NULL before it is there */
    size_t position, count;         /* in the filter's list; subscriptions that were made */
    struct buffer uri;              /* JSON text: of the subscription under way */
    struct buffer uris;             /* JSON texts with commas: the resources subscribed to */
};
#define LISTENER_MAGIC 0x47574c12

static inline struct listener *listener_from(void *context)
{
    return MAGIC_CAST(struct listener, LISTENER_MAGIC, context);
}

/* The end of the session is the end of its subscriptions. */
static void listener_destroy(struct listener *listener)
{
    ASSERT(!listener->is_inside);
    if (listener->call)
        call_part_remove(&listener->part);
    exchange_abandon(listener->exchange);
    if (listener->session) {
        session_pool_retire(listener->session);
        session_pool_give_back(listener->session);
    }
    loop_timer_stop(&listener->end);
    buffer_finish(&listener->honoured);
    buffer_finish(&listener->filter);
    buffer_finish(&listener->uri);
    buffer_finish(&listener->uris);
    snapshot_unref(listener->snapshot);
    MAGIC_CLEAR(listener);
    free(listener);
}

static void listener_on_end(void *context)
{
    listener_destroy(listener_from(context));
}

void listener_stop(struct listener *listener)
{
    if (!listener || listener->is_stopped)
        return;
    listener->is_stopped = true;
    if (listener->is_inside)
        loop_timer_start(&listener->end, 0);
    else
        listener_destroy(listener);
}

/* Its owner need not stop it any more. */
static void listener_conclude(struct listener *listener)
{
    bool was_stopped = listener->is_stopped;
    ASSERT(!listener->exchange);
    listener->is_stopped = true;
    if (!was_stopped)
        listener->events->ended(listener->context, listener);
    listener_destroy(listener);
}

bool listener_is_empty(const struct listener *listener)
{
    struct str honoured = buffer_str(&listener->honoured), key, value;
    for (size_t position = 0; json_next_member(honoured, &position, &key, &value);) {
        if (json_type(value) == JSON_TRUE || json_count(value) > 0)
            return false;
    }
    return honoured.length > 0;
}

/* ---- what the server says ---- */

/* The notifications of lists, the members of the filter that ask for them, and the capabilities
 * with which a legacy server announces them. */
static const struct list_news {
    const char *method, *wanted, *capability;
} all_list_news[] = {
    {MCP_TOOLS_CHANGED, "toolsListChanged", "tools"},
    {"notifications/prompts/list_changed", "promptsListChanged", "prompts"},
    {"notifications/resources/list_changed", "resourcesListChanged", "resources"},
};
#define LIST_NEWS_COUNT (sizeof all_list_news / sizeof *all_list_news)

static const struct list_news *list_news_of(struct str method)
{
    for (size_t i = 0; i < LIST_NEWS_COUNT; i++) {
        if (json_string_equals(method, str_from(all_list_news[i].method)))
            return &all_list_news[i];
    }
    return NULL;
}

void listener_notify_of_lists(const struct listener *listener)
{
    struct str honoured = buffer_str(&listener->honoured);
    for (size_t i = 0; i < LIST_NEWS_COUNT; i++) {
        OWNED_BUFFER(message);
        if (json_type(json_member(honoured, all_list_news[i].wanted)) != JSON_TRUE)
            continue;
        buffer_append_format(&message, "{\"jsonrpc\":\"2.0\",\"method\":\"%s\"}",
                             all_list_news[i].method);
        listener->events->message(listener->context, buffer_str(&message));
    }
}

/* `uri` is a JSON text. */
static bool listener_may_see(const struct listener *listener, struct str uri)
{
    OWNED_BUFFER(text);
    return json_decode_string(uri, &text) &&
           policy_is_uri_visible(listener->snapshot->policy, listener->source, buffer_str(&text));
}

static bool is_update(const struct listener *listener, struct str method, struct str message)
{
    return json_string_equals(method, STR(RESOURCE_UPDATED)) &&
           listener_may_see(listener, json_path(message, "params", "uri"));
}

static void listen_listener_open(struct listener *listener, struct str honoured)
{
    ASSERT(listener->honoured.length == 0 && !listener->is_stopped);
    buffer_append(&listener->honoured, honoured);
    listener->events->opened(listener->context, buffer_str(&listener->honoured));
}

/* ---- at a modern server ---- */

static void pass_news(struct listener *listener, struct str message)
{
    OWNED_BUFFER(plain);
    struct str method = json_member(message, "method");
    if (!list_news_of(method) && !is_update(listener, method, message))
        return;
    if (json_string_equals(method, STR(MCP_TOOLS_CHANGED)))
        tools_fetch_changed(listener->worker->gateway, str_from(listener->source->id));
    mcp_write_bare_notification(&plain, message);
    listener->events->message(listener->context, buffer_str(&plain));
}

static void on_listen_message(void *context, struct str message)
{
    struct listener *listener = listener_from(context);
    if (listener->is_stopped)
        return;
    listener->is_inside = true;
    if (listener->honoured.length > 0) {
        pass_news(listener, message);
    } else if (json_string_equals(json_member(message, "method"), STR(MCP_ACKNOWLEDGED))) {
        struct str honoured = json_path(message, "params", "notifications");
        listen_listener_open(listener, json_type(honoured) == JSON_OBJECT ? honoured : STR("{}"));
    }
    listener->is_inside = false;
}

static void on_listen_reply(void *context, const struct exchange_reply *reply)
{
    struct listener *listener = listener_from(context);
    (void)reply;
    listener->exchange = NULL;
    listener_conclude(listener);
}

static void on_listen_dropped(void *context)
{
    on_listen_reply(context, NULL);
}

static void listen_at_modern(struct listener *listener, const struct call *call, struct str filter)
{
    static const struct exchange_events events = {.reply = on_listen_reply,
                                                  .server_message = on_listen_message,
                                                  .dropped = on_listen_dropped};
    OWNED_HEADERS(headers, true);
    OWNED_BUFFER(body);
    OWNED_BUFFER(id);
    OWNED_BUFFER(members);
    buffer_append_format(&members, "{\"notifications\":%.*s}", STR_ARGS(filter));
    client_request_write_own(call, "subscriptions/listen", buffer_str(&members), &headers, &body,
                             &id);
    const struct sending sending = {
        .source = call->source,
        .snapshot = call->snapshot,
        .headers = &headers,
        .body = buffer_str(&body),
        .id = buffer_str(&id),
        .most_bytes = (size_t)call->snapshot->config->limits.result_bytes,
    };
    listener->exchange = exchange_send(call->worker, &sending, &events, listener);
}

/* ---- at a legacy server ---- */

static bool announces(const struct listener *listener, const char *capability, const char *what)
{
    struct str initialized = buffer_str(&listener->session->initialized);
    return json_type(json_path(initialized, "capabilities", capability, what)) == JSON_TRUE;
}

static bool is_served(const struct listener *listener, const struct list_news *news)
{
    return json_type(json_member(buffer_str(&listener->filter), news->wanted)) == JSON_TRUE &&
           announces(listener, news->capability, "listChanged");
}

static bool is_wanted(const struct listener *listener, struct str method, struct str message)
{
    const struct list_news *news = list_news_of(method);
    return news ? is_served(listener, news)
                : listener->count > 0 && is_update(listener, method, message);
}

static void on_session_message(void *context, struct str message)
{
    struct listener *listener = listener_from(context);
    struct str method = json_member(message, "method");
    opened_session_answer_stray(listener->session, message);
    if (listener->is_stopped || listener->honoured.length == 0 ||
        json_member(message, "id").length > 0 || !is_wanted(listener, method, message))
        return;
    listener->is_inside = true;
    listener->events->message(listener->context, message);
    listener->is_inside = false;
}

static void on_session_stream_end(void *context)
{
    struct listener *listener = listener_from(context);
    if (listener->honoured.length > 0)
        listener_conclude(listener);
}

static void write_served(const struct listener *listener, struct buffer *out)
{
    char before = '{';
    for (size_t i = 0; i < LIST_NEWS_COUNT; i++) {
        if (!is_served(listener, &all_list_news[i]))
            continue;
        buffer_append_format(out, "%c\"%s\":true", before, all_list_news[i].wanted);
        before = ',';
    }
    if (listener->count > 0) {
        buffer_append_format(out, "%c\"resourceSubscriptions\":[", before);
        buffer_append(out, buffer_str(&listener->uris));
        buffer_append_char(out, ']');
        before = ',';
    }
    buffer_append_text(out, before == '{' ? "{}" : "}");
}

static void subscribe_next(struct listener *listener);

static void on_subscribed(void *context, const struct exchange_reply *reply)
{
    struct listener *listener = listener_from(context);
    listener->exchange = NULL;
    if (json_member(reply->message, "result").length > 0) {
        buffer_append_text(&listener->uris, listener->count > 0 ? "," : "");
        buffer_append(&listener->uris, buffer_str(&listener->uri));
        listener->count++;
    }
    subscribe_next(listener);
}

static void subscribe(struct listener *listener, struct str uri)
{
    static const struct exchange_events events = {.reply = on_subscribed};
    struct sending sending = opened_session_sending(listener->session);
    OWNED_BUFFER(params);
    OWNED_BUFFER(body);
    OWNED_BUFFER(id);
    ASSERT(!listener->exchange);
    ASSERT_NUMBERS(listener->count, <, MOST_RESOURCES);
    buffer_clear(&listener->uri);
    buffer_append(&listener->uri, uri);
    buffer_append_text(&params, "{\"uri\":");
    buffer_append(&params, uri);
    buffer_append_char(&params, '}');
    exchange_write_request(&body, &id, "resources/subscribe", buffer_str(&params));
    sending.body = buffer_str(&body);
    sending.id = buffer_str(&id);
    listener->exchange = exchange_send(listener->worker, &sending, &events, listener);
}

/* One after the other: what is honoured is known after the last reply. */
static void subscribe_next(struct listener *listener)
{
    struct str uris = json_member(buffer_str(&listener->filter), "resourceSubscriptions"), uri;
    OWNED_BUFFER(served);
    while (announces(listener, "resources", "subscribe") && listener->count < MOST_RESOURCES &&
           json_next_element(uris, &listener->position, &uri)) {
        if (listener_may_see(listener, uri)) {
            subscribe(listener, uri);
            return;
        }
    }
    write_served(listener, &served);
    listen_listener_open(listener, buffer_str(&served));
}

static void listener_on_call_end(struct call *call, void *object)
{
    struct listener *listener = listener_from(object);
    (void)call;
    listener->call = NULL;
}

static const struct call_part_kind listener_kind =
    CALL_PART_KIND(struct listener, listener_on_call_end);

static void begin_in_session(struct call *call)
{
    struct listener *listener = call_part_get(call, &listener_kind);
    listener->session = session_pool_take(call);
    if (listener->session->stream_state != SESSION_STREAM_OPEN) {
        listen_listener_open(listener, STR("{}"));
        return;
    }
    listener->session->listener = on_session_message;
    listener->session->listener_ended = on_session_stream_end;
    listener->session->listener_context = listener;
    subscribe_next(listener);
}

static void listen_at_legacy(struct listener *listener, struct call *call, struct str filter)
{
    listener->call = call;
    buffer_append(&listener->filter, filter);
    call_part_add(call, &listener->part, &listener_kind);
    session_pool_then(call, begin_in_session);
}

/* ---- the beginning ---- */

void server_listen(struct call *call, struct str filter, const struct listener_events *events,
                   void *context, struct listener **listener)
{
    struct listener *begun = memory_alloc(sizeof *begun);
    *begun = (struct listener){.worker = call->worker,
                               .snapshot = snapshot_ref(call->snapshot),
                               .source = call->source,
                               .events = events,
                               .context = context};
    MAGIC_SET(begun, LISTENER_MAGIC);
    loop_timer_init(&begun->end, call->worker->loop, listener_on_end, begun);
    *listener = begun;
    if (call_server_has_sessions(call))
        listen_at_legacy(begun, call, filter);
    else
        listen_at_modern(begun, call, filter);
}
