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

enum mcp_treatment {
    MCP_RELAY, /* as it is */
    MCP_INITIALIZE,
    MCP_TOOLS_LIST,
    MCP_TOOLS_CALL,
    MCP_RESOURCES_LIST,           /* filtered by `expose` on uri */
    MCP_RESOURCES_TEMPLATES_LIST, /* relayed: templates name no resource */
    MCP_PROMPTS_LIST,             /* filtered by `expose` on name */
    MCP_GATED_URI,                /* resources/read, resources/subscribe */
    MCP_RESOURCES_UNSUBSCRIBE,    /* relayed, whatever the rules have become meanwhile */
    MCP_GATED_NAME,               /* prompts/get */
    MCP_GATED_REFERENCE,          /* completion/complete */
    MCP_TASKS_GET,
    MCP_TASKS_RESULT,
    MCP_TASKS_CANCEL,
    MCP_TASKS_LIST,
    MCP_SERVER_DISCOVER, /* HTTP 400 and -32601: this is the legacy era */
    MCP_UNKNOWN,
};

struct mcp_method {
    const char *name;
    enum mcp_treatment treatment;
};

/* Never NULL: an unknown method gets the MCP_UNKNOWN row. */
const struct mcp_method *mcp_method_find(struct str name);
