/*
 * A listener: what a server says outside of calls, in one form for servers of both eras. A modern
 * server says it on a stream of `subscriptions/listen`; a legacy one on the GET stream of a session
 * that is opened for the listener, with `resources/subscribe` for each resource. On the loop of the
 * call that began it.
 */
#pragma once

#include "call/call.h"

struct listener;

struct listener_events {
    /* The server serves these members of the filter (JSON object). Comes first, once. */
    void (*opened)(void *context, struct str honoured);
    /* A notification that the client may see, without the id of a subscription. */
    void (*message)(void *context, struct str message);
    /* The server has ended it, or has refused it, or the process ends. The listener is freed when
     * this returns. */
    void (*ended)(void *context, const struct listener *listener);
};

/* Begins to listen for the call's client; `filter` is the JSON object of params.notifications.
 * `listener` is set first. A server that opens no session for it is the answer to the call: then
 * no event comes. At a legacy server no event comes after the call's end, either. */
void server_listen(struct call *call, struct str filter, const struct listener_events *events,
                   void *context, struct listener **listener);
/* No event comes any more. Allowed inside one; NULL is allowed. */
void listener_stop(struct listener *listener);
/* Says, by messages, that each list has changed whose changes the server serves. */
void listener_notify_of_lists(const struct listener *listener);
/* Whether the server has said what it serves, and that is nothing. */
bool listener_is_empty(const struct listener *listener);
