#include "support.h"

#include <check.h>

struct task *new_task(enum task_state state)
{
    struct task *task = task_create(state);
    task->created_ms = task->updated_ms = NOW;
    task->ttl_ms = 600000;
    task->decide_by_ms = state == TASK_PENDING ? NOW + 600000 : 0;
    task->execute_by_ms = state == TASK_APPROVED ? NOW + 300000 : 0;
    return task;
}

struct task *task_in(enum task_state state)
{
    static const struct {
        enum task_state path[3];
        unsigned length;
    } ways[TASK_STATE_COUNT] = {
        [TASK_PENDING] = {{0}, 0},
        [TASK_APPROVED] = {{TASK_APPROVED}, 1},
        [TASK_EXECUTING] = {{TASK_APPROVED, TASK_EXECUTING}, 2},
        [TASK_COMPLETED] = {{TASK_APPROVED, TASK_EXECUTING, TASK_COMPLETED}, 3},
        [TASK_FAILED] = {{TASK_FAILED}, 1},
        [TASK_CANCELLED] = {{TASK_CANCELLED}, 1},
        [TASK_REJECTED] = {{TASK_REJECTED}, 1},
        [TASK_EXPIRED] = {{TASK_EXPIRED}, 1},
    };
    struct task *task = new_task(TASK_PENDING);
    for (unsigned i = 0; i < ways[state].length; i++) {
        struct task_change change = {.to = ways[state].path[i]};
        if (change.to == TASK_FAILED)
            change.failure = TASK_FAILURE_GATEWAY;
        if (change.to == TASK_COMPLETED) {
            change.outcome = TASK_OUTCOME_RESULT;
            change.outcome_text = STR("{}");
        }
        struct error error = {""};
        ck_assert_msg(task_transition(task, &change, NOW + i, &error), "%s", error.message);
    }
    return task;
}
