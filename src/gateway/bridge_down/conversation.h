/*
 * The server's side of a bridged call: one request to a legacy server, and all that the server says
 * of it. It goes on while its client, who was asked something, has no request open: the client
 * comes back with a new leg. On its worker's loop.
 */
#pragma once

#include "leg.h"
#include "server/sessions.h"

/* Sends the call of this leg, on the session that the call has, which is taken off it. */
void conversation_begin(struct call *call);
/* A handle names a conversation in the sealed `requestState`. It is known to this process alone,
 * and to all its workers. */
#define CONVERSATION_HANDLE_PREFIX "up_"
enum conversation_claim {
    CONVERSATION_CLAIMED,  /* the answer may go up: nobody else can claim the round any more */
    CONVERSATION_ANSWERED, /* the round has been answered */
    CONVERSATION_LOST,     /* there is no such call, or no more */
};
/* The client answers a round, once. On any worker. */
enum conversation_claim conversation_claim(struct gateway *gateway, const char *handle,
                                           int64_t round);
/* Gives the answers of a claimed round (JSON object, or empty) to the server, on whatever worker
 * the call is; what follows goes to the call's leg. */
void conversation_answer(struct call *call, const char *handle, struct str answers);
/* The client of this leg has gone before its answer: its call is given up. */
void conversation_leg_gone(struct gateway_worker *worker, const char *leg);
/* The client that was asked gets another answer than that of its call, which is given up. */
void conversation_abandon(struct gateway_worker *worker, const char *handle);
/* Gives up the calls whose client was asked something and has no request open: what they wait for
 * cannot come to this process any more. */
void conversations_end_waiting(struct gateway_worker *worker);
/* Ends all of the worker: the process ends. */
void conversations_drop(struct gateway_worker *worker);
