/*
 * A task as operators see it (behaviour 10.2): one line of JSON, with the values hidden that the
 * workflow's redact_fields name.
 */
#pragma once

#include "task_view.h"

void task_json_write(struct buffer *out, const struct task *task, const struct task_view *view);
