/*
 * A task of the gateway's own, as its owner asks for it by `params.taskId`. Another owner's task
 * answers as an unknown one.
 */
#pragma once

#include "call/call.h"

/* Reads the task that the call names; `callback` has a reference to the call as its context. */
void own_task_read(struct call *call, store_callback callback);
/* Whether this is the task that the call names, and this client's. `task` may be NULL. */
bool own_task_is_asked_for(const struct call *call, const struct task *task);
/* The task of the reply, if there is one and it is this client's; else the call is answered. */
struct task *own_task_of(struct call *call, const struct store_reply *reply);
/* A copy of a task whose execution was just refused for its headers: the store is told, too, and
 * answers later. The caller unrefs it. */
struct task *own_task_not_run(const struct task *task);
void own_task_answer_unknown(struct call *call);
void own_task_answer_no_store(struct call *call);
