/*
 * A task as operators see it (contract "Admin"): one line of JSON, with the values hidden
 * that the workflow's redact_fields name.
 */
#pragma once

#include "taskgate/config/config.h"
#include "taskgate/core/buffer.h"
#include "taskgate/task/task.h"

void task_json_write(struct buffer *out, const struct task *task, const struct config *config);
