/*
 * Running an approved call: the credentials that it needs, held in memory from the request
 * that brought them, and the one execution at upstream (design invariants 1, 4 and 5).
 */
#pragma once

#include "request/call.h"

struct execution;

/* What an approved task says that does not run for it (contract "Hardening, second round"). */
#define EXECUTION_OTHER_HEADERS                                                                    \
    "Approved; not run: the headers of the last call differ from those of the approved one, so "   \
    "its credentials are not used"

/* Keeps the headers of `call`, which is the task's create. */
void execution_hold(const struct call *call, const struct task *task);
/* Takes the credentials of a later call of the owner in place of the earlier ones, and runs the
 * task if it is approved and its time has come: at once, or for `on_result` when `wants_result`.
 * It does not run again with credentials that upstream has refused. false: the process does not
 * know the create's headers any more, and those of the call differ from them. */
bool execution_offer(const struct call *call, struct task *task, bool wants_result);
/* As execution_offer() for a task whose owner is the control plane: it needs no client, for the
 * gateway opens a session of its own (execution_session.c). On the first worker's loop. */
void execution_offer_own(struct gateway_worker *worker, struct task *task, bool wants_result);
/* Drops what is kept of a task that is not running. */
void execution_forget(struct gateway_worker *worker, struct str id);
/* Drops what is kept for a session, by its client_key_of_session(): on
 * every worker: it has ended. */
void execution_forget_session(struct gateway *gateway, struct str key);
/* The task has changed: runs it when it was approved here, or belongs to the control plane;
 * stops when it has ended. */
void execution_note_task(struct gateway_worker *worker, struct task *task);
/* What upstream asks in the task's execution has changed: a person who thinks is no silence. */
void execution_input_changed(struct gateway_worker *worker, const struct task *task);
/* Everything of the worker, for the end of the process. */
void executions_drop(struct gateway_worker *worker);
