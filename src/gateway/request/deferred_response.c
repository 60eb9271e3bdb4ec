/* Calls that are held. */
#include "deferred_response.h"

#include <stdlib.h>

#include "call_part.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/memory.h"
#include "taskgate/mcp/sse.h"

#define SIGN_OF_LIFE_MS 15000
/* What a client that does not read may make wait for it. */
#define BACKLOG_BYTES ((size_t)256 * 1024)

struct held {
    struct call_part part;
    struct call *call;
    const char *what;
    struct str task_id; /* owned; a client's word, so it may hold NUL */
    struct loop_timer timer;
    int64_t started_ms;
    bool is_stream; /* begun */
    bool awaits_upstream;
    bool upstream_reports; /* upstream's own progress has been passed on this token */
};

static void drop(struct call *call, void *object)
{
    struct held *held = object;
    loop_timer_stop(&held->timer);
    free((char *)held->task_id.bytes);
    free(held);
}

static const struct call_part_kind held_kind = CALL_PART_KIND(struct held, drop);

static struct held *held_of(const struct call *call)
{
    return call_part_get(call, &held_kind);
}

bool held_is(const struct call *call)
{
    return call_part_find(call, &held_kind) != NULL;
}

void held_end(struct call *call)
{
    struct held *held = call_part_find(call, &held_kind);
    if (!held)
        return;
    call_part_remove(&held->part);
    drop(call, held);
}

bool held_may_stream(const struct call *call)
{
    struct str accept = http_header(call->exchange, "accept");
    while (call->envelope.id.length > 0 && accept.length > 0) {
        struct str range, media, parameters;
        str_cut(accept, ',', &range, &accept);
        str_cut(range, ';', &media, &parameters);
        if (str_equal_ignore_case(str_trim(media), STR("text/event-stream")))
            return true;
    }
    return false;
}

bool held_is_stream(const struct call *call)
{
    const struct held *held = call_part_find(call, &held_kind);
    return held && held->is_stream;
}

static void write_message(struct call *call, struct str message)
{
    struct buffer event;
    buffer_init(&event);
    sse_write_event(&event, STR_EMPTY, STR_EMPTY, message);
    http_stream_write(call->exchange, buffer_str(&event));
    buffer_finish(&event);
}

/* A comment keeps proxies from closing the stream; a client's own clock starts again only on
 * progress, which must rise. */
static void show_life(struct held *held)
{
    struct call *call = held->call;
    struct str token = call->envelope.progress_token;
    if (token.length > 0 && !held->upstream_reports) {
        struct buffer message;
        int64_t seconds = (clock_monotonic_ms() - held->started_ms) / 1000;
        buffer_init(&message);
        dialect_write_progress(&message, token, seconds, str_from(held->what), held->task_id);
        write_message(call, buffer_str(&message));
        buffer_finish(&message);
    }
    http_stream_write(call->exchange, STR(":ping\n\n"));
}

static void on_sign_of_life(void *context)
{
    struct held *held = context;
    loop_timer_start(&held->timer, SIGN_OF_LIFE_MS);
    held_open(held->call);
    show_life(held);
}

void held_open(struct call *call)
{
    struct held *held = held_of(call);
    struct http_header headers[] = {
        {STR("content-type"), STR("text/event-stream")},
        {STR("cache-control"), STR("no-cache")},
    };
    if (held->is_stream || !held_may_stream(call))
        return;
    held->is_stream = true;
    http_stream_start(call->exchange, 200, headers, 2, -1);
    http_stream_flush(call->exchange);
    loop_timer_start(&held->timer, SIGN_OF_LIFE_MS);
}

void held_show_progress(struct call *call)
{
    held_open(call);
    if (held_is_stream(call))
        show_life(held_of(call));
}

void held_open_late(struct call *call)
{
    struct held *held = held_of(call);
    if (!held->is_stream && held_may_stream(call))
        loop_timer_start(&held->timer, SIGN_OF_LIFE_MS);
}

void held_begin(struct call *call, const char *what, struct str task_id)
{
    struct held *held = memory_alloc(sizeof *held);
    held->call = call;
    held->what = what;
    held->task_id = str_slice(memory_copy_str(task_id), task_id.length);
    held->started_ms = clock_monotonic_ms();
    loop_timer_init(&held->timer, call->worker->loop, on_sign_of_life, held);
    held_end(call);
    call_part_add(call, &held->part, &held_kind);
}

void held_take_stream(struct call *call, const char *what)
{
    held_begin(call, what, STR_EMPTY);
    struct held *held = held_of(call);
    held->is_stream = held->upstream_reports = true;
    loop_timer_start(&held->timer, SIGN_OF_LIFE_MS);
}

void held_await_upstream(struct call *call)
{
    held_of(call)->awaits_upstream = true;
}

bool held_awaits_upstream(const struct call *call)
{
    const struct held *held = call_part_find(call, &held_kind);
    return held && held->awaits_upstream;
}

void held_pass_progress(struct call *call, struct str message)
{
    if (!held_is_stream(call) || http_stream_backlog(call->exchange) > BACKLOG_BYTES)
        return; /* progress is a courtesy: the next one says more */
    held_of(call)->upstream_reports = true;
    write_message(call, message);
}

void held_pass(struct call *call, struct str message)
{
    if (held_is_stream(call) && http_stream_backlog(call->exchange) <= BACKLOG_BYTES)
        write_message(call, message);
}

void held_answer(struct call *call, struct str message)
{
    struct http_exchange *exchange = call->exchange;
    if (message.length > 0)
        write_message(call, message);
    http_on_gone(exchange, NULL, NULL);
    call_ref(call);
    call_ended(call);
    http_stream_end(exchange);
    call_unref(call);
}
