/*
 * The span of a request: from its coming to its answer, where call_ended() ends it, with what was
 * decided on it, and never with its arguments. Without telemetry `call->span` is NULL. On the
 * call's loop.
 */
#pragma once

#include "call.h"
#include "taskgate/telemetry/span.h"

/* Begins it, once the envelope is read. Callers ask telemetry_is_on before. */
void call_span_start(struct call *call) SPAN_COLD;
/* The gateway answers with a JSON-RPC error. */
void call_span_fail(struct call *call, enum jsonrpc_error error);
/* The answer has an HTTP status that is an error. */
void call_span_fail_status(struct call *call, int status);
/* For what is done on its behalf: without a context where there is no telemetry. */
struct span_parent call_span_parent(const struct call *call);
