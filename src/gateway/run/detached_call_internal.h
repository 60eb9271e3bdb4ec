/* The promotion itself, for the files that run and answer it. */
#pragma once

#include "detached_call.h"
#include "mcp_client/rpc_call.h"
#include "outcome.h"
#include "request/call_part.h"
#include "request/client_profile.h"
#include "server_messages.h"

struct detached_call {
    struct call_part part; /* of `call` */
    struct list node;      /* in worker.detached */
    struct gateway_worker *worker;
    int references; /* one while it is under way, and each message on its way to the store */
    struct snapshot *snapshot;
    const struct config_source *source;
    struct call *call; /* who waits for the answer; NULL when nobody does any more */
    char key[CLIENT_KEY_BYTES];
    bool is_executed;  /* by execute_tool */
    bool is_abandoned; /* its client has sent notifications/cancelled */
    bool has_ended;
    int64_t patience_ms;
    struct rpc_call *rpc;     /* NULL once upstream has answered */
    struct headers headers;   /* owned copies: what another message to upstream needs */
    struct buffer request_id; /* JSON text of the id that upstream sees: the client's */
    struct loop_timer timer;  /* the end of the client's patience; later the next try to store */
    char session[DIGEST_HEX_BYTES];
    struct input_audience audience; /* who answers what upstream asks meanwhile */
    uint64_t number;                /* of the call, for its questions */
    struct server_budget budget;    /* for the requests of the server */
    struct task *task;              /* NULL before it is one */
    bool is_stored;
    bool has_outcome;
    struct outcome outcome;
};

/* ---- detached_call.c ---- */
/* The client has given up, if it still waits: it reads no answer, so none tells it anything that
 * is told once. */
void detached_call_stop_running(struct detached_call *detached);

/* ---- detached_cancel.c: what a client gives up goes on ---- */
void detached_call_register(struct detached_call *detached);
void detached_call_unregister(struct detached_call *detached);
