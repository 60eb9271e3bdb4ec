/* A timer of a call, to the end of its token. */
#include "token_clock.h"

#include <stdlib.h>

#include "call.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"
#include "taskgate/core/magic.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"
#include "taskgate/core/owned.h"
#include "taskgate/identity/identity.h"

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
static void write_expired(const struct call *call, struct buffer *message)
{
    const struct jsonrpc_error_data data = {.tool = call_tool(call),
                                            .details = STR("the access token has expired")};
    metrics_count(METRIC_ERRORS, str_from(jsonrpc_error_type(JSONRPC_UNAVAILABLE)),
                  str_from(call->method ? call->method->name : ""));
    jsonrpc_write_error(message, call->envelope.id, JSONRPC_UNAVAILABLE, STR_EMPTY, &data);
}

static void on_end(void *context)
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
    loop_timer_init(&clock->timer, call->worker->loop, on_end, clock);
    loop_timer_start(&clock->timer, left_ms > 0 ? left_ms : 0);
    call_part_add(call, &clock->part, &token_clock_kind);
}
