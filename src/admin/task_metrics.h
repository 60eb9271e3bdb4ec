/* The metrics of changes of tasks; reference §7.2. */
#pragma once

#include <stdbool.h>

#include "taskgate/task/task.h"

/* To be called once for every change that the store commits. */
void task_metrics_count(const struct task *task, bool created);
