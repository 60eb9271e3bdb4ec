/*
 * The span of a request to a server, and how its trace goes up: in the header, and in the place
 * where the client has put it in the message. Without telemetry no span exists. Any thread.
 */
#pragma once

#include "headers.h"
#include "taskgate/json/envelope.h"
#include "taskgate/telemetry/span.h"
#include "taskgate/upstream/upstream.h"

/* The trace of a request to a server, and the spans that led to it. */
struct upstream_trace {
    struct span_parent parent;            /* without a context: it belongs to no trace */
    const struct trace_context *links[2]; /* NULL: none */
    const char *task;                     /* id of the task that it is for, or NULL */
};

/* "tools/call TOOL"; the method alone where it names nothing. */
void span_name_write(struct buffer *out, struct str method, struct str name);
/* `name` may be empty. */
struct span *upstream_span_start(const struct upstream_trace *trace,
                                 const struct config_source *source, struct str method,
                                 struct str name);
/* The same for a message of the gateway's own making, which is read for its method and name, and
 * whose headers (owning) get the span. */
struct span *upstream_span_start_own(const struct upstream_trace *trace,
                                     const struct config_source *source, struct str body,
                                     struct headers *headers);
/* Names the span in the headers, which borrow from it and from `text`. */
void upstream_span_set_headers(const struct span *span, struct headers *headers,
                               char text[TRACEPARENT_BYTES]);
/* Writes the message with the span in the place of the client's own in params._meta. No other byte
 * changes. false: there is nothing to be replaced. */
bool upstream_span_write_body(const struct span *span, const struct envelope *message,
                              struct buffer *out);
/* How it has ended: the span goes to the exporter. NULL is allowed. */
void upstream_span_end(struct span *span, enum upstream_result result, int status);
/* The request was given up. NULL is allowed. */
void upstream_span_give_up(struct span *span);
