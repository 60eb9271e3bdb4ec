/*
 * The context of a call for the people who decide: the words of its rule, and what the server says
 * of its tool. `task->shown` has it as it was when the call came
 * (src/gateway/decision/task_shown.h). Any thread; nothing is owned.
 */
#pragma once

#include "taskgate/core/buffer.h"
#include "taskgate/task/task.h"

/* Appends the sentence of the rule, filled from `arguments`: those of the task as redact_write()
 * writes them, so that it tells nothing that is hidden. Returns false, and writes nothing, where
 * the rule has none. */
bool shown_write_summary(struct buffer *out, const struct task *task, struct str arguments);
