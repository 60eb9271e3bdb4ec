/* Sentences that statusMessage and the error of tasks/result share. */
#pragma once

#include "taskgate/core/buffer.h"
#include "taskgate/task/task.h"

/* The task needed an approval and got none: its decide-by clock ran out. */
bool dialect_is_undecided(const struct task *task);
/* "Rejected by: NAME". */
void dialect_append_rejection(struct buffer *out, const struct task *task);
/* "Timeout after 600s". */
void dialect_append_timeout(struct buffer *out, const struct task *task);
