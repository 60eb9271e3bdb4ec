/*
 * The modern request that stands for a legacy client's: its name, arguments and other params are
 * copied as bytes; the envelope has what the client said in its session; the headers repeat it.
 * Policy has judged the client's own bytes. On the call's loop.
 */
#pragma once

#include "call/call.h"
#include "call/headers.h"

/* The declarations of the session, of call->declared. */
struct modern_envelope;
void bridge_request_envelope(const struct call *call, struct modern_envelope *envelope);

/* Writes the request into empty buffers, and what goes up beside it into `headers` (owning). */
void bridge_request_write(const struct call *call, struct headers *headers, struct buffer *body,
                          struct buffer *id);
/* The same for a request of the gateway's own, in the client's place. `members` are those of
 * params, as JSON object; empty: none. The name is that of Mcp-Name, or empty. */
void bridge_request_write_own(const struct call *call, const char *method, struct str members,
                              struct headers *headers, struct buffer *body, struct buffer *id);

/* Puts the modern request in the place of the one that a task keeps, with its headers: it is what
 * operators are shown, and what they approve. */
void bridge_request_keep(const struct call *call, struct task *task);
/* The same of a call of the control plane, whose client is the gateway. */
void bridge_request_keep_own(struct catalog *catalog, const struct config_source *source,
                             const struct envelope *envelope, struct task *task);
/* The digest that such a task has (request_parts_digest()). */
void bridge_request_digest(const struct call *call, char digest[DIGEST_HEX_BYTES]);
