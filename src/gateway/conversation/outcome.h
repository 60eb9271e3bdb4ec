/*
 * The change of a task that the server's answer to its call makes (behaviour 7.12, 7.14).
 */
#pragma once

#include "server/http.h"

struct outcome {
    struct task_change change; /* its texts are in the two below; see outcome_change() */
    struct buffer text;        /* JSON text of the result or error */
    struct buffer message;     /* for statusMessage */
};

/* Zeroed memory is an empty outcome. */
void outcome_finish(struct outcome *outcome);
/* The server's result. One with isError fails the task, and its first text is the reason. */
void outcome_of_result(struct outcome *outcome, struct str result);
/* Upstream's JSON-RPC error. */
void outcome_of_error(struct outcome *outcome, struct str error);
/* An error of the gateway's own. */
void outcome_of_failure(struct outcome *outcome, struct str tool, enum jsonrpc_error error,
                        const char *details);
/* A reply that holds no JSON-RPC answer. */
void outcome_of_no_answer(struct outcome *outcome, struct str tool,
                          const struct exchange_reply *reply);
/* Ready for the store; valid as long as the outcome. */
const struct task_change *outcome_change(struct outcome *outcome);
/* Tells the client by the result's _meta that an approver has changed the arguments. */
void outcome_mark_edited(struct outcome *outcome);
