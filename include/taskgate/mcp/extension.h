/*
 * The known extensions of the protocol, and those that a server offers. Source: the table beside
 * the table of methods. Any thread; nothing is owned.
 */
#pragma once

#include <stdbool.h>

#include "taskgate/core/buffer.h"
#include "taskgate/core/str.h"
#include "taskgate/mcp/lists.h"

struct mcp_extension {
    const char *name;
    bool is_bridged_down; /* modern clients see it in what a legacy server offers */
};

/* NULL: the table does not have it. */
const struct mcp_extension *mcp_extension_find(struct str name);

/* Writes a result of `initialize` or `server/discover` (checked JSON) with those members of its
 * `capabilities.extensions` of which `judge` says so, by their names; they and all else stay as
 * they are. A value there that is no
 * object is left out. */
void mcp_extensions_filter(struct buffer *out, struct str result, mcp_name_judge judge,
                           void *context);
/* The settings of an extension in such a result; empty where the server does not offer it. */
struct str mcp_extension_settings(struct str result, const char *name);
