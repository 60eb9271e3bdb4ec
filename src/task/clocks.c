/* The clocks of a task: decide-by, execute-by, retention, and how often to poll. */
#include "taskgate/task/task.h"

/* Behaviour 7.13: a terminal task stays readable this long after its end at least. */
#define GRACE_MS INT64_C(3600000)

static int64_t later_by(int64_t time_ms, int64_t duration_ms)
{
    return time_ms > INT64_MAX - duration_ms ? INT64_MAX : time_ms + duration_ms;
}

int64_t task_next_deadline_ms(const struct task *task)
{
    /* An execution is never cut: only upstream's silence limit ends it. A promoted call has no
     * such limit, but its ttl. */
    int64_t deadline_ms = 0;
    if (task->state == TASK_PENDING)
        deadline_ms = task->decide_by_ms;
    else if (task->state == TASK_APPROVED)
        deadline_ms = task->execute_by_ms;
    else if (task->state == TASK_EXECUTING && task->promoted)
        deadline_ms = later_by(task->created_ms, task->ttl_ms);
    return deadline_ms > 0 ? deadline_ms : INT64_MAX;
}

bool task_due(const struct task *task, int64_t now_ms, struct task_change *change)
{
    if (now_ms < task_next_deadline_ms(task))
        return false;
    *change = (struct task_change){.to = TASK_EXPIRED};
    return true;
}

int64_t task_purge_ms(const struct task *task)
{
    if (!task_state_is_terminal(task->state))
        return INT64_MAX;
    if (task->promoted)
        return later_by(task->ended_ms, task->state == TASK_EXPIRED ? task->expired_retention_ms
                                                                    : task->retention_ms);
    int64_t ttl_end_ms = later_by(task->created_ms, task->ttl_ms);
    int64_t grace_end_ms = later_by(task->ended_ms, GRACE_MS);
    return ttl_end_ms > grace_end_ms ? ttl_end_ms : grace_end_ms;
}

int64_t task_retention_horizon_ms(const struct task *task)
{
    int64_t end_ms = task_purge_ms(task);
    if (!task_state_is_terminal(task->state)) {
        int64_t deadline_ms = task_next_deadline_ms(task);
        end_ms = later_by(deadline_ms < INT64_MAX ? deadline_ms : task->updated_ms,
                          task->promoted ? task->expired_retention_ms : GRACE_MS);
    }
    int64_t horizon_ms = end_ms - task->created_ms;
    if (horizon_ms < task->ttl_ms)
        horizon_ms = task->ttl_ms;
    return horizon_ms > 0 ? horizon_ms : 1;
}

int64_t task_poll_interval_ms(int64_t remaining_ms)
{
    static const struct {
        int64_t up_to_ms, interval_ms;
    } steps[] = {{60000, 2000}, {300000, 5000}, {900000, 10000}, {INT64_MAX, 30000}};
    unsigned i = 0;
    while (remaining_ms > steps[i].up_to_ms)
        i++;
    return steps[i].interval_ms;
}
