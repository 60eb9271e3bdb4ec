/*
 * Plain calls of clients that cannot be told to send a task: they are held until their task ends
 * or the client's patience does; then the answer says what is pending. The same call made again
 * joins the task.
 */
#pragma once

#include "request/call.h"
#include "state/tool_catalog.h"

/* Answers the call, now or later, once upstream has accepted its client. */
void plain_call_become_task(struct call *call, const struct policy_decision *decision,
                            const struct catalog_tool *tool, bool accelerated);
/* Whether a forwarded call is one that its client has left before: then it is answered, now or
 * later, by the task that the call has become, or by `forward` when that cannot be joined. */
bool plain_call_rejoins(struct call *call, const struct policy_decision *decision,
                        call_step forward);
