/*
 * A request of a legacy client on its way to a server that speaks the modern era alone: rebuilt,
 * sent, sent again with what the client was asked, and answered. The server's progress and log
 * messages go down on the client's stream meanwhile. A client that leaves closes the server's
 * stream, which is the cancellation there. On the call's loop.
 */
#pragma once

#include "call/call.h"
#include "server/http.h"

struct bridge_call_options {
    int64_t silence_ms; /* 0: none */
    /* The whole JSON-RPC response with the client's id, whose result is still the server's. The
     * call waits for nothing any more. */
    void (*answered)(struct call *call, struct str message);
    /* There is no response that could be read. */
    void (*failed)(struct call *call, const struct exchange_reply *reply);
    /* Called once when there is no response after `slow_ms`, and again after
     * bridge_call_repeat_slow(). 0: never. */
    int64_t slow_ms;
    void (*slow)(struct call *call);
    /* The client has gone. The server's stream is closed unless this takes it. NULL: it is closed.
     */
    void (*left)(struct call *call);
    /* Each round is a request of its own: whether the rules in force now forbid it. Then the call
     * is answered. NULL: they are not asked. */
    bool (*forbidden)(struct call *call);
    /* The client cannot be asked this (the method of the question) in the call: whether it is asked
     * in the task that the call becomes, by `slow` or `left`. NULL: the call goes on without. */
    bool (*asks_later)(struct call *call, struct str method);
};

/* The client's session is known: call->declared. */
void bridge_call_start(struct call *call, const struct bridge_call_options *options);

/* Whether the call waits for its server, or for a task to ask its client. It does not while its
 * client is asked. */
bool bridge_call_is_under_way(const struct call *call);
/* Whether it waits for a task to ask its client. */
bool bridge_call_asks_later(const struct call *call);
/* How long ago it was started. */
int64_t bridge_call_age_ms(const struct call *call);
/* Calls options.slow() once more. */
void bridge_call_repeat_slow(struct call *call, int64_t in_ms);
/* Another limit of silence, in later rounds too; 0: none. A limit that holds already does not begin
 * anew. */
void bridge_call_set_silence(struct call *call, int64_t silence_ms);
/* Of a call that is under way: what the server sends is received from it, or NULL where the server
 * requires input. exchange_read_messages() ends the bridge; its call stays deferred, and is
 * answered by the one that takes over. */
struct exchange *bridge_call_exchange(const struct call *call);
/* Takes what the server requires, and ends the bridge as well. */
void bridge_call_take_required(struct call *call, struct buffer *required);
