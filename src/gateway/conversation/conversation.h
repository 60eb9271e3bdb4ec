/*
 * A request at a server, and the client that it is for. It goes on while the client, who was asked
 * something, has no request open: the client comes back with another request, a new leg, which may
 * be on another worker. On the worker's loop, unless said otherwise.
 */
#pragma once

#include "call/call.h"
#include "server/protocol.h"
#include "taskgate/core/random.h"

/* What goes to the client's leg. Borrowed until the receiver returns. */
struct client_event {
    char leg[RANDOM_UUID_BYTES];
    struct event event; /* EVENT_QUESTION: a round; its text is an object of requests by keys */
    char handle[TASK_ID_BYTES]; /* of the round, which ends the leg */
    int64_t round;
};

/* A kind of client. */
struct client_protocol {
    /* false: the leg is not on this worker. One that has ended is on none. */
    bool (*take)(struct gateway_worker *worker, const struct client_event *event);
};

struct conversation_start {
    const struct client_protocol *client;
    const struct server_protocol *server;
    const char *leg, *handle; /* copied; of no other conversation */
    int64_t silence_ms;       /* 0: no limit */
    size_t most_bytes;        /* of the reply */
    struct str declared;      /* the client's capabilities; empty: it is asked nothing */
};
/* Sends the request of the call, for which server->obtain() has got what it needs. */
void conversation_begin(struct call *call, const struct conversation_start *start);

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
 * the conversation is; what follows goes to this leg. */
void conversation_answer(struct gateway_worker *worker, const char *handle, const char *leg,
                         struct str answers);
/* The client of this leg has gone before its answer: its call is given up. */
void conversation_leg_gone(struct gateway_worker *worker, const char *handle, const char *leg);
/* The client that was asked gets another answer than that of its call, which is given up. */
void conversation_abandon(struct gateway_worker *worker, const char *handle);
/* Gives up the calls whose client was asked something and has no request open: what they wait for
 * cannot come to this process any more. */
void conversations_end_waiting(struct gateway_worker *worker);
/* Ends all of the worker: the process ends. */
void conversations_drop(struct gateway_worker *worker);
