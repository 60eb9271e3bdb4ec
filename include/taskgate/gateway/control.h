/*
 * The control plane's door into the gateway: calls without a client, by the token of an operator
 * (behaviour 17.1). They pass every gate that a client's call passes and always become tasks; the
 * gateway executes them with a session of its own at upstream and the source's static headers.
 *
 * On the loop of the gateway's first worker.
 */
#pragma once

#include <stdbool.h>

#include "taskgate/core/buffer.h"
#include "taskgate/core/str.h"
#include "taskgate/task/task.h"

struct gateway_worker;

struct control_call {
    const char *name;     /* of the person: the task's owner is control_owner() of it */
    const char *maker;    /* keys of the person, as a task keeps them */
    struct str source;    /* its id; empty: the only one */
    struct str tool;      /* JSON text, as the two below, each accepted by json_check() */
    struct str arguments; /* empty: {} */
    struct str ttl;       /* milliseconds; empty: the default */
};

enum control_status {
    CONTROL_CREATED,
    CONTROL_INVALID,     /* the request is malformed */
    CONTROL_DENIED,      /* by a gate */
    CONTROL_LIMITED,     /* too many pending tasks */
    CONTROL_UNAVAILABLE, /* the store is down, or the process ends */
};

struct control_reply {
    enum control_status status;
    struct task *task;   /* created; borrowed */
    int code;            /* JSON-RPC's for the same refusal; 0 where it has none */
    const char *message; /* of a refusal */
};
typedef void (*control_callback)(void *context, const struct control_reply *reply);

/* Answers once, after the commit that holds the task; a refusal may come before this returns. */
void control_call(struct gateway_worker *worker, const struct control_call *call,
                  control_callback callback, void *context);
/* The owner of tasks that are made under this name: "admin:<name>". The caller frees. */
char *control_owner(const char *name);
/* The owner asks for the result: runs an approved task that waited for that (`execution:
 * on_result`), or that upstream refused before. Does nothing for tasks of clients. */
void control_wants_result(struct gateway_worker *worker, struct task *task);
/* Runs calls that were approved before the process began. */
void control_resume(struct gateway_worker *worker);
/* "result":… as upstream gave it, or "error":… as tasks/result would answer, of a task that has
 * ended: members of an object that the caller writes. */
void control_write_outcome(struct buffer *out, const struct task *task);
