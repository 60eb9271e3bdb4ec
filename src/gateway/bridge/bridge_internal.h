/* The bridged call itself, for the files that carry it. */
#pragma once

#include "bridge_call.h"
#include "call/call.h"
#include "taskgate/core/magic.h"

struct bridge_call {
    uint32_t magic; /* BRIDGE_CALL_MAGIC */
    struct call_part part;
    struct call *call;
    struct bridge_call_options options;
    void (*replied)(void *context, const struct exchange_reply *reply);
    struct exchange *exchange; /* NULL while the client is asked, and between two tries */
    bool has_looked;           /* the list of tools was fetched for it, for its headers */
    uint64_t number;           /* of its questions */
    int64_t rounds;            /* in which the client was asked */
    size_t open;               /* questions that are not answered */
    struct buffer answers;     /* members of inputResponses, with commas between them */
    struct buffer required;    /* the server's result that a task is to ask for; empty: none */
    struct buffer state;       /* the server's requestState, JSON text; empty: it gave none */
    struct loop_timer timer;   /* the next try, or the end of the wait for the client */
    int64_t again_ms, again_until_ms; /* of a server that wants to be asked again; monotonic */
    struct loop_timer slow;
    int64_t started_ms; /* monotonic */
};
#define BRIDGE_CALL_MAGIC 0x47574211

static inline struct bridge_call *bridge_call_from(void *context)
{
    return MAGIC_CAST(struct bridge_call, BRIDGE_CALL_MAGIC, context);
}

/* Each file calls only those above it. */

/* ---- bridge_send.c ---- */
/* The call's; NULL without one. */
struct bridge_call *bridge_call_of(const struct call *call);
/* Makes it a part of the call. */
void bridge_call_add(struct call *call, struct bridge_call *bridge);
/* Of a worker, by its number; NULL when it has ended. */
struct bridge_call *bridge_call_find(const struct gateway_worker *worker, uint64_t number);
/* Sends the request, whose reply goes to `replied`, with more members of params (see
 * bridge_request_write()). */
void bridge_call_send(struct bridge_call *bridge, struct str more);
/* Takes it off its call, which is about to be answered. */
struct call *bridge_call_finish(struct bridge_call *bridge);
/* The server cannot be told what it needs: the call of a tool gets a result that says so, any other
 * an error. */
void bridge_call_give_up(struct bridge_call *bridge, const char *why);

/* ---- bridge_rounds.c ---- */
/* The server requires input. */
void bridge_rounds_begin(struct bridge_call *bridge, struct str result);
