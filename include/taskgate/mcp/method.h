/*
 * The closed table of methods: what a client may send, and what the gateway does with it.
 * Source: the 2025-11-25 schema, seed 002, contract "Proxy". Any thread.
 */
#pragma once

#include "taskgate/core/str.h"

/* Either side sends it when it wants no answer to a request any more. */
#define MCP_CANCELLED "notifications/cancelled"
/* A server sends it when its list of tools has changed. */
#define MCP_TOOLS_CHANGED "notifications/tools/list_changed"

/* MCP_RELAY, MCP_INITIALIZE … */
enum mcp_treatment {
#define MCP_TREATMENT_ROW(symbol, handler) MCP_##symbol,
#include "taskgate/mcp/method_table.h"
#undef MCP_TREATMENT_ROW
};

struct mcp_method {
    const char *name;
    enum mcp_treatment treatment;
};

/* Never NULL: an unknown method gets the MCP_UNKNOWN row. */
const struct mcp_method *mcp_method_find(struct str name);
