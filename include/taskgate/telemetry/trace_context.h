/*
 * W3C Trace Context: what tells which trace a message belongs to, and its last span. Any thread;
 * nothing is owned. Source: W3C Trace Context level 1 §3.2 and §3.3.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "taskgate/core/str.h"

#define TRACE_ID_BYTES 16
#define SPAN_ID_BYTES 8
#define TRACEPARENT_LENGTH 55 /* of version 00 */
#define TRACEPARENT_BYTES (TRACEPARENT_LENGTH + 1)
#define TRACE_SAMPLED 1 /* in the flags */
/* The part of a tracestate that is passed on (§3.3.1.5 demands 512 at least). */
#define TRACESTATE_MOST_BYTES 512

struct trace_context {
    unsigned char trace_id[TRACE_ID_BYTES];
    unsigned char span_id[SPAN_ID_BYTES];
    uint8_t flags;
};

/* Reads a traceparent. A later version than 00 may have more behind its flags, which is left out.
 * false: it is not one, and `context` is untouched. */
bool trace_context_parse(struct trace_context *context, struct str text);
/* As version 00, NUL-terminated. */
void trace_context_write(const struct trace_context *context, char text[TRACEPARENT_BYTES]);
static inline bool trace_context_is_sampled(const struct trace_context *context)
{
    return context->flags & TRACE_SAMPLED;
}
/* Whether both name the same span of the same trace. */
bool trace_context_equal(const struct trace_context *a, const struct trace_context *b);
/* Whether it may be passed on as a tracestate: printable, and not too long. */
bool tracestate_is_fit(struct str state);
