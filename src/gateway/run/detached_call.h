/*
 * Calls that take longer than their client can wait: they go on as tasks, and the client is told
 * so, with the id under which it finds the result (seed 000 "Timeout-Based Task Promotion").
 *
 * A forwarded call is a relay's until then. One by execute_tool is run here from the start.
 */
#pragma once

#include "internal.h"

/* For relay_options.slow: makes a task of the call if its client is one that is shown the tools
 * for it; else it stays the relay's. */
void promotion_of_slow_call(struct call *call);
/* Sends the call's body and answers it: with upstream's answer, or after `patience_ms` with the
 * task that it has become. When the client leaves before, only the wait ends. */
void promotion_run(struct call *call, int64_t patience_ms);
/* The client's notifications/cancelled: true when it is about a call that goes on without it; then
 * only the wait ends, and upstream does not hear of it. */
bool promotion_takes_cancel(struct call *call);
/* The task has changed: when it was cancelled or has expired, upstream is told. */
void promotion_tell(struct gateway_worker *worker, struct task *task);
/* Everything of the worker that nobody waits for, for the end of the process. */
void promotions_drop(struct gateway_worker *worker);
