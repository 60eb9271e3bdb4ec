/*
 * Server-sent events (WHATWG HTML §9.2): splitting a byte stream at event boundaries,
 * reading an event's fields, writing events. Pure functions on bytes; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "taskgate/core/buffer.h"
#include "taskgate/core/str.h"

/* Finds where events end, in a stream that arrives in pieces of any size. LF, CR and CRLF
 * end lines. An event is reported at its CR; when the LF of that CRLF comes in the next piece
 * it stands in front of the next event, where the functions below skip it, as they skip a BOM.
 * Empty lines without fields count as events that say nothing. */
struct sse_splitter {
    bool line_is_empty; /* no byte of the present line yet */
    bool after_cr;
};
void sse_splitter_init(struct sse_splitter *splitter);
/* Consumes `bytes`; returns the number of bytes up to and including the last event boundary
 * in them, 0 when there is none. `first` (may be NULL) gets the end of the first one. */
size_t sse_splitter_feed(struct sse_splitter *splitter, struct str bytes, size_t *first);

/* The length of the first event in `bytes`, 0 when none is whole. Looks at hardly more bytes than
 * that, so that events can be taken off one by one. */
size_t sse_first_event(struct str bytes);

struct sse_event {
    struct str name;    /* `event:`, empty for "message" */
    struct str id;      /* `id:`; bytes == NULL when there is none */
    struct buffer data; /* data lines joined by LF */
    bool has_data;
    int64_t retry_ms; /* `retry:`, -1 when there is none */
};
/* Reads one whole event (its lines, with or without the closing empty line). `name` and `id`
 * point into `raw`. Finish it in any case. */
void sse_event_read(struct sse_event *event, struct str raw);
void sse_event_finish(struct sse_event *event);

/* Writes one event; `name` and `id` may be empty; data with line ends becomes several data
 * lines; CR and LF in name and id are dropped (no injection). */
void sse_write_event(struct buffer *out, struct str name, struct str id, struct str data);
/* Writes `raw`, one whole event, with its data replaced, every other line kept. */
void sse_write_with_data(struct buffer *out, struct str raw, struct str data);
