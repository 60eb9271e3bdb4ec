/*
 * The gateway's changes to a modern result that clients may keep: lists, and the answer to
 * `server/discover`. Source: MCP 2026-07-28, utilities/caching. Any thread; nothing is owned.
 */
#pragma once

#include <stdint.h>

#include "taskgate/core/buffer.h"
#include "taskgate/core/str.h"

/* A client may keep a list of the gateway's so long, because a reload can change it. */
#define MCP_CACHEABLE_MOST_MS 60000

/* Writes `result` (checked JSON) with `cacheScope` "private", whatever the server says, because
 * each owner has a list of their own; with `ttlMs` at most `most_ms`, and 0 where the server gives
 * none; and with a `resultType`. */
void mcp_cacheable_write(struct buffer *out, struct str result, int64_t most_ms);

/* The same without a `resultType`, which the legacy era does not know. */
void mcp_cacheable_write_untyped(struct buffer *out, struct str result, int64_t most_ms);

/* A list or an answer to `server/discover` was written behind `start` of `out`, from `original`. If
 * they differ, `digest` and `tag` at its top are taken out, because they are of the original. */
void mcp_cacheable_drop_tags(struct buffer *out, size_t start, struct str original);

/* Whether a result of `server/discover` lists the version. */
bool mcp_discover_lists(struct str result, struct str version);
/* Whether the server of such a result makes tasks. */
bool mcp_discover_offers_tasks(struct str result);
/* Writes a result of `server/discover` for a client: of the versions the one that the gateway
 * speaks; without `capabilities.tasks`, which does not exist in this era; with the tasks extension
 * where the gateway makes tasks; with `tools.listChanged`, for the gateway tells listeners of a
 * reload whatever the server does; otherwise as the server has it. Cacheable as above. */
void mcp_discover_write(struct buffer *out, struct str result, bool offers_tasks, int64_t most_ms);
