/* tasks/result of a task that has ended. */
#include <assert.h>

#include "related_task.h"
#include "status_text.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/dialect.h"
#include "taskgate/policy/gate.h"

/* A result that is not an object has no place for _meta, so it stays unchanged. */
static void write_stored_result(struct buffer *out, struct str id, struct str result,
                                struct str task_id)
{
    struct buffer related;
    buffer_init(&related);
    if (json_type(result) == JSON_OBJECT)
        dialect_write_related(&related, result, task_id);
    else
        buffer_append(&related, result);
    jsonrpc_write_result(out, id, buffer_str(&related));
    buffer_finish(&related);
}

static enum jsonrpc_error error_of(const struct task *task)
{
    switch (task->state) {
    case TASK_REJECTED:
        return JSONRPC_APPROVAL_REJECTED;
    case TASK_EXPIRED:
        return dialect_is_undecided(task) ? JSONRPC_APPROVAL_TIMEOUT : JSONRPC_TASK_EXPIRED;
    case TASK_CANCELLED:
        return JSONRPC_TASK_CANCELLED;
    default:
        return task->failure == TASK_FAILURE_OUTCOME_UNKNOWN ? JSONRPC_OUTCOME_UNKNOWN
                                                             : JSONRPC_INTERNAL;
    }
}

/* The error of a task that ended without upstream's word. */
static void write_own_error(struct buffer *out, struct str id, const struct task *task)
{
    enum jsonrpc_error error = error_of(task);
    struct buffer message;
    buffer_init(&message);
    if (error == JSONRPC_APPROVAL_REJECTED)
        dialect_append_rejection(&message, task);
    else if (error == JSONRPC_APPROVAL_TIMEOUT)
        dialect_append_timeout(&message, task);
    else if (error == JSONRPC_INTERNAL)
        dialect_status_message(task, &message);
    const bool is_approval = error == JSONRPC_APPROVAL_REJECTED ||
                             error == JSONRPC_APPROVAL_TIMEOUT || error == JSONRPC_TASK_EXPIRED;
    jsonrpc_write_error(
        out, id, error, buffer_str(&message),
        &(struct jsonrpc_error_data){
            .tool = str_from(task->tool),
            .reason = str_from(task->reason),
            .gate = str_from(is_approval ? policy_gate_name(POLICY_GATE_APPROVAL) : NULL)});
    buffer_finish(&message);
}

void dialect_write_task_answer(struct buffer *out, struct str id, const struct task *task)
{
    assert(task_state_is_terminal(task->state));
    const bool has_run = task->state == TASK_COMPLETED || task->state == TASK_FAILED;
    struct str outcome = str_slice(task->outcome_text, task->outcome_length);
    if (has_run && outcome.length && task->outcome == TASK_OUTCOME_RESULT)
        write_stored_result(out, id, outcome, str_from(task->id));
    else if (has_run && outcome.length && task->outcome == TASK_OUTCOME_ERROR)
        jsonrpc_write_error_text(out, id, outcome);
    else
        write_own_error(out, id, task);
}
