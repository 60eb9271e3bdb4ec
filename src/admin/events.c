/*
 * The live stream of changes: `event: task`, `id: n`, data a task; or `event: row`, data a row of
 * the inbox. A client that comes back with Last-Event-ID gets the missed changes of tasks that are
 * still kept. admin.c has the other events, which have no number.
 */
#include "events.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "taskgate/core/assert.h"
#include "taskgate/core/log.h"
#include "taskgate/core/magic.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/core/random.h"
#include "taskgate/store/replicas.h"

#include "feed.h"
#include "query.h"
#include "reply.h"
#include "task_json.h"

/* A reader that is so far behind is cut off; it may come back with Last-Event-ID. */
#define MAX_BACKLOG_BYTES ((size_t)8 * 1024 * 1024)
#define STREAMS_OF_PERSON 64 /* beyond it the oldest one ends */
#define MISSED_LIMIT 256     /* of missed changes, in one answer of the store */
/* Comments come after a time that differs per stream and round: a thousand streams that were
 * opened together, after a restart, must not all be written to in one burst. */
#define KEEP_ALIVE_MIN_MS 10000
#define KEEP_ALIVE_SPREAD_MS 5000

struct stream {
    uint32_t magic;   /* STREAM_MAGIC while it lives */
    struct list node; /* in admin->streams */
    struct admin *admin;
    struct http_exchange *exchange;
    struct feed_listener listener;
    struct loop_timer keep_alive;
    int64_t sent;          /* number of the last event */
    struct asking *asking; /* the store, for what was missed; NULL: nothing is awaited */
    struct operator_identity *who;
    bool has_rows; /* in place of tasks */
};
#define STREAM_MAGIC 0x5e7a11c3

/* A question to the store, which may outlive the stream. */
struct asking {
    struct stream *stream; /* NULL once it has gone */
};

static struct stream *stream_from(void *context)
{
    return MAGIC_CAST(struct stream, STREAM_MAGIC, context);
}

static void destroy_stream(struct stream *stream)
{
    list_remove(&stream->node);
    list_remove(&stream->listener.node);
    loop_timer_stop(&stream->keep_alive);
    if (stream->asking)
        stream->asking->stream = NULL;
    operator_unref(stream->who);
    MAGIC_CLEAR(stream);
    free(stream);
}

static void events_end_stream(struct stream *stream)
{
    http_stream_end(stream->exchange);
    destroy_stream(stream);
}

static void events_client_gone(void *context)
{
    destroy_stream(stream_from(context));
}

static void events_write_event(struct stream *stream, const struct feed_event *event,
                               struct config *config)
{
    const struct task_view view = {config, stream->who, stream->admin->worker};
    OWNED_BUFFER(text);
    buffer_append_format(&text,
                         "event: %s\nid: %" PRId64 "\ndata: ", stream->has_rows ? "row" : "task",
                         event->number);
    if (stream->has_rows)
        row_json_write_event(&text, event->task, &view);
    else
        task_json_write(&text, event->task, &view);
    buffer_append(&text, STR("\n\n"));
    http_stream_write(stream->exchange, buffer_str(&text));
}

/* Whether the reader may still read: the person, by the same credentials, on this connection. */
static bool events_renew(struct stream *stream, const struct config *config)
{
    struct operator_identity *now = operator_renew(stream->admin->extra_token_sha256, stream->who);
    operator_unref(stream->who);
    stream->who = now;
    return now && rights_of(now, ROUTE_events_open) == RIGHT_ALL &&
           client_certificate_suffices(stream->exchange, config);
}

/* Sends new changes. Ends the stream of a reader that lost its right or falls behind. Returns false
 * after that. */
static bool catch_up(struct stream *stream)
{
    struct snapshot *snapshot = snapshot_current();
    bool goes_on = snapshot && events_renew(stream, snapshot->config);
    const struct feed_event *event;
    while (goes_on && !stream->asking &&
           (event = feed_after(stream->admin->feed, stream->sent)) != NULL) {
        ASSERT_NUMBERS(event->number, >, stream->sent);
        events_write_event(stream, event, snapshot->config);
        stream->sent = event->number;
        goes_on = http_stream_backlog(stream->exchange) <= MAX_BACKLOG_BYTES;
    }
    if (!goes_on)
        events_end_stream(stream);
    snapshot_unref(snapshot);
    return goes_on;
}

static void events_feed_changed(struct feed_listener *listener)
{
    catch_up(LIST_ENTRY(listener, struct stream, listener));
}

/* Not later than the reader's credentials end. */
static void start_keep_alive(struct stream *stream)
{
    uint16_t random;
    random_bytes(&random, sizeof random);
    int64_t delay_ms = KEEP_ALIVE_MIN_MS + random % KEEP_ALIVE_SPREAD_MS;
    loop_timer_start(&stream->keep_alive, operator_delay_ms(stream->who, delay_ms));
}

static void keep_alive(void *context)
{
    struct stream *stream = stream_from(context);
    if (!catch_up(stream))
        return;
    http_stream_write(stream->exchange, STR(":\n\n"));
    start_keep_alive(stream);
}

/* ---- changes from another replica ---- */

static void events_ask(struct stream *stream);

static void take_missed(void *context, const struct store_reply *reply)
{
    struct asking *asking = context;
    struct stream *stream = asking->stream;
    free(asking);
    if (!stream)
        return;
    stream->asking = NULL;
    if (reply->status != STORE_OK) {
        events_end_stream(stream); /* it may come back with the same number */
        return;
    }
    struct snapshot *snapshot = snapshot_current();
    bool goes_on = snapshot && events_renew(stream, snapshot->config);
    for (size_t i = 0; goes_on && i < reply->task_count; i++) {
        stream->sent = reply->sequences[i];
        events_write_event(stream, &(struct feed_event){stream->sent, reply->tasks[i]},
                           snapshot->config);
        goes_on = http_stream_backlog(stream->exchange) <= MAX_BACKLOG_BYTES;
    }
    snapshot_unref(snapshot);
    if (stream->sent > reply->last_sequence) /* of another database */
        stream->sent = reply->last_sequence;
    if (!goes_on)
        events_end_stream(stream);
    else if (reply->has_more)
        events_ask(stream);
    else
        catch_up(stream);
}

static void events_ask(struct stream *stream)
{
    struct asking *asking = memory_alloc(sizeof *asking);
    asking->stream = stream;
    stream->asking = asking;
    store_feed_after(stream->admin->store, stream->sent, MISSED_LIMIT,
                     (struct store_call){stream->admin->loop, take_missed, asking});
}

/* The number of Last-Event-ID; without one, or with a malformed one, only new changes follow. */
static int64_t first_number(const struct request *request, bool *is_missing)
{
    uint64_t number;
    const struct feed *feed = request->admin->feed;
    int64_t last = feed_last_number(feed);
    bool is_given =
        str_to_u64(http_header(request->exchange, "last-event-id"), &number) && number <= INT64_MAX;
    *is_missing = is_given && !feed_reaches(feed, (int64_t)number);
    if (!is_given || (number > (uint64_t)last && !*is_missing))
        return last;
    return (int64_t)number;
}

/* Makes room for one more of the same person, by whatever credentials. */
static void end_excess(struct admin *admin, const struct operator_identity *who)
{
    struct stream *oldest = NULL;
    int count = 0;
    LIST_FOR_EACH_SAFE (node, next, &admin->streams) {
        struct stream *stream = LIST_ENTRY(node, struct stream, node);
        if (!person_is(&stream->who->person, &who->person))
            continue;
        oldest = oldest ? oldest : stream;
        count++;
    }
    if (count < STREAMS_OF_PERSON)
        return;
    log_warn("An event stream ends: its operator has opened too many",
             LOG_TEXT("person", who->person.name));
    events_end_stream(oldest);
}

static bool read_query(const struct request *request, bool *has_rows)
{
    OWNED_BUFFER(rows);
    bool is_read = query_read(&rows, http_query(request->exchange), "rows");
    struct str value = buffer_str(&rows);
    *has_rows = str_equal(value, STR("true"));
    is_read = is_read && (*has_rows || value.length == 0 || str_equal(value, STR("false")));
    if (!is_read)
        reply_error(request->exchange, REPLY_INVALID_REQUEST, "rows must be true or false", NULL);
    return is_read;
}

void events_open(const struct request *request)
{
    struct admin *admin = request->admin;
    bool has_rows;
    if (!read_query(request, &has_rows))
        return;
    if (admin->shutting_down) {
        reply_error(request->exchange, REPLY_UNAVAILABLE, "the gateway is shutting down", NULL);
        return;
    }
    end_excess(admin, request->who);
    struct stream *stream = memory_alloc(sizeof *stream);
    MAGIC_SET(stream, STREAM_MAGIC);
    stream->admin = admin;
    stream->exchange = request->exchange;
    stream->listener.changed = events_feed_changed;
    stream->has_rows = has_rows;
    bool is_missing;
    stream->sent = first_number(request, &is_missing);
    stream->who = operator_ref(request->who);
    list_append(&admin->streams, &stream->node);
    feed_listen(admin->feed, &stream->listener);
    loop_timer_init(&stream->keep_alive, admin->loop, keep_alive, stream);

    struct http_header headers[REPLY_MAX_HEADERS];
    size_t count = reply_headers("text/event-stream", headers);
    headers[count++] = (struct http_header){STR("cache-control"), STR("no-cache, no-transform")};
    headers[count++] = (struct http_header){STR("x-accel-buffering"), STR("no")};
    http_on_gone(request->exchange, events_client_gone, stream);
    http_stream_start(request->exchange, 200, headers, count, -1);
    http_stream_write(request->exchange, STR(": open\n\n"));
    if (is_missing)
        events_ask(stream);
    if (catch_up(stream))
        start_keep_alive(stream);
}

void events_renew_all(struct admin *admin)
{
    LIST_FOR_EACH_SAFE (node, next, &admin->streams) {
        catch_up(LIST_ENTRY(node, struct stream, node));
    }
}

void events_send(struct admin *admin, struct str event)
{
    LIST_FOR_EACH_SAFE (node, next, &admin->streams) {
        struct stream *stream = LIST_ENTRY(node, struct stream, node);
        if (!catch_up(stream))
            continue;
        http_stream_write(stream->exchange, event);
        if (http_stream_backlog(stream->exchange) > MAX_BACKLOG_BYTES)
            events_end_stream(stream);
    }
}

void events_end_of(struct admin *admin, const char *sha256)
{
    LIST_FOR_EACH_SAFE (node, next, &admin->streams) {
        struct stream *stream = LIST_ENTRY(node, struct stream, node);
        if (strcmp(stream->who->sha256, sha256) == 0)
            events_end_stream(stream);
    }
}

void events_visit_sessions(struct admin *admin,
                           void (*visit)(struct admin *admin, const char *sha256))
{
    LIST_FOR_EACH_SAFE (node, next, &admin->streams) {
        const struct stream *stream = LIST_ENTRY(node, struct stream, node);
        if (stream->who->is_session)
            visit(admin, stream->who->sha256);
    }
}

void events_end_all(struct admin *admin)
{
    LIST_FOR_EACH_SAFE (node, next, &admin->streams) {
        events_end_stream(LIST_ENTRY(node, struct stream, node));
    }
}
