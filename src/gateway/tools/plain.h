/*
 * Plain calls of clients that cannot be told to send a task. Such a call is held until its task
 * ends or the client's patience does. Then the answer says what is pending. The same call made
 * again joins the task.
 */
#pragma once

#include "call/call.h"
#include "conversation/detach.h"
#include "state/tool_catalog.h"

/* The answers to forwarded calls that take long; for gateway.detached_callbacks. */
extern const struct detached_callbacks detached_answers;

/* Answers the call, now or later, once upstream has accepted its client. */
void plain_call_become_task(struct call *call, const struct policy_decision *decision,
                            const struct catalog_tool *tool, bool accelerated);
/* Answers a call that was held before, and that its client has repeated with the state it was given
 * (request_state_open()): it waits for the task of the earlier one. */
struct request_state;
void plain_call_go_on(struct call *call, const struct request_state *state);
/* The client has given up the call, if it is one that waits for approval: the task runs only when
 * the owner comes back. */
void plain_call_give_up(const struct call *call);
/* The questions of a running task's server have changed: held calls of it are answered with them.
 */
void plain_call_note_requests(struct gateway_worker *worker, const struct task *task);
/* Whether the client has left the same forwarded call before. If it has, the call is answered, now
 * or later: by the task that the earlier call has become, or by `forward` if it cannot join that
 * task. */
bool plain_call_rejoins(struct call *call, const struct policy_decision *decision,
                        call_step forward);
