/*
 * One `subscriptions/listen` at a modern server, for a bridged client: what it is told there comes
 * out as legacy notifications. On the loop of the call that began it; it may outlive that call.
 */
#pragma once

#include "call/call.h"

struct bridge_listen;

struct bridge_listen_callbacks {
    /* The server honours these members of the filter (JSON object). Comes first, once. */
    void (*acknowledged)(void *context, struct str honoured);
    /* A notification that the client may see: its method, and the whole message. */
    void (*news)(void *context, struct str method, struct str message);
    /* The stream is over; `listen` goes when this returns. `error` is the server's JSON-RPC error,
     * or empty. */
    void (*ended)(void *context, const struct bridge_listen *listen, struct str error);
    /* In place of it where the process ends. May be NULL. */
    void (*dropped)(void *context);
};

/* `filter` is the JSON object of params.notifications. */
struct bridge_listen *bridge_listen_start(const struct call *call, struct str filter,
                                          const struct bridge_listen_callbacks *callbacks,
                                          void *context);
/* No callback comes any more. Allowed inside one but `ended` and `dropped`; NULL is allowed. */
void bridge_listen_stop(struct bridge_listen *listen);
/* Whether the server has acknowledged, and honours nothing. */
bool bridge_listen_is_empty(const struct bridge_listen *listen);
/* Whether the server has said that it tells of the URI (decoded text). */
bool bridge_listen_covers(const struct bridge_listen *listen, struct str uri);
