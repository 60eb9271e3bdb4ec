/* The error of a task that was rejected, cancelled, not decided or not run, or whose outcome
 * nobody knows. */
#include "task_error.h"

#include "status_text.h"
#include "taskgate/core/visible.h"
#include "taskgate/mcp/dialect.h"
#include "taskgate/policy/gate.h"

enum jsonrpc_error dialect_error_of(const struct task *task)
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

void dialect_write_own_error(struct buffer *out, const struct task *task, bool whole)
{
    enum jsonrpc_error error = dialect_error_of(task);
    struct buffer message;
    buffer_init(&message);
    if (error == JSONRPC_APPROVAL_REJECTED)
        dialect_append_rejection(&message, task);
    else if (error == JSONRPC_APPROVAL_TIMEOUT)
        dialect_append_timeout(&message, task);
    else if (error == JSONRPC_INTERNAL)
        dialect_status_message(task, &message);
    if (whole && error == JSONRPC_APPROVAL_REJECTED && *task->reason) {
        buffer_append_text(&message, ": ");
        visible_append_lines(&message, str_from(task->reason));
    }
    const bool is_approval = error == JSONRPC_APPROVAL_REJECTED ||
                             error == JSONRPC_APPROVAL_TIMEOUT || error == JSONRPC_TASK_EXPIRED;
    jsonrpc_write_error_object(
        out, error, buffer_str(&message),
        &(struct jsonrpc_error_data){
            .tool = str_from(task->tool),
            .reason = str_from(task->reason),
            .gate = str_from(is_approval ? policy_gate_name(POLICY_GATE_APPROVAL) : NULL)});
    buffer_finish(&message);
}
