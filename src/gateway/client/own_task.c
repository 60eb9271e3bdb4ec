/* Finding the task that a client asks for. */
#include "own_task.h"

#include "conversation/execute.h"

void own_task_answer_unknown(struct call *call)
{
    call_answer_error(call, JSONRPC_TASK_NOT_FOUND, STR_EMPTY, NULL);
}

void own_task_answer_no_store(struct call *call)
{
    struct jsonrpc_error_data data = {.details = STR("the task store is not available"),
                                      .retry_after = 5};
    call_answer_error(call, JSONRPC_UNAVAILABLE, STR_EMPTY, &data);
}

/* The store reads an id up to its NUL: the one asked for must be the whole of the task's. */
static bool is_asked_for(const struct call *call, const struct task *task)
{
    return task && str_equal(str_from(task->id), call->envelope.task_id.text) &&
           call_owns(call, task);
}

struct task *own_task_of(struct call *call, const struct store_reply *reply)
{
    if (reply->status == STORE_FAILED)
        own_task_answer_no_store(call);
    else if (!is_asked_for(call, reply->task))
        own_task_answer_unknown(call);
    else
        return reply->task;
    return NULL;
}

void own_task_read(struct call *call, store_callback callback)
{
    store_task_get(call->worker->gateway->store, call->envelope.task_id.text,
                   call_to_store(call, callback));
}

struct task *own_task_offer(struct call *call, struct task *task, bool wants_result)
{
    if (execution_offer(call, task, wants_result))
        return task_ref(task);
    struct task *shown = task_copy(task);
    if (shown->state == TASK_APPROVED)
        task_set_text(&shown->status_message, STR(EXECUTION_OTHER_HEADERS));
    return shown;
}
