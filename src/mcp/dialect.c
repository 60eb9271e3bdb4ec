/* statusMessage: the description of a task for clients that read only this text. */
#include <inttypes.h>
#include <string.h>

#include "taskgate/core/owned.h"
#include "taskgate/core/visible.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/dialect.h"
#include "taskgate/policy/gate.h"

/* The task needed an approval and got none: its decide-by clock ran out. */
static bool dialect_is_undecided(const struct task *task)
{
    return task->decided_ms == 0 && !task->accelerated;
}

static const char *decider_of(const struct task *task)
{
    return *task->decided_by ? task->decided_by : "an operator";
}

/* "Rejected by: NAME". */
static void dialect_append_rejection(struct buffer *out, const struct task *task)
{
    buffer_append_format(out, "Rejected by: %s", decider_of(task));
}

/* "Timeout after 600s". */
static void dialect_append_timeout(struct buffer *out, const struct task *task)
{
    int64_t waited_ms = task->decide_by_ms - task->created_ms;
    buffer_append_format(out, "Timeout after %" PRId64 "s", (waited_ms + 999) / 1000);
}

static void append_reason(struct buffer *out, const struct task *task)
{
    if (*task->reason)
        buffer_append_format(out, ": %s", task->reason);
}

static void status_text_append_failure(struct buffer *out, const struct task *task)
{
    struct str outcome = str_slice(task->outcome_text, task->outcome_length);
    if (task->failure == TASK_FAILURE_OUTCOME_UNKNOWN)
        buffer_append_text(out, "outcome unknown: the gateway stopped during the call, which "
                                "may have run");
    else if (task->outcome != TASK_OUTCOME_ERROR ||
             !json_decode_string(json_member(outcome, "message"), out))
        buffer_append_text(out, "Failed");
}

static void append_expiry(struct buffer *out, const struct task *task)
{
    if (dialect_is_undecided(task))
        dialect_append_timeout(out, task);
    else
        buffer_append_text(out,
                           task->accelerated ? "Not run in time" : "Approved, but not run in time");
}

/* The message for a task that was stored without one. A completed task needs none. */
static void append_default(struct buffer *out, const struct task *task)
{
    switch (task->state) {
    case TASK_PENDING:
        buffer_append_text(out, "Awaiting approval");
        break;
    case TASK_APPROVED:
        buffer_append_text(out, task->accelerated ? "Waiting to run" : "Approved, waiting to run");
        break;
    case TASK_EXECUTING:
        buffer_append_text(out, "Running");
        break;
    case TASK_COMPLETED:
        break;
    case TASK_FAILED:
        status_text_append_failure(out, task);
        break;
    case TASK_CANCELLED:
        buffer_append_text(out, "Cancelled");
        append_reason(out, task);
        break;
    case TASK_REJECTED:
        buffer_append_format(out, "Rejected by %s", decider_of(task));
        append_reason(out, task);
        break;
    case TASK_EXPIRED:
        append_expiry(out, task);
        break;
    }
}

/* While pending the text is the older draft's, literally. */
void dialect_status_message(const struct task *task, struct buffer *out)
{
    struct buffer text;
    buffer_init(&text);
    if (*task->status_message && task->state != TASK_PENDING)
        buffer_append_text(&text, task->status_message);
    else
        append_default(&text, task);
    if (*task->original_digest) { /* the agent must know what was run, whoever decided */
        struct buffer whole;
        buffer_init(&whole);
        buffer_append_format(&whole, "An approver has changed the arguments of this call.%s",
                             text.length > 0 ? " " : "");
        buffer_append(&whole, buffer_str(&text));
        buffer_finish(&text);
        text = whole;
    }
    OWNED_BUFFER(shown);
    visible_append_lines(&shown, buffer_str(&text));
    buffer_append(out, mcp_text_cut(buffer_str(&shown)));
    buffer_finish(&text);
}

/* The error of a task that was rejected, cancelled, not decided or not run, or whose outcome
 * nobody knows. */

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
    OWNED_BUFFER(folded);
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
}

void dialect_write_own_error(struct buffer *out, const struct task *task)
{
    enum jsonrpc_error error = dialect_error_of(task);
    OWNED_BUFFER(reason);
    OWNED_BUFFER(message);
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
}

void dialect_write_error(const struct dialect *dialect, struct buffer *out, struct str id,
                         enum jsonrpc_error error, struct str message,
                         const struct jsonrpc_error_data *data)
{
    jsonrpc_write_error(out, id, dialect->error(error).error, message, data);
}
