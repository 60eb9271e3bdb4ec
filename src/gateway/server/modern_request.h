/*
 * Modern requests of the gateway's own: their envelope, and the headers that repeat parts of it.
 */
#pragma once

#include "call/headers.h"

/* {"jsonrpc":"2.0","id":"tg:<uuid>","method":…,"params":{…,"_meta":…}}. `members` are the other
 * members of params, as JSON text without braces, or empty; `id` gets the JSON text of the id. The
 * gateway declares no capabilities. */
void modern_request_write(struct buffer *body, struct buffer *id, const char *method,
                          struct str members);
/* Puts the headers of such a request, for a method without Mcp-Name, in the place of a client's. */
void modern_request_set_headers(struct headers *headers, const char *method);
/* Whether these headers, which a client has sent, are of a modern request. */
bool modern_request_has_headers(const struct headers *headers);
