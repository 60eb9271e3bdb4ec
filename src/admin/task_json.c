/* The members of the operators' task, one row each where they are alike. */
#include "task_json.h"

#include "taskgate/json/members.h"
#include "taskgate/notify/redact.h"

/* The status that a client sees for each state; design §5. */
static const char *const client_status[TASK_STATE_COUNT] = {
    [TASK_PENDING] = "input_required", [TASK_APPROVED] = "working", [TASK_EXECUTING] = "working",
    [TASK_COMPLETED] = "completed",    [TASK_FAILED] = "failed",    [TASK_CANCELLED] = "cancelled",
    [TASK_REJECTED] = "failed",        [TASK_EXPIRED] = "failed",
};

/* The client's text without the values that operators must not see. */
static void add_redacted(struct buffer *out, const char *key, const char *json,
                         const struct task *task, const struct config *config)
{
    json_add_key(out, key);
    redact_write(out, *json ? str_from(json) : STR("{}"), config, task->workflow);
}

void task_json_write(struct buffer *out, const struct task *task, const struct config *config)
{
    buffer_append_format(out, "{\"id\":\"%s\"", task->id);
    json_add_text(out, "state", task_state_name(task->state));
    json_add_text(out, "status", client_status[task->state]);
    json_add_text(out, "source", task->source);
    json_add_text(out, "tool", task->tool);
    add_redacted(out, "arguments", task->arguments, task, config);
    add_redacted(out, "meta", task->meta, task, config);
    add_redacted(out, "otherParams", task->other_params, task, config);
    json_add_text(out, "argumentsDigest", task->arguments_digest);
    json_add_text_or_null(out, "requestDigest", task->request_digest);
    json_add_text(out, "principal", task->principal);
    json_add_text_or_null(out, "workflow", task->workflow);
    json_add_time(out, "createdAt", task->created_ms);
    json_add_time(out, "decideBy", task->decide_by_ms);
    json_add_time(out, "executeBy", task->execute_by_ms);
    json_add_time(out, "decidedAt", task->decided_ms);
    json_add_text_or_null(out, "decidedBy", task->decided_by);
    json_add_text_or_null(out, "reason", task->reason);
    json_add_text(out, "statusMessage", task->status_message);
    buffer_append_char(out, '}');
}
