/*
 * The counters of requests. Those of a tool and of a source are resolved once for each loop, so
 * that a call builds no labels and takes no lock. Each counts on the caller's loop.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "taskgate/core/str.h"
#include "taskgate/mcp/method.h"

/* A request has come, with a body of so many bytes. */
void call_counters_came(const struct mcp_method *method, size_t body_bytes);
/* The tool that a call names; the name is empty but for tools/call. `is_listed` says whether a
 * server has listed it for somebody: one that a client invents is counted as "__unlisted__". It is
 * asked again until it says so. */
struct counted_tool {
    struct str name;
    bool (*is_listed)(void *context, struct str name);
    void *context;
};
/* It has its answer. `method` is NULL when there was none to be read, `outcome` is "success" or
 * "error". */
void call_counters_answered(const struct mcp_method *method, const struct counted_tool *tool,
                            const char *outcome, int64_t elapsed_ms);
/* The server of `source` has answered with this HTTP status; 0: with none. */
void call_counters_upstream(struct str source, int status, int64_t elapsed_ms);
