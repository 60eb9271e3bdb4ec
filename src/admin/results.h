/* Waiting for a task's result, GET /api/v1/tasks/{id}/result. */
#pragma once

#include "internal.h"

/* Answers everyone with the state as it is: the process ends. */
void results_end_all(struct admin *admin);
