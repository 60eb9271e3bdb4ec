/* The error of a task that was rejected, cancelled, not decided or not run, or whose outcome
 * nobody knows. */
#include "task_error.h"

#include <string.h>

#include "status_text.h"
#include "taskgate/core/visible.h"
#include "taskgate/mcp/dialect.h"
#include "taskgate/policy/gate.h"
#include "text.h"

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

void dialect_append_reason(struct buffer *out, struct str reason)
{
    struct buffer folded;
    buffer_init(&folded);
    for (size_t i = 0; i < reason.length; i++) {
        bool is_blank = reason.bytes[i] != '\0' && strchr(" \t\n\v\f\r", reason.bytes[i]);
        if (!is_blank)
            buffer_append_char(&folded, reason.bytes[i]);
        else if (folded.length > 0 && folded.bytes[folded.length - 1] != ' ')
            buffer_append_char(&folded, ' ');
    }
    while (folded.length > 0 && folded.bytes[folded.length - 1] == ' ')
        folded.length--;
    visible_append(out, mcp_text_cut(buffer_str(&folded)));
    buffer_finish(&folded);
}

void dialect_write_own_error(struct buffer *out, const struct task *task)
{
    enum jsonrpc_error error = dialect_error_of(task);
    struct buffer message, reason;
    buffer_init(&message);
    buffer_init(&reason);
    dialect_append_reason(&reason, str_from(task->reason));
    if (error == JSONRPC_APPROVAL_REJECTED)
        dialect_append_rejection(&message, task);
    else if (error == JSONRPC_APPROVAL_TIMEOUT)
        dialect_append_timeout(&message, task);
    else if (error == JSONRPC_INTERNAL)
        dialect_status_message(task, &message);
    if (error == JSONRPC_APPROVAL_REJECTED && reason.length > 0)
        buffer_append_format(&message, ": %.*s", STR_ARGS(buffer_str(&reason)));
    const bool is_approval = error == JSONRPC_APPROVAL_REJECTED ||
                             error == JSONRPC_APPROVAL_TIMEOUT || error == JSONRPC_TASK_EXPIRED;
    jsonrpc_write_error_object(
        out, error, buffer_str(&message),
        &(struct jsonrpc_error_data){
            .tool = str_from(task->tool),
            .reason = buffer_str(&reason),
            .gate = str_from(is_approval ? policy_gate_name(POLICY_GATE_APPROVAL) : NULL)});
    buffer_finish(&reason);
    buffer_finish(&message);
}
