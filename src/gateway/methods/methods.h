/* The handlers of the methods, by include/taskgate/mcp/method_table.h. Each answers its call, now
 * or later. */
#pragma once

#include "request/call.h"

/* initialize_handle(), tools_list_handle() … */
#define MCP_TREATMENT_ROW(symbol, handler) void handler(struct call *call);
#include "taskgate/mcp/method_table.h"
#undef MCP_TREATMENT_ROW

/* For relay_options.rewrite of a GET stream that goes on where another ended: what is on it may be
 * the answer to any request, a list among them. */
struct relay_reply;
void lists_rewrite_resumed(struct call *call, const struct relay_reply *reply, struct buffer *out);

/* Puts the call to every gate, as if the client had called the tool plainly. For execute_tool,
 * once it has replaced the body. */
void tools_call_execute(struct call *call, int64_t patience_ms);
