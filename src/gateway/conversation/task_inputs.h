/*
 * The servers' questions in the calls of tasks, and the answers of the tasks' clients.
 */
#pragma once

#include "call/call.h"

struct invocation;

/* Takes answers (JSON object) of the task's owner to what the server asks, and tells the worker
 * that runs the call. Any worker's loop. */
void task_inputs_answer(struct gateway_worker *worker, struct task *task, struct str answers);
/* Asks a legacy client what is open in the round and was not asked before. On the loop of the
 * invocation. */
void task_inputs_ask(const struct invocation *invocation);
