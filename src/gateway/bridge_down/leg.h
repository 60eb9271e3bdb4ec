/*
 * The client's side of a bridged call: one request, from its beginning to its answer. A call whose
 * server asks something has several, one after the other, and they may be on different workers.
 * The server's messages come as events, which find a leg on whatever worker it is. On the worker's
 * loop.
 */
#pragma once

#include "call/call.h"
#include "relay/relay.h"
#include "taskgate/core/random.h"

enum leg_event_kind {
    LEG_PASS,    /* `text`: a notification of the server's that belongs to this call */
    LEG_ANSWER,  /* `text`: the server's response, a whole message */
    LEG_ASK,     /* `text`: an `inputRequests` object; `handle`, `number`: the round */
    LEG_FAILED,  /* `number`: enum relay_failure */
    LEG_EXPIRED, /* the server does not know the session any more, and has not run the call */
};

struct leg_event {
    char leg[RANDOM_UUID_BYTES];
    enum leg_event_kind kind;
    struct str text;
    struct str server_info; /* of LEG_ANSWER: JSON text, or empty */
    char handle[TASK_ID_BYTES];
    int64_t number;
};

/* The leg's calls of the file that made it. */
struct leg_callbacks {
    /* The client has gone before the answer: the call is to be given up. */
    void (*gone)(struct gateway_worker *worker, const char *leg);
    /* LEG_EXPIRED, of a request that does no harm when it is sent again; once. */
    void (*again)(struct call *call);
};

/* Begins a leg of the call. `callbacks` and what `options` point to are constants. */
void leg_begin(struct call *call, const struct relay_options *options,
               const struct leg_callbacks *callbacks);
/* The id and options of the call's leg. */
const char *leg_id(const struct call *call);
const struct relay_options *leg_options(const struct call *call);
/* The call with this leg on this worker; NULL: none. */
struct call *leg_find(struct gateway_worker *worker, const char *leg);

/* Delivers the event to its leg, at once if that is on this worker. An event of a leg that has
 * ended is dropped. */
void leg_send(struct gateway_worker *worker, const struct leg_event *event);
/* An HTTP answer that is no JSON-RPC, as a refusal of credentials: it goes down as it is. The leg
 * is on this worker, or is answered as by RELAY_UNREADABLE. */
void leg_send_http(struct gateway_worker *worker, const char *leg,
                   const struct exchange_reply *reply);
