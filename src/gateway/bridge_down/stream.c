/* Notifications of a legacy server for a modern client that listens. */
#include "stream.h"

#include <stdlib.h>

#include "call/call.h"
#include "server/sessions.h"
#include "taskgate/core/magic.h"
#include "taskgate/core/memory.h"
#include "taskgate/json/text.h"

/* So many resources one stream subscribes to; the others are left out of what is honoured. */
#define MOST_RESOURCES 256

struct bridge_stream {
    uint32_t magic; /* BRIDGE_STREAM_MAGIC */
    struct call_part part;
    struct call *call;
    const struct bridge_stream_events *events;
    struct buffer filter;
    struct legacy_session *session; /* NULL before it is there */
    struct exchange *exchange;      /* the subscription under way */
    struct buffer uri;              /* JSON text: of which resource */
    size_t position, count;         /* in the filter's list; subscriptions that were made */
    struct buffer uris;             /* JSON texts with commas: the resources subscribed to */
    bool is_open;
};
#define BRIDGE_STREAM_MAGIC 0x47574256

static inline struct bridge_stream *bridge_stream_from(void *context)
{
    return MAGIC_CAST(struct bridge_stream, BRIDGE_STREAM_MAGIC, context);
}

/* The end of the session is the end of its subscriptions. */
static void drop(struct call *call, void *object)
{
    struct bridge_stream *stream = bridge_stream_from(object);
    (void)call;
    exchange_abandon(stream->exchange);
    if (stream->session) {
        session_pool_retire(stream->session);
        session_pool_give_back(stream->session);
    }
    buffer_finish(&stream->filter);
    buffer_finish(&stream->uri);
    buffer_finish(&stream->uris);
    MAGIC_CLEAR(stream);
    free(stream);
}

static const struct call_part_kind bridge_stream_kind = CALL_PART_KIND(struct bridge_stream, drop);

/* ---- what comes on the stream ---- */

/* The notifications, the members of the filter that ask for them, and the capabilities that
 * announce them. */
static const struct news {
    const char *method, *wanted, *capability, *announced;
} all_news[] = {
    {"notifications/tools/list_changed", "toolsListChanged", "tools", "listChanged"},
    {"notifications/prompts/list_changed", "promptsListChanged", "prompts", "listChanged"},
    {"notifications/resources/list_changed", "resourcesListChanged", "resources", "listChanged"},
};
#define NEWS_COUNT (sizeof all_news / sizeof *all_news)

static bool is_served(const struct bridge_stream *stream, const struct news *news)
{
    struct str initialized = buffer_str(&stream->session->initialized);
    return json_type(json_member(buffer_str(&stream->filter), news->wanted)) == JSON_TRUE &&
           json_type(json_path(initialized, "capabilities", news->capability, news->announced)) ==
               JSON_TRUE;
}

static bool is_wanted(const struct bridge_stream *stream, struct str message)
{
    struct str method = json_member(message, "method");
    for (size_t i = 0; i < NEWS_COUNT; i++) {
        if (json_string_equals(method, str_from(all_news[i].method)))
            return is_served(stream, &all_news[i]);
    }
    return stream->count > 0 && json_string_equals(method, STR("notifications/resources/updated"));
}

static void on_message(void *context, struct str message)
{
    struct bridge_stream *stream = bridge_stream_from(context);
    legacy_session_answer_stray(stream->session, message);
    if (stream->is_open && json_member(message, "id").length == 0 && is_wanted(stream, message))
        stream->events->message(stream->call, message);
}

static void on_stream_end(void *context)
{
    struct bridge_stream *stream = bridge_stream_from(context);
    if (stream->is_open)
        stream->events->ended(stream->call);
}

/* ---- opening ---- */

static void write_honoured(const struct bridge_stream *stream, struct buffer *out)
{
    char before = '{';
    for (size_t i = 0; i < NEWS_COUNT; i++) {
        if (!is_served(stream, &all_news[i]))
            continue;
        buffer_append_format(out, "%c\"%s\":true", before, all_news[i].wanted);
        before = ',';
    }
    if (stream->count > 0) {
        buffer_append_format(out, "%c\"resourceSubscriptions\":[", before);
        buffer_append(out, buffer_str(&stream->uris));
        buffer_append_char(out, ']');
        before = ',';
    }
    buffer_append_text(out, before == '{' ? "{}" : "}");
}

static void open(struct bridge_stream *stream)
{
    struct buffer honoured;
    buffer_init(&honoured);
    write_honoured(stream, &honoured);
    stream->is_open = true;
    stream->events->open(stream->call, buffer_str(&honoured));
    buffer_finish(&honoured);
}

static bool is_visible(const struct bridge_stream *stream, struct str uri)
{
    struct buffer text;
    buffer_init(&text);
    bool is_visible = json_decode_string(uri, &text) &&
                      stream->events->is_visible(stream->call, buffer_str(&text));
    buffer_finish(&text);
    return is_visible;
}

static void subscribe_next(struct bridge_stream *stream);

static void on_subscribed(void *context, const struct exchange_reply *reply)
{
    struct bridge_stream *stream = bridge_stream_from(context);
    stream->exchange = NULL;
    if (json_member(reply->message, "result").length > 0) {
        buffer_append_text(&stream->uris, stream->count > 0 ? "," : "");
        buffer_append(&stream->uris, buffer_str(&stream->uri));
        stream->count++;
    }
    subscribe_next(stream);
}

static void subscribe(struct bridge_stream *stream, struct str uri)
{
    static const struct exchange_events events = {.reply = on_subscribed};
    struct sending sending = legacy_session_sending(stream->session);
    struct buffer params = {0}, body = {0}, id = {0};
    buffer_clear(&stream->uri);
    buffer_append(&stream->uri, uri);
    buffer_append_text(&params, "{\"uri\":");
    buffer_append(&params, uri);
    buffer_append_char(&params, '}');
    exchange_write_request(&body, &id, "resources/subscribe", buffer_str(&params));
    sending.body = buffer_str(&body);
    sending.id = buffer_str(&id);
    stream->exchange = exchange_send(stream->call->worker, &sending, &events, stream);
    buffer_finish(&params);
    buffer_finish(&body);
    buffer_finish(&id);
}

/* One after the other: the acknowledgement comes after the last reply. */
static void subscribe_next(struct bridge_stream *stream)
{
    struct str uris = json_member(buffer_str(&stream->filter), "resourceSubscriptions"), uri;
    while (stream->count < MOST_RESOURCES && json_next_element(uris, &stream->position, &uri)) {
        if (is_visible(stream, uri)) {
            subscribe(stream, uri);
            return;
        }
    }
    open(stream);
}

static bool can_subscribe(const struct bridge_stream *stream)
{
    struct str initialized = buffer_str(&stream->session->initialized);
    return json_type(json_path(initialized, "capabilities", "resources", "subscribe")) == JSON_TRUE;
}

static void begin(struct call *call)
{
    struct bridge_stream *stream = call_part_get(call, &bridge_stream_kind);
    stream->session = session_pool_take(call);
    if (stream->session->stream_state != LEGACY_STREAM_OPEN) {
        stream->events->open(call, STR("{}"));
        return;
    }
    stream->session->listener = on_message;
    stream->session->listener_ended = on_stream_end;
    stream->session->listener_context = stream;
    if (can_subscribe(stream))
        subscribe_next(stream);
    else
        open(stream);
}

void bridge_down_listen(struct call *call, struct str filter,
                        const struct bridge_stream_events *events)
{
    struct bridge_stream *stream = memory_alloc(sizeof *stream);
    MAGIC_SET(stream, BRIDGE_STREAM_MAGIC);
    stream->call = call;
    stream->events = events;
    buffer_append(&stream->filter, filter);
    call_part_add(call, &stream->part, &bridge_stream_kind);
    session_pool_then(call, begin);
}
