/* Calls of the control plane at the gates of `tools/call`. On the worker's loop. */
#pragma once

#include "call/call.h"

/* A call that no client makes. It is its maker's, and has gone once it is refused or passed on. */
struct tools_call_control {
    uint32_t magic; /* TOOLS_CALL_CONTROL_MAGIC */
    struct gateway_worker *worker;
    struct snapshot *snapshot;
    const struct config_source *source;
    char *owner; /* of the task */
    struct buffer body;
    struct envelope envelope; /* of `body` */
    struct buffer reason;     /* the agent's, NUL-terminated; empty without */
    struct span *span;        /* NULL without telemetry */
    /* `message` is NULL where that of the error says it. */
    void (*refuse)(struct tools_call_control *control, enum jsonrpc_error error,
                   const char *message);
    /* It has passed all gates. `accelerated`: nobody has to approve it. */
    void (*pass)(struct tools_call_control *control, const struct policy_decision *decision,
                 const struct catalog_tool *tool, bool accelerated);
};
#define TOOLS_CALL_CONTROL_MAGIC 0x4757434f

/* Puts it to the gates that are for it, now and perhaps later. Its form has been looked at. */
void tools_call_control(struct tools_call_control *control);
