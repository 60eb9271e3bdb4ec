/*
 * The control plane as a client: it has no connection and no session, and its calls always become
 * tasks, which are judged by what the gateway's own session lists (behaviour 17.1). On the loop
 * of the gateway's first worker.
 */
#pragma once

#include "call/call.h"
#include "taskgate/gateway/control.h"

/* A call on its way. It has gone once it is refused or created. */
struct control {
    uint32_t magic; /* CONTROL_MAGIC */
    struct gateway_worker *worker;
    struct snapshot *snapshot; /* a reference; so is the source's */
    const struct config_source *source;
    char *owner, *maker; /* of the task */
    struct buffer body;
    struct envelope envelope; /* of `body` */
    struct buffer reason;     /* the agent's, NUL-terminated; empty without */
    struct span *span;        /* ends with the answer; NULL without telemetry */
    control_callback callback;
    void *context;
};
#define CONTROL_MAGIC 0x4757434f

/* NULL: the call is refused already, for its form or because its caller is blocked. */
struct control *control_begin(struct gateway_worker *worker, const struct control_call *call,
                              control_callback callback, void *context);
/* `message` is NULL where that of the error says it. */
void control_refuse(struct control *control, enum jsonrpc_error error, const char *message);
/* It has passed all gates. `accelerated`: nobody has to approve it. */
void control_create(struct control *control, const struct policy_decision *decision,
                    const struct catalog_tool *tool, bool accelerated);
