/*
 * The filter of `subscriptions/listen` (MCP 2026-07-28, patterns/subscriptions), and its
 * acknowledgement: which part the gateway serves itself, and which part the server is asked for.
 *
 * Writers append to a buffer of the caller's. Spans are of the caller's text. Any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "taskgate/core/buffer.h"
#include "taskgate/core/str.h"

/* More ids of the gateway's own tasks than these make a filter malformed. */
#define MCP_SUBSCRIPTION_MOST_TASKS 256

#define MCP_ACKNOWLEDGED "notifications/subscriptions/acknowledged"

struct mcp_subscription {
    bool wants_tools;    /* toolsListChanged is true */
    struct str task_ids; /* JSON array of strings; empty without one */
    size_t own_count;    /* of these, the ids that begin as the gateway's own do */
};

/* Reads `filter`, a checked JSON object. Returns NULL, or what is wrong with it in words. */
const char *mcp_subscription_read(struct str filter, struct mcp_subscription *subscription);
/* Writes the filter for the server: without the ids of the gateway's own tasks. false: nothing is
 * left to ask the server for, and nothing was written. */
bool mcp_subscription_write_rest(struct buffer *out, struct str filter);
/* Writes what is honoured: `honoured` (JSON object of the server's, or empty), the list of tools
 * if `wants_tools`, and the ids `own` (JSON strings with commas between them, or empty). */
void mcp_subscription_write_honoured(struct buffer *out, struct str honoured, bool wants_tools,
                                     struct str own);
