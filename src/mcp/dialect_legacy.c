/* A task's shapes in the legacy era: status words, the flat Task and shapes made of it. */
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

/* Design §5: an execution is input_required while upstream waits for the client. */
static bool is_asking(const struct task *task, const struct dialect_view *view)
{
    return view->is_asking && task->state == TASK_EXECUTING;
}

/* The members that a poll and an event share: taskId, status, statusMessage. */
static void append_status(struct buffer *out, const struct task *task,
                          const struct dialect_view *view)
{
    bool asks = is_asking(task, view);
    buffer_append_format(out, "\"taskId\":\"%s\",\"status\":\"%s\"", task->id,
                         asks ? "input_required" : dialect_status(task->state, view->pending));
    struct buffer message;
    buffer_init(&message);
    if (asks)
        buffer_append_text(&message, "Waiting for the client's answer");
    else
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
                           const struct dialect_view *view)
{
    bool changed_since = task->state == TASK_EXECUTING && view->changed_ms > task->updated_ms;
    append_status(out, task, view);
    append_time(out, "createdAt", task->created_ms);
    append_time(out, "lastUpdatedAt", changed_since ? view->changed_ms : task->updated_ms);
    buffer_append_format(out, ",\"ttl\":%" PRId64, task->ttl_ms);
    if (task->poll_interval_ms > 0)
        buffer_append_format(out, ",\"pollInterval\":%" PRId64, task->poll_interval_ms);
    buffer_append_text(out, ",\"toolName\":");
    buffer_append_json_string(out, str_from(task->tool));
}

/* `_meta`, a member to be, without comma. */
static void append_meta(struct buffer *out, const struct task *task,
                        const struct dialect_view *view, struct str immediate)
{
    buffer_append_text(out, "\"_meta\":{\"" RELATED_TASK "\":");
    dialect_append_related(out, str_from(task->id));
    if (is_asking(task, view) && view->pending_elicitations.length > 0) {
        buffer_append_text(out, ",\"io.modelcontextprotocol/pending-elicitations\":");
        buffer_append(out, view->pending_elicitations);
    }
    if (immediate.length > 0) {
        buffer_append_text(out, ",\"io.modelcontextprotocol/model-immediate-response\":");
        buffer_append_json_string(out, immediate);
    }
    buffer_append_char(out, '}');
}

void dialect_write_task(struct buffer *out, const struct task *task,
                        const struct dialect_view *view)
{
    buffer_append_char(out, '{');
    append_members(out, task, view);
    buffer_append_char(out, '}');
}

/* The immediate text for a model, where no rule words it. */
static void append_immediate(struct buffer *out, const struct task *task)
{
    buffer_append_format(
        out,
        task->state == TASK_PENDING
            ? "The call of %s waits for a person's approval. It has not run yet; what comes "
              "of it will be the result of task %s."
            : "The call of %s runs as task %s, and what comes of it will be its result.",
        task->tool, task->id);
}

void dialect_write_create_result(struct buffer *out, const struct task *task,
                                 const struct dialect_view *view, struct str immediate)
{
    struct buffer sentence;
    buffer_init(&sentence);
    if (immediate.length > 0)
        buffer_append(&sentence, immediate);
    else
        append_immediate(&sentence, task);
    buffer_append_char(out, '{');
    append_members(out, task, view);
    buffer_append_text(out, ",\"task\":");
    dialect_write_task(out, task, view);
    buffer_append_char(out, ',');
    append_meta(out, task, view, buffer_str(&sentence));
    buffer_append_char(out, '}');
    buffer_finish(&sentence);
}

void dialect_write_get_result(struct buffer *out, const struct task *task,
                              const struct dialect_view *view)
{
    buffer_append_char(out, '{');
    append_members(out, task, view);
    buffer_append_char(out, ',');
    append_meta(out, task, view, STR_EMPTY);
    buffer_append_char(out, '}');
}

void dialect_write_status_event(struct buffer *out, const struct task *task,
                                const struct dialect_view *view, int64_t now_ms)
{
    buffer_append_char(out, '{');
    append_status(out, task, view);
    append_time(out, "timestamp", now_ms);
    buffer_append_char(out, '}');
}

void dialect_write_status_notification(struct buffer *out, const struct task *task,
                                       const struct dialect_view *view)
{
    buffer_append_text(
        out, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tasks/status\",\"params\":{");
    append_members(out, task, view);
    if (is_asking(task, view)) {
        buffer_append_char(out, ',');
        append_meta(out, task, view, STR_EMPTY);
    }
    buffer_append_text(out, "}}");
}
