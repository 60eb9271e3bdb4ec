/* The span of a relayed request. */
#include <stdlib.h>

#include "call/call_span.h"
#include "relay_internal.h"
#include "taskgate/core/memory.h"

struct relay_trace {
    struct span *span;
    char traceparent[TRACEPARENT_BYTES];
    struct buffer body; /* the body that names the span; else empty */
};

struct str relay_span_begin(struct relay *relay, const struct envelope *message,
                            struct headers *headers)
{
    const struct call *call = relay->call;
    const struct upstream_trace of_call = {.parent = call_span_parent(call)};
    struct relay_trace *trace = memory_alloc(sizeof *trace);
    relay->trace = trace;
    trace->span = upstream_span_start(&of_call, call->source, call->envelope.method,
                                      call->envelope.name.text);
    upstream_span_set_headers(trace->span, headers, trace->traceparent);
    bool is_named = upstream_span_write_body(trace->span, message, &trace->body);
    return is_named ? buffer_str(&trace->body) : message->body;
}

struct span *relay_span_take(struct relay *relay)
{
    struct span *span = relay->trace->span;
    buffer_finish(&relay->trace->body);
    free(relay->trace);
    relay->trace = NULL;
    return span;
}

void relay_span_end(struct relay *relay, enum upstream_result result)
{
    if (relay->status >= 400)
        call_span_fail_status(relay->call, relay->status);
    upstream_span_end(relay_span_take(relay), result, relay->status);
}

void relay_span_give_up(struct relay *relay)
{
    upstream_span_give_up(relay_span_take(relay));
}
