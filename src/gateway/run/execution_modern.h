/*
 * An approved call of the modern era at its server. The gateway is the client of the server's
 * rounds and tasks (SEP-2663) for the client that declared them: one execution, whatever the number
 * of rounds.
 */
#pragma once

#include "execution.h"

/* Takes answers (JSON object) of the task's owner to what the server asks, and tells the worker
 * that runs the call. Any worker's loop. */
void execution_modern_answer(struct gateway_worker *worker, struct task *task, struct str answers);
