/*
 * Texts in the words of the legacy era (up to 2025-11-25), made of what the other side has said in
 * the modern one. Names and arguments keep their bytes. Source: the 2025-11-25 schema; MCP
 * 2026-07-28, basic and server/tools.
 *
 * Texts that come in have passed json_check() or envelope_read(). Writers append to a buffer of the
 * caller's. Any thread; nothing is owned.
 */
#pragma once

#include <stdbool.h>

#include "taskgate/core/buffer.h"
#include "taskgate/core/str.h"
#include "taskgate/json/envelope.h"

/* ---- to a server ---- */

/* The params of `initialize` for a client that declares these capabilities, with its clientInfo or,
 * when that is empty, a name that says that none was given. */
void legacy_text_write_initialize(struct buffer *out, struct str capabilities,
                                  struct str client_info);
/* The request with another id (JSON text): without what the era does not have, which are the
 * reserved keys of `_meta`, `task`, `requestState` and `inputResponses`. All other members of
 * params keep their bytes. */
void legacy_text_write_request(struct buffer *out, const struct envelope *envelope, struct str id);

/* ---- to a client ---- */

/* The result of `initialize` by that of `server/discover`: in the version that was asked for
 * (JSON text) if it is a legacy one, else in the last of these. `name` is that of a server that
 * does not say who it is. */
void legacy_text_write_initialized(struct buffer *out, struct str discovered, struct str asked,
                                   const char *name);
/* A result without `resultType`, `ttlMs`, `cacheScope` and serverInfo. */
void legacy_text_write_result(struct buffer *out, struct str result);
/* The same of tools/list. An outputSchema that is not of an object is put into one, under the key
 * `result`; a tool whose x-mcp-header is wrong is left out, as HTTP clients must do. */
void legacy_text_write_tools(struct buffer *out, struct str result);
/* Whether such an outputSchema is wrapped. */
bool legacy_text_wraps(struct str output_schema);
/* The same of tools/call. The structured content is wrapped if that of the tool is, and where it is
 * no object. */
void legacy_text_write_call_result(struct buffer *out, struct str result, bool is_wrapped);
/* A value of `inputRequests` as a request with this id (text that needs no escape). A visit of a
 * URL gets an id, which it has in the legacy era alone. */
void legacy_text_write_question(struct buffer *out, struct str id, struct str request);
