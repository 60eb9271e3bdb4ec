/*
 * Spans: what was done for whom, from when to when. A span belongs to whoever started it, and to
 * one thread at a time, until span_end() gives it to the exporter. A span whose trace is not
 * sampled has an id for those that come after it, and keeps nothing else.
 *
 * Nothing here blocks. Callers ask telemetry_is_on first: without telemetry no span exists, and
 * every function that takes a span does nothing for NULL.
 */
#pragma once

#include "taskgate/telemetry/trace_context.h"

/* Set by telemetry_start(), before there are other threads. */
extern bool telemetry_is_on;

/* Of functions that stand on the way of every call, but run with telemetry alone: they stay out of
 * it. */
#define SPAN_COLD __attribute__((cold, noinline))

/* As OTLP numbers them. */
enum span_kind { SPAN_INTERNAL = 1, SPAN_SERVER = 2, SPAN_CLIENT = 3 };

enum span_attribute {
#define ATTRIBUTE_ROW(symbol, name) ATTRIBUTE_##symbol,
#include "taskgate/telemetry/attribute_table.h"
#undef ATTRIBUTE_ROW
    ATTRIBUTE_COUNT
};

/* Longer texts are cut, between two characters. */
#define SPAN_NAME_MOST_BYTES 256
#define SPAN_TEXT_MOST_BYTES 512
#define SPAN_MOST_LINKS 4

struct span;

/* The span that a new one comes after. */
struct span_parent {
    const struct trace_context *context; /* NULL: the new one begins a trace */
    struct str state;                    /* its tracestate, or empty */
    bool is_remote;                      /* another process has sent it */
};

/* Starts now. The sampler decides on a trace that begins here, or comes from elsewhere. */
struct span *span_start(enum span_kind kind, struct str name, const struct span_parent *parent);
/* A child of a span of this process, which has the same fate. */
struct span *span_start_child(enum span_kind kind, struct str name, const struct span *parent);
/* Begins so long ago. */
void span_backdate(struct span *span, int64_t ago_ms);
/* Sets both ends to moments of the wall clock (milliseconds since 1970). */
void span_set_times(struct span *span, int64_t from_ms, int64_t to_ms);
/* Gives it an id that was chosen before. */
void span_set_id(struct span *span, const unsigned char id[SPAN_ID_BYTES]);
/* A second value of an attribute replaces the first. An empty text is left out. */
void span_set_text(struct span *span, enum span_attribute attribute, struct str value);
void span_set_number(struct span *span, enum span_attribute attribute, int64_t value);
/* Beyond SPAN_MOST_LINKS links are left out. */
void span_add_link(struct span *span, const struct trace_context *to);
/* The status becomes an error; `type` is its error.type, `message` may be empty. */
void span_fail(struct span *span, struct str type, struct str message);
bool span_is_sampled(const struct span *span); /* false for NULL */
/* Lives as long as the span; NULL for NULL. */
const struct trace_context *span_context(const struct span *span);
struct str span_state(const struct span *span);
/* Ends now, unless its times were set, and goes to the exporter. NULL is allowed. */
void span_end(struct span *span);
/* Is forgotten: it has not happened. NULL is allowed. */
void span_drop(struct span *span);
