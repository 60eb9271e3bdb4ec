/*
 * The headers of the calls that became tasks. An execution sends those of the create; a later call
 * of the owner exchanges its credentials alone: Authorization, Cookie, DPoP, Mcp-Session-Id
 * (behaviour 7.17).
 *
 * The process keeps them in memory, for all workers; the store has a digest of them, by which a
 * call after a restart is known to have the same ones. Any thread.
 */
#pragma once

#include "headers.h"
#include "taskgate/core/digest.h"

struct request_headers;

struct request_headers *request_headers_create(void);
void request_headers_destroy(struct request_headers *table);

/* The digest that the store keeps of the create: of its end-to-end headers but the credentials,
 * and but those that differ between calls of one client (Accept, User-Agent, Last-Event-ID,
 * MCP-Protocol-Version, the trace context, what repeats a modern body). */
void request_headers_digest(const struct http_exchange *exchange, char hex[DIGEST_HEX_BYTES]);
/* Writes those of the call that go to the server and may change what it does there, as a JSON
 * object: each value as text, null where it is a credential. Authorization and the session, which
 * say whose the call is, are left out, and so is what varies. */
struct call;
void request_headers_show(struct buffer *out, const struct call *call);
/* The most that a request's headers may have for a call that waits: names and values. They are kept
 * as long as the task is not over: here, and the credentials with the execution. */
#define REQUEST_HEADERS_MOST_BYTES ((size_t)16 * 1024)
bool request_headers_fit(const struct http_exchange *exchange);
/* Keeps the headers of the create, for a session by its client_key_of_session(). */
void request_headers_keep(struct request_headers *table, struct str id, struct str session_key,
                          const struct http_exchange *exchange);
/* Adds to `headers` (empty, owning) the credentials of this call, which an execution needs.
 * false: the create's headers are not known any more, and those of the call do not fit `digest`;
 * an empty one fits all. Or the call's headers are too long. */
bool request_headers_take(struct request_headers *table, struct str id, struct str session_key,
                          const char *digest, const struct http_exchange *exchange,
                          struct headers *headers);
/* Puts the other headers of the create before the credentials in `headers` (owning). false: they
 * are not known any more. */
bool request_headers_complete(struct request_headers *table, struct str id,
                              struct headers *headers);
void request_headers_forget(struct request_headers *table, struct str id);
void request_headers_forget_session(struct request_headers *table, struct str session_key);

/* Digest of the credentials in `headers`, those of the source among them (NULL: none). */
void request_headers_digest_credentials(const struct headers *headers,
                                        const struct config_source *source,
                                        char hex[DIGEST_HEX_BYTES]);
