/* A timer of a call, to the end of its token. */
#include "token_clock.h"

#include <stdlib.h>

#include "call.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"
#include "taskgate/core/magic.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"
#include "taskgate/identity/identity.h"
#include "taskgate/mcp/sse.h"

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

static void drop(struct call *call, void *object)
{
    struct token_clock *clock = object;
    loop_timer_stop(&clock->timer);
    MAGIC_CLEAR(clock);
    free(clock);
}

static const struct call_part_kind token_clock_kind = CALL_PART_KIND(struct token_clock, drop);

/* Some clients wait for an answer after the end of its stream. */
static void write_error(struct call *call)
{
    const struct jsonrpc_error_data data = {.tool = call_tool(call),
                                            .details = STR("the access token has expired")};
    struct buffer message = {0}, event = {0};
    metrics_count(METRIC_ERRORS, str_from(jsonrpc_error_type(JSONRPC_UNAVAILABLE)),
                  str_from(call->method ? call->method->name : ""));
    jsonrpc_write_error(&message, call->envelope.id, JSONRPC_UNAVAILABLE, STR_EMPTY, &data);
    sse_write_event(&event, STR_EMPTY, STR_EMPTY, buffer_str(&message));
    http_stream_write(call->exchange, buffer_str(&event));
    buffer_finish(&event);
    buffer_finish(&message);
}

static void on_end(void *context)
{
    struct token_clock *clock = MAGIC_CAST(struct token_clock, TOKEN_CLOCK_MAGIC, context);
    struct call *call = clock->call;
    struct http_exchange *exchange = call->exchange;
    log_info("A stream ends with its access token", LOG_TEXT("source", call->source->id));
    if (call->envelope.id.length > 0 && (!clock->may_write || clock->may_write(call)))
        write_error(call);
    call->outcome = "error";
    call_part_report_gone(call);
    http_on_gone(exchange, NULL, NULL);
    call_ended(call);
    http_stream_end(exchange);
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
    loop_timer_init(&clock->timer, call->worker->loop, on_end, clock);
    loop_timer_start(&clock->timer, left_ms > 0 ? left_ms : 0);
    call_part_add(call, &clock->part, &token_clock_kind);
}
