/* The closed table of methods, and looking one up. */
#include "taskgate/mcp/method.h"

#include <stddef.h>

static const struct mcp_method methods[] = {
#define MCP_METHOD_ROW(name, symbol) {name, MCP_##symbol},
#include "taskgate/mcp/method_table.h"
#undef MCP_METHOD_ROW
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
