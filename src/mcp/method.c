/* The closed table of methods, and looking one up. */
#include "taskgate/mcp/method.h"

#include <stddef.h>

/* ClientRequest and ClientNotification of the 2025-11-25 schema, and the question a client of
 * the next era opens with. A method that is not here is not relayed. */
static const struct mcp_method methods[] = {
    {"tools/call", MCP_TOOLS_CALL},
    {"tools/list", MCP_TOOLS_LIST},
    {"tasks/get", MCP_TASKS_GET},
    {"tasks/result", MCP_TASKS_RESULT},
    {"tasks/cancel", MCP_TASKS_CANCEL},
    {"tasks/list", MCP_TASKS_LIST},
    {"ping", MCP_RELAY},
    {"initialize", MCP_INITIALIZE},
    {"resources/list", MCP_RESOURCES_LIST},
    {"resources/templates/list", MCP_RESOURCES_TEMPLATES_LIST},
    {"resources/read", MCP_GATED_URI},
    {"resources/subscribe", MCP_GATED_URI},
    {"resources/unsubscribe", MCP_RESOURCES_UNSUBSCRIBE},
    {"prompts/list", MCP_PROMPTS_LIST},
    {"prompts/get", MCP_GATED_NAME},
    {"logging/setLevel", MCP_RELAY},
    {"completion/complete", MCP_GATED_REFERENCE},
    {"server/discover", MCP_SERVER_DISCOVER},
    {"notifications/initialized", MCP_RELAY},
    {MCP_CANCELLED, MCP_RELAY},
    {"notifications/progress", MCP_RELAY},
    {"notifications/roots/list_changed", MCP_RELAY},
    {"notifications/tasks/status", MCP_RELAY},
};

static const struct mcp_method unknown = {"", MCP_UNKNOWN};

const struct mcp_method *mcp_method_find(struct str name)
{
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++) {
        if (str_equal(name, str_from(methods[i].name)))
            return &methods[i];
    }
    return &unknown;
}
