/*
 * The gateway's decisions about a tool call, as results that a model reads: most agents show
 * their model a tool's error, and end their run on an error of the protocol. One table has the
 * sentence and the advice for each error. Any thread.
 */
#pragma once

#include "call.h"

/* The member of `_meta` that has the error. */
#define REFUSAL_ERROR "taskgate/error"

/* Whether the error is one of the table, and the call's client gets it as a result: a plain client
 * of the legacy era, unless `clients[].refusals` says otherwise. */
bool refusal_is_due(const struct call *call, enum jsonrpc_error error);

/* The error of the table with which the task has ended; JSONRPC_ERROR_COUNT: none, or not the
 * gateway's. */
enum jsonrpc_error refusal_of_task(const struct task *task);

/* The sentence and the advice. `object` is the error object (JSON text); `task` is NULL for a call
 * that became none. */
void refusal_write_text(struct buffer *out, const struct call *call, enum jsonrpc_error error,
                        struct str object, const struct task *task);
/* The CallToolResult. */
void refusal_write_result(struct buffer *out, const struct call *call, enum jsonrpc_error error,
                          struct str object, const struct task *task);
