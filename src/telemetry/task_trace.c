/* "<traceparent of the create> <id of the wait's span> <tracestate>" */
#include "taskgate/telemetry/task_trace.h"

#include <string.h>

#include "span_internal.h"

#define WAIT_AT (TRACEPARENT_LENGTH + 1)
#define HEX_BYTES ((size_t)2 * SPAN_ID_BYTES)
#define STATE_AT (WAIT_AT + HEX_BYTES + 1)
#define SPAN_ID_AT (TRACEPARENT_LENGTH - 3 - HEX_BYTES)

void task_trace_write(struct buffer *out, const struct span *create)
{
    char text[TRACEPARENT_BYTES], hex[HEX_BYTES];
    unsigned char wait_id[SPAN_ID_BYTES];
    if (!span_is_sampled(create))
        return;
    trace_context_write(span_context(create), text);
    span_id_make(wait_id);
    str_write_hex(wait_id, SPAN_ID_BYTES, hex);
    buffer_append_text(out, text);
    buffer_append_char(out, ' ');
    buffer_append(out, str_slice(hex, sizeof hex));
    buffer_append_char(out, ' ');
    buffer_append(out, span_state(create));
}

bool task_trace_read(struct task_trace *trace, struct str text)
{
    char wait[TRACEPARENT_BYTES];
    if (text.length < STATE_AT || text.length - STATE_AT > TRACESTATE_MOST_BYTES ||
        !trace_context_parse(&trace->create, str_slice(text.bytes, TRACEPARENT_LENGTH)))
        return false;
    /* The two are in one trace. */
    trace_context_write(&trace->create, wait);
    memcpy(wait + SPAN_ID_AT, text.bytes + WAIT_AT, HEX_BYTES);
    if (!trace_context_parse(&trace->wait, str_slice(wait, TRACEPARENT_LENGTH)))
        return false;
    memcpy(trace->state, text.bytes + STATE_AT, text.length - STATE_AT);
    trace->state[text.length - STATE_AT] = '\0';
    return true;
}
