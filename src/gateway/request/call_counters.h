/*
 * The counters of requests. Those of a tool and of a source are resolved once for each loop, so
 * that a call builds no labels and takes no lock. Each counts on the caller's loop.
 */
#pragma once

#include <stdint.h>

#include "taskgate/core/str.h"
#include "taskgate/mcp/method.h"

/* A request has come, with a body of so many bytes. */
void call_counters_came(const struct mcp_method *method, size_t body_bytes);
/* It has its answer. `method` is NULL when there was none to be read; `tool` is empty but for
 * tools/call, `outcome` is "success" or "error". */
void call_counters_answered(const struct mcp_method *method, struct str tool, const char *outcome,
                            int64_t elapsed_ms);
/* The server of `source` has answered with this HTTP status; 0: with none. */
void call_counters_upstream(struct str source, int status, int64_t elapsed_ms);
