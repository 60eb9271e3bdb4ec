/* The error of a task that ended without the server's word: one for all eras. */
#pragma once

#include "taskgate/core/buffer.h"
#include "taskgate/mcp/jsonrpc.h"
#include "taskgate/task/task.h"

/* The error object. */
void dialect_write_own_error(struct buffer *out, const struct task *task);
