/* The error of a task that ended without the server's word: one for all eras. */
#pragma once

#include "taskgate/core/buffer.h"
#include "taskgate/mcp/jsonrpc.h"
#include "taskgate/task/task.h"

/* Its row in the table of errors. */
enum jsonrpc_error dialect_error_of(const struct task *task);
/* The error object. With `whole`, the message of a rejection names the reason as well. */
void dialect_write_own_error(struct buffer *out, const struct task *task, bool whole);
