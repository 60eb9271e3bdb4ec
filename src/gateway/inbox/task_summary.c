/* Tasks as the gateway's own tools show them. */
#include "task_summary.h"

#include <inttypes.h>
#include <string.h>

#include "taskgate/core/assert.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/members.h"

/* Longer arguments are left out of lists, because the caller knows them. */
#define MOST_ARGUMENT_BYTES ((size_t)4096)

static const char *const statuses[TASK_STATE_COUNT] = {
    [TASK_PENDING] = "working",     [TASK_APPROVED] = "working", [TASK_EXECUTING] = "working",
    [TASK_COMPLETED] = "completed", [TASK_FAILED] = "failed",    [TASK_CANCELLED] = "cancelled",
    [TASK_REJECTED] = "failed",     [TASK_EXPIRED] = "expired",
};

const char *task_summary_status(enum task_state state)
{
    ASSERT_NUMBERS(state, <, sizeof statuses / sizeof *statuses);
    return statuses[state];
}

unsigned pseudo_status_states(struct str status)
{
    unsigned states = 0;
    for (unsigned i = 0; i < TASK_STATE_COUNT; i++) {
        if (str_equal(status, str_from(statuses[i])))
            states |= 1U << i;
    }
    return states;
}

static void add_status_message(struct buffer *out, const char *key, const struct task *task)
{
    OWNED_BUFFER(message);
    dialect_status_message(task, &message);
    if (message.length > 0) {
        json_add_str(out, key, buffer_str(&message));
    }
}

void task_summary_write_error(struct buffer *out, const struct task *task)
{
    bool is_failure = task_state_is_terminal(task->state) && task->state != TASK_COMPLETED;
    if (is_failure)
        dialect_status_message(task, out);
}

static void add_error(struct buffer *out, const struct task *task)
{
    OWNED_BUFFER(error);
    task_summary_write_error(&error, task);
    if (error.length > 0) {
        json_add_str(out, "error", buffer_str(&error));
    }
}

void task_summary_write(struct buffer *out, const struct task *task)
{
    buffer_append_char(out, '{');
    json_add_text(out, "taskId", task->id);
    json_add_time(out, "createdAt", task->created_ms);
    json_add_time(out, "lastUpdatedAt", task->updated_ms);
    json_add_text(out, "server", task->source);
    json_add_text(out, "toolName", task->tool);
    if (task->arguments[0] && strlen(task->arguments) <= MOST_ARGUMENT_BYTES)
        buffer_append_format(out, ",\"toolArgs\":%s", task->arguments);
    json_add_text(out, "status", task_summary_status(task->state));
    add_status_message(out, "statusMessage", task);
    add_error(out, task);
    buffer_append_format(out, ",\"hasResult\":%s,\"ttl\":%" PRId64 "}",
                         task->outcome == TASK_OUTCOME_RESULT ? "true" : "false", task->ttl_ms);
}

void task_summary_write_proxy(struct buffer *out, const struct task *task)
{
    buffer_append_char(out, '{');
    json_add_text(out, "task_id", task->id);
    json_add_text(out, "status", task_summary_status(task->state));
    add_status_message(out, "status_message", task);
    json_add_time(out, "created_at", task->created_ms);
    json_add_time(out, "last_updated_at", task->updated_ms);
    json_add_text(out, "server", task->source);
    json_add_text(out, "tool", task->tool);
    add_error(out, task);
    buffer_append_format(out, ",\"ttl\":%" PRId64 "}", task->ttl_ms);
}

void task_summary_write_working(struct buffer *out, const struct store_reply *working)
{
    for (size_t i = 0; i < working->task_count; i++) {
        const struct task *task = working->tasks[i];
        buffer_append_text(out, i > 0 ? ",{" : "{");
        json_add_text(out, "taskId", task->id);
        json_add_text(out, "toolName", task->tool);
        json_add_text(out, "status", task_summary_status(task->state));
        buffer_append_char(out, '}');
    }
}

void task_summary_list(struct call *call, unsigned states, call_reply take)
{
    bool is_anonymous = strcmp(call->owner, OWNER_ANONYMOUS) == 0;
    struct store_task_query query = {
        .owner = str_from(call->owner),
        .session = str_from(call->session),
        .source = str_from(call->source->id),
        .states = states,
        .limit = TASK_SUMMARY_MOST_LISTED,
        .most_argument_bytes = MOST_ARGUMENT_BYTES,
    };
    struct store_reply nothing = {.status = STORE_OK};
    if (is_anonymous)
        take(call, &nothing);
    else
        store_task_list(call->worker->gateway->store, &query, call_to_store(call, take));
}
