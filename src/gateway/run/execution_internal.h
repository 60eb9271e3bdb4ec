/* The execution itself, for the files that run it. */
#pragma once

#include "execution.h"
#include "input/input_request.h"
#include "mcp_client/rpc_call.h"
#include "outcome.h"
#include "request/server_budget.h"

struct execution {
    struct gateway_worker *worker;
    int references; /* the worker's map, and each message under way to the store */
    char id[TASK_ID_BYTES];
    char session[DIGEST_HEX_BYTES];            /* of the request that brought the credentials */
    struct headers credentials;                /* owned copies; never stored, never logged */
    struct input_audience audience;            /* who answers what upstream asks */
    bool dropped;                              /* no longer in the worker's map */
    bool own_session;                          /* the gateway's own, for the control plane */
    char credentials_digest[DIGEST_HEX_BYTES]; /* of what would be sent; set by each beginning */
    /* While it runs. */
    bool running;
    bool has_begun; /* and is the one that runs: other workers may have tried, too */
    struct task *task;
    struct snapshot *snapshot;
    const struct config_source *source;
    struct rpc_call *rpc;
    struct buffer request_id;    /* JSON text of the id that upstream sees */
    struct loop_timer timer;     /* the next poll of upstream's task, or the next try to store */
    char *upstream_task;         /* upstream's own task, when the tool requires one */
    struct server_budget budget; /* for the requests of the server */
    bool has_result;             /* that task's result has come */
    struct outcome outcome;
};

/* The call's answer has come: stores it and ends. Also takes the answer of tasks/result. */
void execution_answered(struct execution *execution, const struct rpc_call_reply *reply);
/* Fails with an error of the gateway's own. */
void execution_fail(struct execution *execution, enum jsonrpc_error error, const char *details);
/* ---- execution_upstream.c: what is sent, and what upstream says meanwhile ---- */
/* Sends the call itself. */
void execution_send(struct execution *execution);
/* Asks upstream with the held credentials. */
void execution_ask(struct execution *execution, struct str body, struct str id,
                   const struct rpc_call_callbacks *callbacks);
/* How long upstream may be silent now, for what is being asked. */
void execution_set_silence(struct execution *execution);
/* A message of upstream's while it works. */
void execution_server_message(void *context, struct str message);
/* Tells upstream that the call is given up. */
void execution_say_last(struct execution *execution, struct str body, struct str id);

/* ---- execution_session.c: there is no client whose session could be used ---- */
/* Opens a session with the source's static headers, then sends the call. */
void execution_session_open(struct execution *execution);
void execution_session_close(struct execution *execution);
/* Sends one more message and closes the session when upstream has taken it. */
void execution_session_say_last(struct execution *execution,
                                const struct rpc_call_options *options);

/* ---- execution_task.c: a tool that upstream itself runs as a task only ---- */
/* True when the answer was a CreateTaskResult, which is now being followed. */
bool execution_task_follow(struct execution *execution, struct str result);
/* Relays a cancel to upstream's task. */
void execution_task_cancel(struct execution *execution);
