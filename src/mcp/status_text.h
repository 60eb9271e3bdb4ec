/* Sentences that statusMessage and the error of tasks/result share. */
#pragma once

#include "taskgate/core/buffer.h"
#include "taskgate/core/str.h"
#include "taskgate/mcp/jsonrpc.h"
#include "taskgate/task/task.h"

/* The one length limit for texts that the gateway writes for people. */

#define MCP_TEXT_MAX_BYTES 1024

/* The first MCP_TEXT_MAX_BYTES of `text`, cut before a UTF-8 character that would not fit. */
struct str mcp_text_cut(struct str text);

/* The error of a task that ended without the server's word: one for all eras. */

/* The error object. */
void dialect_write_own_error(struct buffer *out, const struct task *task);
