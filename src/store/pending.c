/* Counts of the tasks that the limits are about. */
#include "effects.h"
#include "taskgate/core/assert.h"

/* A running call counts against its owner only if no human has approved it. */
static bool is_limited(const struct task *task, enum task_state state)
{
    bool runs_undecided = state == TASK_EXECUTING && (task->accelerated || task->promoted);
    return state == TASK_PENDING || state == TASK_APPROVED || runs_undecided;
}

static bool pending_add(struct batch *batch, const struct task *task, int64_t limited,
                        int64_t pending)
{
    if (limited == 0 && pending == 0)
        return true;
    ASSERT(limited >= -1 && limited <= 1 && pending >= -1 && pending <= 1);
    batch->limited.tasks += limited;
    batch->limited.pending += pending;
    const struct limited_change change = {limited, pending,
                                          limited * (int64_t)task->request_length};
    return task_rows_add_limited(batch->database, task->owner, &change);
}

bool pending_note_created(struct batch *batch, const struct task *task)
{
    return pending_add(batch, task, is_limited(task, task->state), task->state == TASK_PENDING);
}

bool pending_note_left(struct batch *batch, const struct task *task)
{
    return pending_add(batch, task, -is_limited(task, task->state), -(task->state == TASK_PENDING));
}

bool pending_note_moved(struct batch *batch, const struct task *task, enum task_state from)
{
    return pending_add(batch, task, is_limited(task, task->state) - is_limited(task, from),
                       (task->state == TASK_PENDING) - (from == TASK_PENDING));
}

bool pending_note_edited(struct batch *batch, const struct task *task, size_t bytes_before)
{
    const struct limited_change change = {0, 0,
                                          (int64_t)task->request_length - (int64_t)bytes_before};
    ASSERT(task->state == TASK_PENDING); /* only an undecided call is edited */
    return !is_limited(task, task->state) ||
           task_rows_add_limited(batch->database, task->owner, &change);
}

bool pending_count(struct batch *batch, const char *owner, struct limited_counts *counts)
{
    if (!task_rows_count_limited(batch->database, owner, counts))
        return false;
    counts->of_all += batch->limited.tasks;
    counts->pending += batch->limited.pending;
    return true;
}

bool pending_write(struct batch *batch)
{
    const struct limited_change change = batch->limited;
    batch->limited = (struct limited_change){0, 0, 0};
    return (change.tasks == 0 && change.pending == 0) ||
           task_rows_add_limited(batch->database, "", &change);
}
