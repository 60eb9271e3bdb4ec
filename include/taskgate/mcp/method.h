/*
 * The closed table of methods: what a client may send in each era, and what the gateway does with
 * it. Source: the 2025-11-25 and 2026-07-28 schemas, behaviour 3.4. Any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "taskgate/core/str.h"
#include "taskgate/mcp/extension.h"
#include "taskgate/mcp/jsonrpc.h"
#include "taskgate/mcp/version.h"

/* Notifications of servers, and of clients. */
#define MCP_TOOLS_CHANGED "notifications/tools/list_changed"
#define MCP_PROGRESS "notifications/progress"
#define MCP_LOG_MESSAGE "notifications/message"
#define MCP_TASK_STATUS "notifications/tasks/status"
#define MCP_INITIALIZED "notifications/initialized"
#define MCP_ROOTS_CHANGED "notifications/roots/list_changed"

/* MCP_RELAY, MCP_INITIALIZE … */
enum mcp_treatment {
#define MCP_TREATMENT_ROW(symbol, ...) MCP_##symbol,
#include "taskgate/mcp/method_table.h"
#undef MCP_TREATMENT_ROW
};

/* The member of params that the Mcp-Name header repeats. */
enum mcp_mirrored {
    MCP_MIRRORED_NOTHING,
    MCP_MIRRORED_NAME,
    MCP_MIRRORED_URI,
    MCP_MIRRORED_TASK_ID
};

/* The member of params that is judged, as that of `resources/read`. */
enum mcp_parameter { MCP_PARAMETER_NOTHING, MCP_PARAMETER_URI };
/* A member of the answer: a list, of which entries are left out, or one entry, which is refused. */
enum mcp_answer { MCP_ANSWER_LIST, MCP_ANSWER_ENTRY };

struct mcp_method {
    const char *name;
    enum mcp_treatment treatment;
    unsigned eras; /* bits of enum mcp_era */
    enum mcp_mirrored mirrored;
    struct { /* with MCP_EXTENSION: */
        enum mcp_extension_id of;
        enum mcp_parameter parameter;
        enum mcp_answer answer;
        const char *member;
        bool is_cacheable;
        const char *setting; /* of the server, without which it does not have the method; or "" */
    } extension;
};

/* Never NULL: a method that the era does not have gets the MCP_UNKNOWN row. */
const struct mcp_method *mcp_method_find(struct str name, enum mcp_era era);
/* Whether it answers with a list that clients may keep; `server/discover` counts as one. */
bool mcp_method_is_list(const struct mcp_method *method);
/* Whether some era has it. */
bool mcp_method_is_known(struct str name);
/* The names of all, one after the other; NULL behind the last. Start with *position 0. */
const char *mcp_method_next(size_t *position);
