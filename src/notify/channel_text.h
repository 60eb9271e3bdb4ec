/* A task in words, for people who read it in a chat or on a pager. Any thread; pure. */
#pragma once

#include "taskgate/config/config.h"
#include "taskgate/core/buffer.h"
#include "taskgate/task/task.h"

/* "Approval needed", "Approved" … */
const char *channel_text_state(enum task_state state);
/* "Approval needed: delete_user". At most `most` bytes, and whole characters. */
void channel_text_title(struct buffer *out, const struct task *task, size_t most);
/* The same of a call that waits, whatever its state. */
void channel_text_subject(struct buffer *out, const struct task *task, size_t most);
/* A line for each fact that is known. Misleading characters stand as \uXXXX. */
void channel_text_facts(struct buffer *out, const struct task *task, const struct config *config,
                        bool with_arguments, size_t most);
