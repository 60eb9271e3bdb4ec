/* The span of a relayed request. */
#include "relay_internal.h"
#include "request/call_span.h"

struct str relay_span_begin(struct relay *relay, struct headers *headers,
                            char text[TRACEPARENT_BYTES])
{
    const struct call *call = relay->call;
    const struct upstream_trace trace = {.parent = call_span_parent(call)};
    relay->span =
        upstream_span_start(&trace, call->source, call->envelope.method, call->envelope.name.text);
    upstream_span_set_headers(relay->span, headers, text);
    bool is_named =
        upstream_span_write_body(relay->span, call->body, call->envelope.meta.raw, &relay->traced);
    return is_named ? buffer_str(&relay->traced) : call->body;
}

void relay_span_end(struct relay *relay, enum upstream_result result)
{
    if (relay->status >= 400)
        call_span_fail_status(relay->call, relay->status);
    upstream_span_end(relay->span, result, relay->status);
    relay->span = NULL;
    buffer_finish(&relay->traced);
}

void relay_span_give_up(struct relay *relay)
{
    upstream_span_give_up(relay->span);
    relay->span = NULL;
    buffer_finish(&relay->traced);
}
