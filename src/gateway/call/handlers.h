/*
 * The handlers of the methods, by include/taskgate/mcp/method_table.h: in methods/, or in client/
 * where only one kind of clients has the method. Each answers its call, now or later.
 */
#pragma once

#include "call.h"

/* initialize_handle(), tools_list_handle() … */
#define MCP_TREATMENT_ROW(symbol, one, other)                                                      \
    void one(struct call *call);                                                                   \
    void other(struct call *call);
#include "taskgate/mcp/method_table.h"
#undef MCP_TREATMENT_ROW
