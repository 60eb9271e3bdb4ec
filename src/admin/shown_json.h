/* The members of an operators' task that tell of its rule and its tool (contract "Approvals by
 * several"). */
#pragma once

#include "taskgate/config/config.h"
#include "taskgate/core/buffer.h"
#include "taskgate/task/task.h"

/* `arguments`: the task's, as operators see them. */
void shown_json_add(struct buffer *out, const struct task *task, const struct config *config,
                    struct str arguments);
