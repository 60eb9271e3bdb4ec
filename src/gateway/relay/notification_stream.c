/* Open GET streams and the messages on them. */
#include "notification_stream.h"

#include <stdlib.h>
#include <string.h>

#include "call/client_profile.h"
#include "call/deferred_response.h"
#include "conversation/question.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/magic.h"
#include "taskgate/core/memory.h"
#include "taskgate/mcp/sse.h"

/* How many bytes may wait for a client that does not read. */
#define WAITING_BYTES ((size_t)256 * 1024)

struct notification_stream {
    uint32_t magic; /* NOTIFICATION_STREAM_MAGIC */
    struct list node;
    struct loop_timer life;
    struct call *call;
    const bool *inside_event;
    struct buffer pending; /* whole events, which wait until the server's own is complete */
    uint64_t claimant;     /* its number once it carries questions */
};
#define NOTIFICATION_STREAM_MAGIC 0x47574c02

static void end_stream(void *context)
{
    struct call *call = ((struct notification_stream *)context)->call;
    struct http_exchange *exchange = call->exchange;
    http_on_gone(exchange, NULL, NULL);
    call_ended(call); /* closes the stream, too */
    http_stream_end(exchange);
}

void notification_stream_flush(struct notification_stream *stream)
{
    if (!stream || stream->pending.length == 0)
        return;
    http_stream_write(stream->call->exchange, buffer_str(&stream->pending));
    buffer_clear(&stream->pending);
}

static void put(struct notification_stream *stream, struct str events)
{
    buffer_append(&stream->pending, events);
    if (!*stream->inside_event)
        notification_stream_flush(stream);
}

/* NULL: all questions to this client. */
static void offer(struct notification_stream *stream, const struct task *task)
{
    struct buffer events;
    buffer_init(&events);
    question_claim(stream->call, task, &stream->claimant, &events);
    put(stream, buffer_str(&events));
    buffer_finish(&events);
}

static void tell(struct notification_stream *stream, struct str events)
{
    size_t backlog = http_stream_backlog(stream->call->exchange) + stream->pending.length;
    if (backlog > WAITING_BYTES)
        return; /* a notification is a courtesy; the task itself can be asked for */
    put(stream, events);
}

static void on_sign_of_life(void *context)
{
    struct notification_stream *stream =
        MAGIC_CAST(struct notification_stream, NOTIFICATION_STREAM_MAGIC, context);
    loop_timer_start(&stream->life, SIGN_OF_LIFE_MS);
    tell(stream, STR(":ping\n\n"));
}

struct notification_stream *notification_stream_open(struct call *call, const bool *inside_event)
{
    struct notification_stream *stream = memory_alloc(sizeof *stream);
    MAGIC_SET(stream, NOTIFICATION_STREAM_MAGIC);
    stream->call = call;
    stream->inside_event = inside_event;
    buffer_init(&stream->pending);
    loop_timer_init(&stream->life, call->worker->loop, on_sign_of_life, stream);
    loop_timer_start(&stream->life, SIGN_OF_LIFE_MS);
    list_append(&call->worker->streams, &stream->node);
    atomic_fetch_add(&call->worker->gateway->listening, 1);
    offer(stream, NULL);
    return stream;
}

void notification_stream_close(struct notification_stream *stream)
{
    if (!stream)
        return;
    loop_timer_stop(&stream->life);
    list_remove(&stream->node);
    atomic_fetch_sub(&stream->call->worker->gateway->listening, 1);
    question_release(stream->call->worker, stream->claimant);
    buffer_finish(&stream->pending);
    MAGIC_CLEAR(stream);
    free(stream);
}

/* Whether the stream is the owner's. Anonymous clients cannot be told apart, so only the id
 * protects their tasks. */
static bool is_owners(const struct notification_stream *stream, const struct task *task)
{
    return strcmp(task->owner, OWNER_ANONYMOUS) != 0 && call_owns(stream->call, task);
}

void notification_stream_send_view(struct gateway_worker *worker, struct task *task,
                                   const struct dialect_view *shared)
{
    LIST_FOR_EACH_SAFE (node, next, &worker->streams) {
        struct notification_stream *stream = LIST_ENTRY(node, struct notification_stream, node);
        struct call *call = stream->call;
        if (!call->facts.server.has_task_status || !is_owners(stream, task))
            continue;
        struct dialect_view view = *shared;
        struct buffer data, events;
        view.pending = client_pending_look(call);
        buffer_init(&data);
        buffer_init(&events);
        dialect_write_status_event(&data, task, &view, clock_now_ms());
        sse_write_event(&events, STR("task_status"), STR_EMPTY, buffer_str(&data));
        buffer_clear(&data);
        dialect_write_status_notification(&data, task, &view);
        sse_write_event(&events, STR_EMPTY, STR_EMPTY, buffer_str(&data));
        tell(stream, buffer_str(&events));
        buffer_finish(&events);
        buffer_finish(&data);
    }
}

void notification_stream_send_status(struct gateway_worker *worker, struct task *task)
{
    struct dialect_view view = {.is_asking = false};
    struct buffer elicitations;
    if (list_is_empty(&worker->streams))
        return;
    buffer_init(&elicitations);
    question_view(worker->gateway, task, &view, &elicitations);
    notification_stream_send_view(worker, task, &view);
    buffer_finish(&elicitations);
}

void notification_stream_offer(struct gateway_worker *worker, const struct task *task)
{
    LIST_FOR_EACH_SAFE (node, next, &worker->streams) {
        struct notification_stream *stream = LIST_ENTRY(node, struct notification_stream, node);
        const struct call *call = stream->call;
        if (client_knows_tasks(call) || !is_owners(stream, task) ||
            strcmp(call->session, task->session) != 0)
            continue;
        offer(stream, task);
    }
}

void notification_stream_offer_client(struct gateway_worker *worker, struct str key)
{
    char own_key[CLIENT_KEY_BYTES];
    LIST_FOR_EACH_SAFE (node, next, &worker->streams) {
        struct notification_stream *stream = LIST_ENTRY(node, struct notification_stream, node);
        client_key_of_call(stream->call, own_key);
        if (str_equal(str_from(own_key), key))
            offer(stream, NULL);
    }
}

void notification_stream_send(struct gateway_worker *worker, uint64_t claimant, struct str message)
{
    LIST_FOR_EACH_SAFE (node, next, &worker->streams) {
        struct notification_stream *stream = LIST_ENTRY(node, struct notification_stream, node);
        if (stream->claimant == claimant) {
            struct buffer event;
            buffer_init(&event);
            sse_write_event(&event, STR_EMPTY, STR_EMPTY, message);
            put(stream, buffer_str(&event));
            buffer_finish(&event);
            return;
        }
    }
}

static void tell_message(struct notification_stream *stream, struct str message)
{
    struct buffer event;
    buffer_init(&event);
    sse_write_event(&event, STR_EMPTY, STR_EMPTY, message);
    tell(stream, buffer_str(&event));
    buffer_finish(&event);
}

void notification_stream_send_owner(struct gateway_worker *worker, struct task *task,
                                    struct str message)
{
    LIST_FOR_EACH_SAFE (node, next, &worker->streams) {
        struct notification_stream *stream = LIST_ENTRY(node, struct notification_stream, node);
        if (is_owners(stream, task))
            tell_message(stream, message);
    }
}

void notification_stream_send_list_changed(struct gateway_worker *worker)
{
    LIST_FOR_EACH_SAFE (node, next, &worker->streams) {
        tell_message(LIST_ENTRY(node, struct notification_stream, node),
                     STR("{\"jsonrpc\":\"2.0\",\"method\":\"" MCP_TOOLS_CHANGED "\"}"));
    }
}

void notification_stream_end_all(struct gateway_worker *worker)
{
    LIST_FOR_EACH_SAFE (node, next, &worker->streams) {
        end_stream(LIST_ENTRY(node, struct notification_stream, node));
    }
}
