/* The members of the operators' task, one row each where they are alike. */
#include "task_json.h"

#include "taskgate/core/clock.h"

#include "redact.h"

/* What a client sees of each state; design §5. */
static const char *const client_status[TASK_STATE_COUNT] = {
    [TASK_PENDING] = "input_required", [TASK_APPROVED] = "working", [TASK_EXECUTING] = "working",
    [TASK_COMPLETED] = "completed",    [TASK_FAILED] = "failed",    [TASK_CANCELLED] = "cancelled",
    [TASK_REJECTED] = "failed",        [TASK_EXPIRED] = "failed",
};

static void append_key(struct buffer *out, const char *key)
{
    buffer_append_format(out, ",\"%s\":", key);
}

static void append_text(struct buffer *out, const char *key, const char *text)
{
    append_key(out, key);
    buffer_append_json_string(out, str_from(text));
}

/* null for what has not been said (yet). */
static void append_optional(struct buffer *out, const char *key, const char *text)
{
    if (text && *text) {
        append_text(out, key, text);
    } else {
        append_key(out, key);
        buffer_append(out, STR("null"));
    }
}

static void append_time(struct buffer *out, const char *key, int64_t wall_ms)
{
    char text[CLOCK_TEXT_BYTES];
    append_optional(out, key, wall_ms ? clock_format(wall_ms, text) : NULL);
}

void task_json_write(struct buffer *out, const struct task *task, const struct config *config)
{
    buffer_append_format(out, "{\"id\":\"%s\"", task->id);
    append_text(out, "state", task_state_name(task->state));
    append_text(out, "status", client_status[task->state]);
    append_text(out, "source", task->source);
    append_text(out, "tool", task->tool);
    append_key(out, "arguments");
    redact_write(out, str_from(task->arguments), config, task->workflow);
    append_text(out, "argumentsDigest", task->arguments_digest);
    append_text(out, "principal", task->principal);
    append_optional(out, "workflow", task->workflow);
    append_time(out, "createdAt", task->created_ms);
    append_time(out, "decideBy", task->decide_by_ms);
    append_time(out, "executeBy", task->execute_by_ms);
    append_time(out, "decidedAt", task->decided_ms);
    append_optional(out, "decidedBy", task->decided_by);
    append_optional(out, "reason", task->reason);
    append_text(out, "statusMessage", task->status_message ? task->status_message : "");
    buffer_append_char(out, '}');
}
