/*
 * The span of a request: from its coming to its answer, where call_ended() ends it, with what was
 * decided on it, and never with its arguments. Without telemetry `call->span` is NULL. On the
 * call's loop.
 */
#pragma once

#include "call.h"
#include "headers.h"
#include "taskgate/json/envelope.h"
#include "taskgate/telemetry/span.h"
#include "taskgate/upstream/upstream.h"

/* Begins it, once the envelope is read. Callers ask telemetry_is_on before. */
void call_span_start(struct call *call) SPAN_COLD;
/* The gateway answers with a JSON-RPC error. */
void call_span_fail(struct call *call, enum jsonrpc_error error);
/* The answer has an HTTP status that is an error. */
void call_span_fail_status(struct call *call, int status);
/* For what is done on its behalf: without a context where there is no telemetry. */
struct span_parent call_span_parent(const struct call *call);

/*
 * The span of a request to a server, and how its trace goes up: in the header, and in the place
 * where the client has put it in the message. Without telemetry no span exists. Any thread.
 */

/* The trace of a request to a server, and the spans that led to it. */
struct upstream_trace {
    struct span_parent parent;            /* without a context: it belongs to no trace */
    const struct trace_context *links[2]; /* NULL: none */
    const char *task;                     /* id of the task that it is for, or NULL */
};

/* "tools/call TOOL"; the method alone where it names nothing. */
void span_name_write(struct buffer *out, struct str method, struct str name);
/* `name` may be empty. */
struct span *server_span_start(const struct upstream_trace *trace,
                               const struct config_source *source, struct str method,
                               struct str name);
/* The same for a message of the gateway's own making, which is read for its method and name, and
 * whose headers (owning) get the span. */
struct span *server_span_start_own(const struct upstream_trace *trace,
                                   const struct config_source *source, struct str body,
                                   struct headers *headers);
/* Names the span in the headers, which borrow from it and from `text`. */
void server_span_set_headers(const struct span *span, struct headers *headers,
                             char text[TRACEPARENT_BYTES]);
/* Writes the message with the span in the place of the client's own in params._meta. No other byte
 * changes. false: there is nothing to be replaced. */
bool server_span_write_body(const struct span *span, const struct envelope *message,
                            struct buffer *out);
/* How it has ended: the span goes to the exporter. NULL is allowed. */
void server_span_end(struct span *span, enum upstream_result result, int status);
/* The request was given up. NULL is allowed. */
void server_span_give_up(struct span *span);
