/*
 * Running an approved call once at the server. Its credentials are held in memory from the request
 * that brought them (behaviour 1.4, 1.5, 7.11).
 */
#pragma once

#include "call/call.h"

struct execution;

/* The status message of an approved task that does not run for this reason (behaviour 7.17). */
#define EXECUTION_OTHER_HEADERS                                                                    \
    "Approved; not run: the headers of the last call differ from those of the approved one, so "   \
    "its credentials are not used"

/* Keeps the headers of `call`, which is the task's create. */
void execution_hold(const struct call *call, const struct task *task);
/* The same for a task with `on_result`: the call that waits for it lends its credentials once it is
 * approved, so none are held before. */
void execution_keep_headers(const struct call *call, const struct task *task);
/* Takes the credentials of a later call of the owner in place of the earlier ones. Runs the task if
 * it is approved; a task with `on_result` runs only when `wants_result`. A task does not run with
 * credentials that the server has refused. false: the process does not know the create's headers
 * any more, and the call's headers differ from them. */
bool execution_offer(const struct call *call, struct task *task, bool wants_result);
/* The same, and the task as its client is shown it then: where that is false, a copy that says so,
 * for the store answers later. The caller unrefs it. */
struct task *execution_offer_shown(const struct call *call, struct task *task, bool wants_result);
/* As execution_offer() for a task of the control plane, which has no client. The gateway opens a
 * session of its own (execute.c). On the first worker's loop. */
void execution_offer_own(struct gateway_worker *worker, struct task *task, bool wants_result);
/* Drops what is kept of a task that is not running. */
void execution_forget(struct gateway_worker *worker, struct str id);
/* The session has ended: drops what each worker keeps for it. `key` is its client_key_of_session().
 */
void execution_forget_session(struct gateway *gateway, struct str key);
/* The task has changed. Runs it if it is approved and this worker has its credentials, or it is the
 * control plane's. Ends its execution if the task has ended. */
void execution_note_task(struct gateway_worker *worker, struct task *task);
/* The verified identity behind the credentials that this worker holds for the task. NULL: none, or
 * not verified. Borrowed. */
const struct identity *execution_identity(const struct gateway_worker *worker, struct str id);
/* The open questions of the task's execution have changed, and with them its silence limit. */
void execution_input_changed(struct gateway_worker *worker, const struct task *task);
/* Ends all executions of the worker: the process ends. */
void executions_drop(struct gateway_worker *worker);
