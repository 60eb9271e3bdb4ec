/*
 * `requestState` of the gateway's own: what a modern client without tasks sends back when it
 * repeats a held call (MCP 2026-07-28, patterns/mrtr). It names a task and proves that this caller
 * was given that task for this very call. The task alone decides what may be done.
 */
#pragma once

#include "call.h"
#include "taskgate/store/replicas.h"

struct request_state {
    char id[TASK_ID_BYTES];
    int64_t round;    /* how often the call has been answered with a state, this answer included */
    int64_t until_ms; /* wall clock */
    int64_t given_ms; /* when the client was given it, wall clock; set by request_state_write() */
    enum request_state_kind {
        REQUEST_STATE_HOLD,    /* nothing was asked */
        REQUEST_STATE_CONFIRM, /* the client's user was asked to confirm the call */
        REQUEST_STATE_EXECUTE, /* the server asks, while it runs the call */
        REQUEST_STATE_KIND_COUNT
    } kind;
    /* The process that gave the state, where several share a database; "": not said. */
    char replica[STORE_REPLICA_ID_BYTES];
    int64_t epoch;
};

/* The one message of the refusal of any state that is not this call's. */
#define REQUEST_STATE_REFUSAL "requestState is not valid for this call"

/* Whether the call's requestState has the gateway's form. Any other is the server's. */
bool request_state_is_ours(const struct call *call);
/* Reads the id and the process alone. Nothing is judged: what the caller may do is not known.
 * false: it is not sealed with a key of this process. */
bool request_state_peek(const struct call *call, struct request_state *state);
/* Appends a JSON string, with this process in it. After call_identify(). */
void request_state_write(const struct call *call, const struct request_state *state,
                         struct buffer *out);
/* false: it is forged, has expired, or is another caller's, call's or source's. The log says which,
 * the client is told REQUEST_STATE_REFUSAL. */
bool request_state_open(const struct call *call, struct request_state *state);
