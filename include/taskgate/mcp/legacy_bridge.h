/*
 * The translation between a legacy client (up to 2025-11-25) and a server that speaks the modern
 * era alone (2026-07-28). Names and arguments keep their bytes. Source: MCP 2026-07-28, basic and
 * server/tools; the 2025-11-25 schema.
 *
 * Text that comes in is checked JSON. Writers append to a buffer of the caller's. Any thread;
 * nothing is owned.
 */
#pragma once

#include <stdbool.h>

#include "taskgate/core/buffer.h"
#include "taskgate/core/str.h"

/* The client's `capabilities` of `initialize`, as each modern request declares them: without tasks,
 * which are another extension there. A form is named where the client only said `elicitation: {}`.
 */
void legacy_bridge_write_capabilities(struct buffer *out, struct str declared);

/* The result of `initialize` by that of `server/discover`: in the version that was asked for
 * (JSON text) if it is a legacy one, else in the last of these. `name` stands in for a server that
 * does not say who it is. */
void legacy_bridge_write_initialize(struct buffer *out, struct str discovered, struct str asked,
                                    const char *name);

/* A result as the legacy era has it: without `resultType`, `ttlMs`, `cacheScope` and serverInfo. */
void legacy_bridge_write_result(struct buffer *out, struct str result);
/* The same of tools/list. An outputSchema that is not of an object is put into one, under the key
 * `result`; a tool whose x-mcp-header is wrong is left out, as HTTP clients must do. */
void legacy_bridge_write_tools(struct buffer *out, struct str result);
/* Whether such an outputSchema is wrapped. */
bool legacy_bridge_wraps(struct str output_schema);
/* The same of tools/call. The structured content is wrapped if that of the tool is, and where it is
 * no object. */
void legacy_bridge_write_call_result(struct buffer *out, struct str result, bool is_wrapped);

/* A notification on a stream of `subscriptions/listen` without the id of that. */
void legacy_bridge_write_notification(struct buffer *out, struct str message);

/* The `params` of a request: all members of the client's (JSON text, or empty) but those that mean
 * something else in the modern era, and a `_meta` that has the client's own members and the
 * envelope. `capabilities`, `info` and `log_level` are JSON texts; the last two may be empty. */
struct legacy_bridge_envelope {
    struct str capabilities, info, log_level;
};
void legacy_bridge_write_params(struct buffer *out, struct str params,
                                const struct legacy_bridge_envelope *envelope);

/* Adds the tasks extension to these clientCapabilities (JSON object). */
void legacy_bridge_write_with_tasks(struct buffer *out, struct str capabilities);

/* A value of `inputRequests` as a request with this id (text that needs no escape). A visit of a
 * URL gets an id, which it has in the legacy era alone. */
void legacy_bridge_write_request(struct buffer *out, struct str id, struct str request);

/* Whether a log level (JSON text) is one of the protocol's eight. */
bool legacy_bridge_is_log_level(struct str level);
