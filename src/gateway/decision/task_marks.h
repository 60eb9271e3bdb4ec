/*
 * The marks (core/marks.h) of a call: of its tool, its caller, and all keys and texts of its
 * request, with the place of each. Linear in the request.
 */
#pragma once

#include "taskgate/core/buffer.h"
#include "taskgate/task/task.h"

/* Appends the JSON array [{"where":…,"what":…}]: each pair once, at most 20. `where` is "tool",
 * "principal" or a dot path: of an argument, or below "_meta" or "params" (the parameters beside
 * the arguments); of the agent's reason ("" or NULL: none) the name of its property. Of a longer
 * path its first 200 characters and "…". */
void task_marks_write(struct buffer *out, const struct task *task, const char *agent_reason);
