/* The closed table of methods, and looking one up. */
#include "taskgate/mcp/method.h"

#include <stddef.h>

/* ClientRequest and ClientNotification of the 2025-11-25 schema, and the question a client of
 * the next era opens with. A method that is not here is not relayed. */
static const struct mcp_method methods[] = {
    {"tools/call", MCP_TOOLS_CALL, false},
    {"tools/list", MCP_TOOLS_LIST, false},
    {"tasks/get", MCP_TASKS_GET, false},
    {"tasks/result", MCP_TASKS_RESULT, false},
    {"tasks/cancel", MCP_TASKS_CANCEL, false},
    {"tasks/list", MCP_TASKS_LIST, false},
    {"ping", MCP_RELAY, false},
    {"initialize", MCP_INITIALIZE, false},
    {"resources/list", MCP_RESOURCES_LIST, false},
    {"resources/templates/list", MCP_RESOURCES_TEMPLATES_LIST, false},
    {"resources/read", MCP_GATED_URI, false},
    {"resources/subscribe", MCP_GATED_URI, false},
    {"resources/unsubscribe", MCP_RESOURCES_UNSUBSCRIBE, false},
    {"prompts/list", MCP_PROMPTS_LIST, false},
    {"prompts/get", MCP_GATED_NAME, false},
    {"logging/setLevel", MCP_RELAY, false},
    {"completion/complete", MCP_RELAY, false},
    {"server/discover", MCP_SERVER_DISCOVER, false},
    {"notifications/initialized", MCP_RELAY, true},
    {"notifications/cancelled", MCP_RELAY, true},
    {"notifications/progress", MCP_RELAY, true},
    {"notifications/roots/list_changed", MCP_RELAY, true},
    {"notifications/tasks/status", MCP_RELAY, true},
};

static const struct mcp_method unknown = {"", MCP_UNKNOWN, false};

const struct mcp_method *mcp_method_find(struct str name)
{
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++) {
        if (str_equal(name, str_from(methods[i].name)))
            return &methods[i];
    }
    return &unknown;
}
