/*
 * The trace of a call that has become a task, as the store keeps it: what belongs to the call is
 * found again after hours, and by another process. Any thread.
 */
#pragma once

#include "taskgate/core/buffer.h"
#include "taskgate/telemetry/span.h"

struct task_trace {
    struct trace_context create; /* the span of the request that the task was made by */
    struct trace_context wait;   /* the span of the wait for a person, which ends later */
    char state[TRACESTATE_MOST_BYTES + 1];
};

/* Appends the text for struct task.trace, with a new id for the wait. Nothing for a span that is
 * not sampled, or NULL. */
void task_trace_write(struct buffer *out, const struct span *create);
/* false: the text is none. */
bool task_trace_read(struct task_trace *trace, struct str text);
