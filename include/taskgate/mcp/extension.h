/*
 * The known extensions of the protocol, and those that a server offers. Source: the table beside
 * the table of methods. Any thread; nothing is owned.
 */
#pragma once

#include <stdbool.h>

#include "taskgate/core/buffer.h"
#include "taskgate/core/str.h"
#include "taskgate/mcp/lists.h"

/* The setting of the skills extension of a server that has `resources/directory/read`. */
#define MCP_DIRECTORY_READ "directoryRead"

/* MCP_EXTENSION_TASKS, MCP_EXTENSION_UI … */
enum mcp_extension_id {
#define MCP_EXTENSION_ROW(symbol, ...) MCP_EXTENSION_##symbol,
#include "taskgate/mcp/extension_table.h"
#undef MCP_EXTENSION_ROW
};

struct mcp_extension {
    const char *name;
    bool crosses_eras; /* modern clients see it in what a legacy server offers */
};

const struct mcp_extension *mcp_extension_get(enum mcp_extension_id id);
/* NULL: the table does not have it. */
const struct mcp_extension *mcp_extension_find(struct str name);

/* Writes a result of `initialize` or `server/discover` (checked JSON) with those members of its
 * `capabilities.extensions` of which `judge` says so, by their names; they and all else stay as
 * they are. A value there that is no object is left out. */
void mcp_extensions_filter(struct buffer *out, struct str result, mcp_name_judge judge,
                           void *context);
/* Whether the server offers the extension in such a result with `setting` true. */
bool mcp_extension_has_setting(struct str result, enum mcp_extension_id id, const char *setting);
