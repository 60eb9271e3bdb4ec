/* A task's shapes in the legacy era: status words, the flat Task and what is made of it. */
#include <inttypes.h>

#include "related_task.h"
#include "taskgate/core/clock.h"
#include "taskgate/mcp/dialect.h"

const char *dialect_status(enum task_state state, enum dialect_pending pending)
{
    static const char *const names[TASK_STATE_COUNT] = {
        [TASK_PENDING] = "input_required", [TASK_APPROVED] = "working",
        [TASK_EXECUTING] = "working",      [TASK_COMPLETED] = "completed",
        [TASK_FAILED] = "failed",          [TASK_CANCELLED] = "cancelled",
        [TASK_REJECTED] = "failed",        [TASK_EXPIRED] = "failed",
    };
    if (state == TASK_PENDING && pending == DIALECT_PENDING_WORKING)
        return "working";
    return names[state];
}

/* The members that a poll and an event share: taskId, status, statusMessage. */
static void append_status(struct buffer *out, const struct task *task, enum dialect_pending pending)
{
    buffer_append_format(out, "\"taskId\":\"%s\",\"status\":\"%s\"", task->id,
                         dialect_status(task->state, pending));
    struct buffer message;
    buffer_init(&message);
    dialect_status_message(task, &message);
    if (message.length) {
        buffer_append_text(out, ",\"statusMessage\":");
        buffer_append_json_string(out, buffer_str(&message));
    }
    buffer_finish(&message);
}

static void append_time(struct buffer *out, const char *key, int64_t wall_ms)
{
    char text[CLOCK_TEXT_BYTES];
    buffer_append_format(out, ",\"%s\":\"%s\"", key, clock_format(wall_ms, text));
}

/* The flat Task without its braces. Optional members are left out rather than null, and a poll
 * interval of 0 would make clients spin. */
static void append_members(struct buffer *out, const struct task *task,
                           enum dialect_pending pending)
{
    append_status(out, task, pending);
    append_time(out, "createdAt", task->created_ms);
    append_time(out, "lastUpdatedAt", task->updated_ms);
    buffer_append_format(out, ",\"ttl\":%" PRId64, task->ttl_ms);
    if (task->poll_interval_ms > 0)
        buffer_append_format(out, ",\"pollInterval\":%" PRId64, task->poll_interval_ms);
    buffer_append_text(out, ",\"toolName\":");
    buffer_append_json_string(out, str_from(task->tool));
}

void dialect_write_task(struct buffer *out, const struct task *task, enum dialect_pending pending)
{
    buffer_append_char(out, '{');
    append_members(out, task, pending);
    buffer_append_char(out, '}');
}

void dialect_write_create_result(struct buffer *out, const struct task *task,
                                 enum dialect_pending pending)
{
    buffer_append_char(out, '{');
    append_members(out, task, pending);
    buffer_append_text(out, ",\"task\":");
    dialect_write_task(out, task, pending);
    buffer_append_char(out, ',');
    dialect_append_related_meta(out, str_from(task->id));
    buffer_append_char(out, '}');
}

void dialect_write_get_result(struct buffer *out, const struct task *task,
                              enum dialect_pending pending)
{
    buffer_append_char(out, '{');
    append_members(out, task, pending);
    buffer_append_char(out, ',');
    dialect_append_related_meta(out, str_from(task->id));
    buffer_append_char(out, '}');
}

void dialect_write_status_event(struct buffer *out, const struct task *task,
                                enum dialect_pending pending, int64_t now_ms)
{
    buffer_append_char(out, '{');
    append_status(out, task, pending);
    append_time(out, "timestamp", now_ms);
    buffer_append_char(out, '}');
}

void dialect_write_status_notification(struct buffer *out, const struct task *task,
                                       enum dialect_pending pending)
{
    buffer_append_text(
        out, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tasks/status\",\"params\":");
    dialect_write_task(out, task, pending);
    buffer_append_char(out, '}');
}
