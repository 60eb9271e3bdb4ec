/*
 * Requests of the gateway's own to a modern server, for a client: they say what that client has
 * said of itself, and nothing of the gateway's. Any thread.
 */
#pragma once

#include "call/headers.h"
#include "taskgate/json/envelope.h"

/* Appends the `_meta` of such a request: version, capabilities and name of the client, as in its
 * own request. */
void client_request_write_meta(struct buffer *meta, const struct envelope *envelope);
/* The same of a request that is stored. */
void client_request_read_meta(struct buffer *meta, struct str body);

struct client_request {
    const char *method;
    struct str name;    /* the value of Mcp-Name, or empty */
    struct str members; /* of params, JSON text without braces, or empty */
    struct str meta;    /* JSON object */
};
/* Writes body and id, as rpc_call_write_request(), and sets the headers that repeat them. `headers`
 * owns its items. */
void client_request_write(const struct client_request *request, struct headers *headers,
                          struct buffer *body, struct buffer *id);
