/*
 * The GET stream of a bridged client: the gateway's, fed by a listen at the modern server. A listen
 * that breaks off is begun anew, after pauses that grow; then the client is told once that all
 * lists may have changed. On the call's loop.
 */
#pragma once

#include "call/call.h"

/* Answers the GET with a stream. call->bridged is set. */
void bridged_stream_open(struct call *call);
/* The resources that the session has subscribed to have changed: its streams, of whatever worker,
 * listen anew, and end the earlier listen then. */
void bridged_stream_renew(const struct call *call);
/* Whether a GET stream of the call's session is open, at whatever worker. */
bool bridged_stream_is_open(const struct call *call);
/* Somebody who tells a session's streams of a resource until one of them listens to it itself. In
 * worker->handovers; its texts are its own. */
struct bridged_handover {
    struct list node;
    const char *source, *session, *uri;
    void (*covered)(struct bridged_handover *handover); /* may free it */
};
/* A server's news of a resource for the session's streams, which may not listen to it themselves
 * yet. */
void bridged_stream_tell(struct gateway *gateway, struct str source, struct str session,
                         struct str message);
/* The session has ended, and its streams with it. */
void bridged_stream_end_session(const struct call *call);
