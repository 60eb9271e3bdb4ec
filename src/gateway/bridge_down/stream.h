/*
 * `subscriptions/listen` of a bridged call: the notification stream of a legacy session of its own,
 * and `resources/subscribe` for each resource. On the worker's loop.
 */
#pragma once

#include "call/call.h"

/* Each is called while the call's client is there. */
struct bridge_stream_events {
    /* The server serves this part of the filter (JSON object); {} when it serves nothing, and then
     * nothing more comes. */
    void (*open)(struct call *call, struct str honoured);
    /* A notification that is part of it, a whole message. */
    void (*message)(struct call *call, struct str message);
    /* The server has ended the stream. */
    void (*ended)(struct call *call);
    /* Whether the client may hear of the resource; those that it may not are not subscribed to. */
    bool (*is_visible)(const struct call *call, struct str uri);
};

/* Opens the stream for the filter (JSON object, copied) until the call ends. Answers the call
 * itself when the server opens no session. */
void bridge_down_listen(struct call *call, struct str filter,
                        const struct bridge_stream_events *events);
