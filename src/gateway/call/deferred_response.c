/* Responses that come late: signs of life on the stream, then the answer. */
#include "deferred_response.h"

#include <stdlib.h>

#include "call.h"
#include "call_span.h"
#include "headers.h"
#include "refusal.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"
#include "taskgate/core/magic.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"
#include "taskgate/core/owned.h"
#include "taskgate/identity/identity.h"
#include "taskgate/mcp/sse.h"

/* The bytes that may wait for a client that does not read. */
#define BACKLOG_BYTES ((size_t)256 * 1024)

struct deferred_response {
    uint32_t magic; /* DEFERRED_RESPONSE_MAGIC */
    struct call_part part;
    struct call *call;
    struct deferred_options options; /* task_id: owned; a client's word, so it may hold NUL.
                                      * is_quiet: or upstream's own progress has been passed */
    struct loop_timer timer;
    int64_t started_ms;
    bool is_stream; /* begun */
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
    call_memory_give(call, (char *)deferred->options.task_id.bytes);
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

bool deferred_response_is_held(const struct call *call)
{
    const struct deferred_response *deferred = call_part_find(call, &deferred_response_kind);
    return deferred && !deferred->options.awaits_upstream;
}

void deferred_response_stop(struct call *call)
{
    void (*stopped)(struct call * call) = deferred_response_of(call)->options.stopped;
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

/* ---- the end of its token ---- */

struct token_clock {
    uint32_t magic; /* TOKEN_CLOCK_MAGIC */
    struct call_part part;
    struct call *call;
    struct loop_timer timer;
    bool (*may_write)(const struct call *call);
};
#define TOKEN_CLOCK_MAGIC 0x4757746b

/* In time for the answer to arrive and for the client to ask again with the same token. */
#define BEFORE_END_MS 2000

static void token_clock_drop(struct call *call, void *object)
{
    struct token_clock *clock = object;
    loop_timer_stop(&clock->timer);
    MAGIC_CLEAR(clock);
    free(clock);
}

static const struct call_part_kind token_clock_kind =
    CALL_PART_KIND(struct token_clock, token_clock_drop);

/* Some clients wait for an answer after the end of its stream. */
static void write_expired(const struct call *call, struct buffer *message)
{
    const struct jsonrpc_error_data data = {.tool = call_tool(call),
                                            .details = STR("the access token has expired")};
    metrics_count(METRIC_ERRORS, str_from(jsonrpc_error_type(JSONRPC_UNAVAILABLE)),
                  str_from(call->method ? call->method->name : ""));
    jsonrpc_write_error(message, call->envelope.id, JSONRPC_UNAVAILABLE, STR_EMPTY, &data);
}

static void on_token_expired(void *context)
{
    struct token_clock *clock = MAGIC_CAST(struct token_clock, TOKEN_CLOCK_MAGIC, context);
    struct call *call = clock->call;
    OWNED_BUFFER(message);
    log_info("A stream ends with its access token", LOG_TEXT("source", call->source->id));
    if (call->envelope.id.length > 0 && (!clock->may_write || clock->may_write(call)))
        write_expired(call, &message);
    call->outcome = "error";
    call_part_report_gone(call);
    call_end_stream(call, buffer_str(&message), false);
}

int64_t token_clock_bound_ms(const struct call *call, int64_t wait_ms)
{
    if (!call->identity)
        return wait_ms;
    int64_t left_ms = call->identity->until_ms - BEFORE_END_MS - clock_now_ms();
    if (left_ms >= wait_ms)
        return wait_ms;
    return left_ms > 0 ? left_ms : 0;
}

void token_clock_start(struct call *call, bool (*may_write)(const struct call *call))
{
    if (!call->identity || call_part_find(call, &token_clock_kind))
        return;
    struct token_clock *clock = memory_alloc(sizeof *clock);
    int64_t left_ms = call->identity->until_ms - clock_now_ms();
    MAGIC_SET(clock, TOKEN_CLOCK_MAGIC);
    clock->call = call;
    clock->may_write = may_write;
    loop_timer_init(&clock->timer, call->worker->loop, on_token_expired, clock);
    loop_timer_start(&clock->timer, left_ms > 0 ? left_ms : 0);
    call_part_add(call, &clock->part, &token_clock_kind);
}

/* ---- signs of life ---- */

/* A comment keeps proxies from closing the stream. Only progress restarts a client's own clock, and
 * progress must rise. */
static void show_life(struct deferred_response *deferred)
{
    struct call *call = deferred->call;
    struct str token = call->envelope.progress_token;
    if (token.length > 0 && !deferred->options.is_quiet) {
        OWNED_BUFFER(message);
        int64_t seconds = (clock_monotonic_ms() - deferred->started_ms) / 1000;
        dialect_write_progress(&message, token, seconds, str_from(deferred->options.what),
                               deferred->options.task_id);
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
    if (!deferred->options.awaits_upstream)
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

void deferred_response_begin(struct call *call, const struct deferred_options *options)
{
    struct deferred_response *deferred = call_memory_take(call, sizeof *deferred);
    struct str task_id = options->task_id;
    MAGIC_SET(deferred, DEFERRED_RESPONSE_MAGIC);
    deferred->call = call;
    deferred->options = *options;
    deferred->options.task_id = str_slice(call_memory_copy(call, task_id), task_id.length);
    deferred->options.is_quiet |= options->has_stream;
    deferred->is_stream = options->has_stream;
    deferred->started_ms = clock_monotonic_ms();
    loop_timer_init(&deferred->timer, call->worker->loop, deferred_response_on_sign_of_life,
                    deferred);
    if (options->has_stream)
        loop_timer_start(&deferred->timer, SIGN_OF_LIFE_MS);
    deferred_response_end(call);
    call_part_add(call, &deferred->part, &deferred_response_kind);
}

bool deferred_response_awaits_upstream(const struct call *call)
{
    const struct deferred_response *deferred = call_part_find(call, &deferred_response_kind);
    return deferred && deferred->options.awaits_upstream;
}

void deferred_response_pass_progress(struct call *call, struct str message)
{
    if (!deferred_response_is_stream(call) || http_stream_backlog(call->exchange) > BACKLOG_BYTES)
        return; /* progress may be lost: the next one has more */
    deferred_response_of(call)->options.is_quiet = true;
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

void call_answer_error_of_server(struct call *call, struct str error)
{
    OWNED_BUFFER(message);
    call->outcome = "error";
    jsonrpc_write_error_text(&message, call->envelope.id, error);
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

static void on_session_stored(struct call *call, const struct store_reply *reply)
{
    const struct jsonrpc_error_data data = {.details = STR("the session cannot be kept"),
                                            .retry_after = 5};
    if (reply->status == STORE_FAILED)
        call_answer_error(call, JSONRPC_UNAVAILABLE, STR_EMPTY, &data);
    else
        call_answer_result(call, STR("{}"));
}

void call_store_session_then_answer(struct call *call)
{
    call_store_session(call, call->session, call_to_store(call, on_session_stored));
}
