/*
 * The span of a request to a server, and how its trace goes up: in the header, and in the place
 * where the client has put it in the message. Without telemetry no span exists. Any thread.
 */
#pragma once

#include "headers.h"
#include "taskgate/telemetry/span.h"
#include "taskgate/upstream/upstream.h"

/* A request to the source's server that belongs to a trace. */
struct upstream_span {
    struct span_parent parent;
    const struct config_source *source;
    struct str method, name; /* of the message; name may be empty */
};
struct span *upstream_span_start(const struct upstream_span *request);
/* Names the span in the headers, which borrow from it and from `text`. */
void upstream_span_set_headers(const struct span *span, struct headers *headers,
                               char text[TRACEPARENT_BYTES]);
/* Writes the body with the span in the place of the client's own in params._meta (JSON text of
 * `body`, as the envelope has it). No other byte changes. false: there is nothing to be replaced.
 */
bool upstream_span_write_body(const struct span *span, struct str body, struct str meta,
                              struct buffer *out);
/* How it has ended: the span goes to the exporter. NULL is allowed. */
void upstream_span_end(struct span *span, enum upstream_result result, int status);
/* The request was given up. NULL is allowed. */
void upstream_span_give_up(struct span *span);
