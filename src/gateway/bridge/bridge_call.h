/*
 * A request of a legacy client on its way to a server that speaks the modern era alone: rebuilt,
 * sent, sent again with what the client was asked, and answered. The server's progress and log
 * messages go down on the client's stream meanwhile. A client that leaves closes the server's
 * stream, which is the cancellation there. On the call's loop.
 */
#pragma once

#include "mcp_client/rpc_call.h"
#include "request/call.h"

struct bridge_call_options {
    int64_t silence_ms; /* 0: none */
    /* The whole JSON-RPC response with the client's id, whose result is still the server's. The
     * call waits for nothing any more. */
    void (*answered)(struct call *call, struct str message);
    /* There is no response that could be read. */
    void (*failed)(struct call *call, const struct rpc_call_reply *reply);
};

/* The client's session is known: call->bridged. */
void bridge_call_start(struct call *call, const struct bridge_call_options *options);

/* A JSON-RPC response of a client: answers the call, also where it answers nothing. */
void bridge_call_take_response(struct call *call);
