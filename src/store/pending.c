/* Counts of the tasks that the limits are about. */
#include "pending.h"

/* A running call counts against its owner only if no human has approved it. */
static bool is_limited(const struct task *task, enum task_state state)
{
    bool runs_undecided = state == TASK_EXECUTING && (task->accelerated || task->promoted);
    return state == TASK_PENDING || state == TASK_APPROVED || runs_undecided;
}

static bool add(struct batch *batch, const struct task *task, int64_t limited, int64_t pending)
{
    return (limited == 0 && pending == 0) ||
           batch->backend->tasks->add_limited(batch->database, task->owner, limited, pending);
}

bool pending_note_created(struct batch *batch, const struct task *task)
{
    return add(batch, task, is_limited(task, task->state), task->state == TASK_PENDING);
}

bool pending_note_moved(struct batch *batch, const struct task *task, enum task_state from)
{
    return add(batch, task, is_limited(task, task->state) - is_limited(task, from),
               (task->state == TASK_PENDING) - (from == TASK_PENDING));
}
