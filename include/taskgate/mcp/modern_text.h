/*
 * Texts in the words of the modern era (2026-07-28), made of what the other side has said in the
 * legacy one. Names and arguments keep their bytes. Source: MCP 2026-07-28, basic, server/tools and
 * patterns/mrtr; the 2025-11-25 schema.
 *
 * Texts that come in have passed json_check() or envelope_read(). Writers append to a buffer of the
 * caller's. Any thread; nothing is owned.
 */
#pragma once

#include <stdbool.h>

#include "taskgate/core/buffer.h"
#include "taskgate/core/str.h"

/* ---- to a server ---- */

/* The client's `capabilities` of `initialize`, as each modern request declares them: without tasks,
 * which are another extension there. A form is named where the client only said `elicitation: {}`.
 */
void modern_text_write_capabilities(struct buffer *out, struct str declared);
/* Adds the tasks extension to these clientCapabilities (JSON object). */
void modern_text_write_with_tasks(struct buffer *out, struct str capabilities);

/* The `params` of a request: all members of the client's (JSON text, or empty) but those that mean
 * something else in the modern era, and a `_meta` that has the client's own members and the
 * envelope. `capabilities`, `info` and `log_level` are JSON texts; the last two may be empty. */
struct modern_envelope {
    struct str capabilities, info, log_level;
};
void modern_text_write_params(struct buffer *out, struct str params,
                              const struct modern_envelope *envelope);

/* ---- to a client ---- */

/* The result of `server/discover` that the server's result of `initialize` amounts to, with the
 * tasks that the gateway makes. It announces notifications of the list of tools, which a reload
 * changes, whatever the server says; without `can_listen` no others. */
void modern_text_write_discover(struct buffer *out, struct str initialized, bool can_listen);
/* A result with `resultType`, and where clients may keep it, with `ttlMs` 0 and `cacheScope`
 * "private"; with the server's name in `_meta` and no other reserved key there. `server_info` may
 * be empty. false: it is no object, and nothing is written. */
bool modern_text_write_result(struct buffer *out, struct str result, bool is_cacheable,
                              struct str server_info);
/* An error object with a code that the modern era has: a code that means something else there is
 * -32603, with the server's own error in `data`. `is_read`: of resources/read, where -32002 is
 * -32602. */
void modern_text_write_error(struct buffer *out, struct str error, bool is_read);
/* The server's request as a value of `inputRequests`. */
void modern_text_write_question(struct buffer *out, struct str message);
/* The URLs that the server's error -32042 wants to be opened, as `inputRequests`. false: the error
 * is another one, or names none; nothing is written. */
bool modern_text_write_urls(struct buffer *out, struct str error);
