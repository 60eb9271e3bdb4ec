/* tasks/result of a task that has ended. */
#include <assert.h>

#include "related_task.h"
#include "task_error.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/dialect.h"

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

/* The error of a task that ended without upstream's word. */
static void write_own_error(struct buffer *out, struct str id, const struct task *task)
{
    struct buffer error;
    buffer_init(&error);
    dialect_write_own_error(&error, task);
    jsonrpc_write_error_text(out, id, buffer_str(&error));
    buffer_finish(&error);
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
