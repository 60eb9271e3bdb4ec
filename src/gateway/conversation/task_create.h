/*
 * A call that becomes a task. There must be room for one more: the store counts those of each owner
 * and of all, and the process those of each address whose clients nobody has verified. On the
 * call's loop.
 */
#pragma once

#include "call/call.h"
#include "state/tool_catalog.h"
#include "taskgate/policy/policy.h"
#include "taskgate/store/store.h"

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

/* ---- room for it ---- */
/* The limits for a task that the call becomes, which has its place from now on. They allow none in
 * all if its address has its share already. */
struct store_limits task_room_take(const struct call *call, const char *id);
/* The store has not taken the task. */
void task_room_give_back(struct gateway *gateway, const char *id);
/* A task has moved: one that runs as decided, or is over, needs no place. */
void task_room_note_task(struct gateway *gateway, const struct task *task);
