/* The shared parts of the tests of tasks. */
#pragma once

#include <check.h>

#include "taskgate/task/task.h"

#define NOW INT64_C(1700000000000)

/* Created at NOW in `state`, with the clock of that state. */
struct task *new_task(enum task_state state);
/* A task that has come to `state` by legal moves. */
struct task *task_in(enum task_state state);

/* The cases, one file each. */
TCase *transitions_case(void);
TCase *promoted_case(void);
TCase *clocks_case(void);
TCase *value_case(void);
