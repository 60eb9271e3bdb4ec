/* A call that becomes a task. */
#pragma once

#include "call/call.h"
#include "state/tool_catalog.h"
#include "taskgate/policy/policy.h"

struct catalog_tool;

/* A task that is answered at once; tools/plain.h has those that are not. */
void task_create_from_call(struct call *call, const struct policy_decision *decision,
                           const struct catalog_tool *tool, bool accelerated);
/* A new task, bound to the call; nothing of it is stored yet. */
struct task *task_create_bound(const struct call *call, const struct policy_decision *decision,
                               const struct catalog_tool *tool, bool accelerated);
/* The store did not take it. The log is told in any case, the client if it is there. */
void task_create_log_refused(const struct call *call, enum store_status status);
void task_create_answer_refused(struct call *call, enum store_status status);
/* It may have taken it: the answer to the commit is lost. `advice`: how the client finds out. */
void task_create_answer_unsure(struct call *call, const char *id, const char *advice);
