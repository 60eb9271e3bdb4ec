/*
 * A modern client before a server of the legacy era: what each of the two says, in the words of the
 * other. Source: MCP 2025-11-25 and 2026-07-28, both schemas; 2026-07-28, patterns/mrtr.
 *
 * All JSON texts have passed json_check() or envelope_read(). Writers append to a buffer of the
 * caller's. Any thread; nothing is owned.
 */
#pragma once

#include <stdbool.h>

#include "taskgate/core/buffer.h"
#include "taskgate/core/str.h"
#include "taskgate/json/envelope.h"

/* ---- up ---- */

/* The params of `initialize` for a client that declares these capabilities, with its clientInfo or,
 * when that is empty, a name that says that none was given. */
void legacy_server_write_initialize(struct buffer *out, struct str capabilities,
                                    struct str client_info);
/* The request with another id (JSON text): without what the era does not have, which are the
 * reserved keys of `_meta`, `task`, `requestState` and `inputResponses`. All other members of
 * params keep their bytes. */
void legacy_server_write_request(struct buffer *out, const struct envelope *envelope,
                                 struct str id);

/* The request as a value of `inputRequests`. */
void legacy_server_write_question(struct buffer *out, struct str message);

/* ---- down ---- */

/* The result of `server/discover` that the server's result of `initialize` amounts to, with the
 * tasks that the gateway makes. It announces notifications of the list of tools, which a reload
 * changes, whatever the server says; without `can_listen` no others. */
void legacy_server_write_discover(struct buffer *out, struct str initialized, bool can_listen);
/* A result in the modern form: with `resultType`, and where clients may keep it, with `ttlMs` 0 and
 * `cacheScope` "private"; with the server's name in `_meta` and no other reserved key there.
 * `server_info` may be empty. false: it is no object, and nothing is written. */
bool legacy_server_write_result(struct buffer *out, struct str result, bool is_cacheable,
                                struct str server_info);
/* An error object with a code that the modern era has: a code that means something else there is
 * -32603, with the server's own error in `data`. `is_read`: of resources/read, where -32002 is
 * -32602. */
void legacy_server_write_error(struct buffer *out, struct str error, bool is_read);
/* The URLs that the server's error -32042 wants to be opened, as `inputRequests`. false: the error
 * is another one, or names none; nothing is written. */
bool legacy_server_write_urls(struct buffer *out, struct str error);

/* ---- notifications ---- */

/* A notification of the server's without the reserved keys of its `_meta`. */
void legacy_server_write_notification(struct buffer *out, struct str message);

/* ---- log messages ---- */

/* The rank of a level (JSON text), 0 for "debug"; -1: there is no such level. */
int legacy_server_level(struct str level);
