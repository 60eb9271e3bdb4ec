/* The closed table of methods, and looking one up. */
#include "taskgate/mcp/method.h"

#include <stddef.h>

enum {
    LEGACY = MCP_ERA_LEGACY,
    MODERN = MCP_ERA_MODERN,
    BOTH = MCP_ERA_LEGACY | MCP_ERA_MODERN,
};

static const struct mcp_method methods[] = {
#define MCP_METHOD_ROW(name, symbol, eras, mirrored)                                               \
    {name, MCP_##symbol, eras, MCP_MIRRORED_##mirrored},
#include "taskgate/mcp/method_table.h"
#undef MCP_METHOD_ROW
#define MCP_EXTENSION_METHOD_ROW(symbol, method, eras_, parameter_, answer_, member_, cacheable,   \
                                 setting_)                                                         \
    {method,                                                                                       \
     MCP_EXTENSION,                                                                                \
     eras_,                                                                                        \
     MCP_MIRRORED_NOTHING,                                                                         \
     {MCP_EXTENSION_##symbol, MCP_PARAMETER_##parameter_, MCP_ANSWER_##answer_, member_,           \
      cacheable, setting_}},
#include "taskgate/mcp/extension_table.h"
#undef MCP_EXTENSION_METHOD_ROW
};

static const struct mcp_method unknown = {.name = "", .treatment = MCP_UNKNOWN, .eras = BOTH};

static const struct mcp_method *find_row(struct str name)
{
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++) {
        if (str_equal(name, str_from(methods[i].name)))
            return &methods[i];
    }
    return &unknown;
}

const struct mcp_method *mcp_method_find(struct str name, enum mcp_era era)
{
    const struct mcp_method *method = find_row(name);
    return method->eras & era ? method : &unknown;
}

bool mcp_method_is_list(const struct mcp_method *method)
{
    switch (method->treatment) {
    case MCP_TOOLS_LIST:
    case MCP_PROMPTS_LIST:
    case MCP_RESOURCES_LIST:
    case MCP_RESOURCES_TEMPLATES_LIST:
    case MCP_SERVER_DISCOVER:
        return true;
    case MCP_EXTENSION:
        return method->extension.answer == MCP_ANSWER_LIST && method->extension.is_cacheable;
    default:
        return false;
    }
}

bool mcp_method_is_known(struct str name)
{
    return find_row(name) != &unknown;
}

const char *mcp_method_next(size_t *position)
{
    return *position < sizeof methods / sizeof methods[0] ? methods[(*position)++].name : NULL;
}
