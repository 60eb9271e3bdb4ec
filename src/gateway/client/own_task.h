/*
 * A task of the gateway's own, as its owner asks for it by `params.taskId`. Another owner's task
 * answers as an unknown one.
 */
#pragma once

#include "call/call.h"

/* Reads the task that the call names; `callback` has a reference to the call as its context. */
void own_task_read(struct call *call, store_callback callback);
/* The task of the reply, if there is one and it is this client's; else the call is answered. */
struct task *own_task_of(struct call *call, const struct store_reply *reply);
/* execution_offer(), and the task as its client is shown it then: where the execution was refused
 * for its headers, a copy, for the store answers later. The caller unrefs it. */
struct task *own_task_offer(struct call *call, struct task *task, bool wants_result);
void own_task_answer_unknown(struct call *call);
void own_task_answer_no_store(struct call *call);
