/* Responses that come late: signs of life on the stream, then the answer. */
#include "deferred_response.h"

#include <stdlib.h>

#include "call.h"
#include "call_span.h"
#include "headers.h"
#include "refusal.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/magic.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"
#include "taskgate/core/owned.h"
#include "taskgate/mcp/sse.h"
#include "token_clock.h"

/* The bytes that may wait for a client that does not read. */
#define BACKLOG_BYTES ((size_t)256 * 1024)

struct deferred_response {
    uint32_t magic; /* DEFERRED_RESPONSE_MAGIC */
    struct call_part part;
    struct call *call;
    const char *what;
    struct str task_id; /* owned; a client's word, so it may hold NUL */
    struct loop_timer timer;
    int64_t started_ms;
    void (*stopped)(struct call *call); /* when the process ends, or NULL */
    bool is_stream;                     /* begun */
    bool awaits_upstream;
    bool upstream_reports; /* upstream's own progress has been passed on this token */
};
#define DEFERRED_RESPONSE_MAGIC 0x4757440b

static inline struct deferred_response *deferred_response_from(void *context)
{
    return MAGIC_CAST(struct deferred_response, DEFERRED_RESPONSE_MAGIC, context);
}

static void drop(struct call *call, void *object)
{
    struct deferred_response *deferred = object;
    loop_timer_stop(&deferred->timer);
    call_memory_give(call, (char *)deferred->task_id.bytes);
    MAGIC_CLEAR(deferred);
    call_memory_give(call, deferred);
}

static const struct call_part_kind deferred_response_kind =
    CALL_PART_KIND(struct deferred_response, drop);

static struct deferred_response *deferred_response_of(const struct call *call)
{
    return call_part_get(call, &deferred_response_kind);
}

bool deferred_response_is(const struct call *call)
{
    return call_part_find(call, &deferred_response_kind) != NULL;
}

void deferred_response_on_stop(struct call *call, void (*stopped)(struct call *call))
{
    deferred_response_of(call)->stopped = stopped;
}

bool deferred_response_is_held(const struct call *call)
{
    const struct deferred_response *deferred = call_part_find(call, &deferred_response_kind);
    return deferred && !deferred->awaits_upstream;
}

void deferred_response_stop(struct call *call)
{
    void (*stopped)(struct call * call) = deferred_response_of(call)->stopped;
    if (stopped)
        stopped(call);
}

void deferred_response_end(struct call *call)
{
    struct deferred_response *deferred = call_part_find(call, &deferred_response_kind);
    if (!deferred)
        return;
    call_part_remove(&deferred->part);
    drop(call, deferred);
}

bool deferred_response_may_stream(const struct call *call)
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

bool deferred_response_is_stream(const struct call *call)
{
    const struct deferred_response *deferred = call_part_find(call, &deferred_response_kind);
    return deferred && deferred->is_stream;
}

static void deferred_response_write_message(struct call *call, struct str message)
{
    OWNED_BUFFER(event);
    sse_write_event(&event, STR_EMPTY, STR_EMPTY, message);
    http_stream_write(call->exchange, buffer_str(&event));
}

/* A comment keeps proxies from closing the stream. Only progress restarts a client's own clock, and
 * progress must rise. */
static void show_life(struct deferred_response *deferred)
{
    struct call *call = deferred->call;
    struct str token = call->envelope.progress_token;
    if (token.length > 0 && !deferred->upstream_reports) {
        OWNED_BUFFER(message);
        int64_t seconds = (clock_monotonic_ms() - deferred->started_ms) / 1000;
        dialect_write_progress(&message, token, seconds, str_from(deferred->what),
                               deferred->task_id);
        deferred_response_write_message(call, buffer_str(&message));
    }
    http_stream_write(call->exchange, STR(":ping\n\n"));
}

static void deferred_response_on_sign_of_life(void *context)
{
    struct deferred_response *deferred = deferred_response_from(context);
    loop_timer_start(&deferred->timer, SIGN_OF_LIFE_MS);
    deferred_response_open(deferred->call);
    show_life(deferred);
}

void deferred_response_open(struct call *call)
{
    struct deferred_response *deferred = deferred_response_of(call);
    if (deferred->is_stream || !deferred_response_may_stream(call))
        return;
    deferred->is_stream = true;
    http_stream_start(call->exchange, 200, headers_of_stream, HEADERS_OF_STREAM, -1);
    http_stream_flush(call->exchange);
    /* The server's answer is delivered after the token's end, too. */
    if (!deferred->awaits_upstream)
        token_clock_start(call, NULL);
    loop_timer_start(&deferred->timer, SIGN_OF_LIFE_MS);
}

void deferred_response_show_progress(struct call *call)
{
    deferred_response_open(call);
    if (deferred_response_is_stream(call))
        show_life(deferred_response_of(call));
}

void deferred_response_open_late(struct call *call)
{
    struct deferred_response *deferred = deferred_response_of(call);
    if (!deferred->is_stream && deferred_response_may_stream(call))
        loop_timer_start(&deferred->timer, SIGN_OF_LIFE_MS);
}

void deferred_response_begin(struct call *call, const char *what, struct str task_id)
{
    struct deferred_response *deferred = call_memory_take(call, sizeof *deferred);
    MAGIC_SET(deferred, DEFERRED_RESPONSE_MAGIC);
    deferred->call = call;
    deferred->what = what;
    deferred->task_id = str_slice(call_memory_copy(call, task_id), task_id.length);
    deferred->started_ms = clock_monotonic_ms();
    loop_timer_init(&deferred->timer, call->worker->loop, deferred_response_on_sign_of_life,
                    deferred);
    deferred_response_end(call);
    call_part_add(call, &deferred->part, &deferred_response_kind);
}

void deferred_response_take_stream(struct call *call, const char *what)
{
    deferred_response_begin(call, what, STR_EMPTY);
    struct deferred_response *deferred = deferred_response_of(call);
    deferred->is_stream = deferred->upstream_reports = true;
    loop_timer_start(&deferred->timer, SIGN_OF_LIFE_MS);
}

void deferred_response_be_quiet(struct call *call)
{
    deferred_response_of(call)->upstream_reports = true;
}

void deferred_response_await_upstream(struct call *call)
{
    deferred_response_of(call)->awaits_upstream = true;
}

bool deferred_response_awaits_upstream(const struct call *call)
{
    const struct deferred_response *deferred = call_part_find(call, &deferred_response_kind);
    return deferred && deferred->awaits_upstream;
}

void deferred_response_pass_progress(struct call *call, struct str message)
{
    if (!deferred_response_is_stream(call) || http_stream_backlog(call->exchange) > BACKLOG_BYTES)
        return; /* progress may be lost: the next one has more */
    deferred_response_of(call)->upstream_reports = true;
    deferred_response_write_message(call, message);
}

void deferred_response_pass(struct call *call, struct str message)
{
    if (deferred_response_is_stream(call) && http_stream_backlog(call->exchange) <= BACKLOG_BYTES)
        deferred_response_write_message(call, message);
}

/* ---- the answers to a call: whole, or as the end of its event stream ---- */

void call_respond(struct call *call, int status, const struct http_header *headers, size_t count,
                  struct str body)
{
    if (status >= 400)
        call->outcome = "error";
    call_ref(call);
    http_respond(call_ended(call), status, headers, count, body);
    call_unref(call); /* NOLINT(clang-analyzer-unix.Malloc): the reference taken above */
}

static void deferred_response_respond(struct call *call, int status, struct str body)
{
    const struct http_header json = {STR("content-type"), STR("application/json")};
    call_respond(call, status, &json, body.length > 0 ? 1 : 0, body);
}

void call_answer_wrong_verb(struct call *call, const char *allowed)
{
    const struct http_header allow = {STR("allow"), str_from(allowed)};
    call_respond(call, 405, &allow, 1, STR_EMPTY);
}

void call_answer_status(struct call *call, int status, struct str body)
{
    if (status >= 400)
        call_span_fail_status(call, status);
    deferred_response_respond(call, status, body);
}

static void answer(struct call *call, int status, struct str message)
{
    bool expects_one = call->envelope.kind == ENVELOPE_REQUEST;
    if (deferred_response_is_stream(call)) {
        call_end_stream(call, message, false);
        return;
    }
    deferred_response_respond(call, expects_one ? status : 202, expects_one ? message : STR_EMPTY);
}

void call_answer(struct call *call, struct str message)
{
    answer(call, 200, message);
}

void call_answer_result(struct call *call, struct str result)
{
    OWNED_BUFFER(message);
    call->dialect->write_own_result(&message, call->envelope.id, result);
    call_answer(call, buffer_str(&message));
}

void call_answer_result_of_server(struct call *call, struct str result)
{
    OWNED_BUFFER(message);
    call->dialect->write_result(&message, call->envelope.id, result);
    call_answer(call, buffer_str(&message));
}

void call_answer_error(struct call *call, enum jsonrpc_error error, struct str message,
                       const struct jsonrpc_error_data *data)
{
    const struct dialect_error told = call->dialect->error(error);
    OWNED_BUFFER(object);
    OWNED_BUFFER(text);
    call->outcome = "error";
    call_span_fail(call, told.error);
    metrics_count(METRIC_ERRORS, str_from(jsonrpc_error_type(told.error)),
                  str_from(call->method ? call->method->name : ""));
    jsonrpc_write_error_object(&object, told.error, message, data);
    if (refusal_is_due(call, error)) {
        refusal_write_result(&text, call, error, buffer_str(&object), NULL);
        call_answer_result(call, buffer_str(&text));
    } else {
        jsonrpc_write_error_text(&text, call->envelope.id, buffer_str(&object));
        answer(call, told.status, buffer_str(&text));
    }
}

void call_answer_no_store(struct call *call)
{
    const struct jsonrpc_error_data data = {.details = STR("the task store is not available"),
                                            .retry_after = 5};
    call_answer_error(call, JSONRPC_UNAVAILABLE, STR_EMPTY, &data);
}

void call_refuse_params(struct call *call, const char *why)
{
    struct jsonrpc_error_data data = {.details = str_from(why)};
    OWNED_BUFFER(text);
    jsonrpc_write_error(&text, call->envelope.id, JSONRPC_INVALID_PARAMS, STR_EMPTY, &data);
    call_answer_status(call, 400, buffer_str(&text));
}

void call_answer_nothing(struct call *call)
{
    if (deferred_response_is_stream(call))
        call_answer(call, STR_EMPTY);
    else
        call_answer_status(call, 202, STR_EMPTY);
}
