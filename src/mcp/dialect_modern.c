/* A task's shapes in the modern era (SEP-2663). */
#include "taskgate/mcp/dialect_modern.h"

#include <inttypes.h>

#include "taskgate/core/clock.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/cacheable.h"
#include "taskgate/mcp/question.h"

#define POLL_MS 1000
/* A person who has not decided within a minute is not waiting at the screen. */
#define UNDECIDED_POLL_MS 5000
#define UNDECIDED_AFTER_MS 60000

/* The members that a status brings with it. */
enum extra { EXTRA_NONE, EXTRA_REQUESTS, EXTRA_RESULT, EXTRA_ERROR };
struct face {
    const char *status;
    enum extra extra;
};

static const struct face faces[TASK_STATE_COUNT] = {
    [TASK_PENDING] = {"working", EXTRA_NONE},   [TASK_APPROVED] = {"working", EXTRA_NONE},
    [TASK_EXECUTING] = {"working", EXTRA_NONE}, [TASK_COMPLETED] = {"completed", EXTRA_RESULT},
    [TASK_FAILED] = {"failed", EXTRA_ERROR},    [TASK_CANCELLED] = {"cancelled", EXTRA_NONE},
    [TASK_REJECTED] = {"failed", EXTRA_ERROR},  [TASK_EXPIRED] = {"failed", EXTRA_ERROR},
};

static struct str dialect_modern_outcome_of(const struct task *task)
{
    return str_slice(task->outcome_text, task->outcome_length);
}

/* The table's row, but for a server that waits, a result with isError, and a stored result that is
 * no object and so cannot be shown as one. A result with isError is `completed` here, although the
 * task's state is failed: the extension calls only a JSON-RPC error a failure. */
static struct face face_of(const struct task *task, const struct dialect_view *view)
{
    const bool has_result = task->outcome == TASK_OUTCOME_RESULT &&
                            json_type(dialect_modern_outcome_of(task)) == JSON_OBJECT;
    if (task->state == TASK_EXECUTING && view->input_requests.length > 0)
        return (struct face){"input_required", EXTRA_REQUESTS};
    if (task->state == TASK_FAILED && has_result)
        return faces[TASK_COMPLETED];
    if (task->state == TASK_COMPLETED && !has_result)
        return faces[TASK_FAILED];
    return faces[task->state];
}

static void dialect_modern_append_time(struct buffer *out, const char *key, int64_t wall_ms)
{
    char text[CLOCK_TEXT_BYTES];
    buffer_append_format(out, ",\"%s\":\"%s\"", key, clock_format(wall_ms, text));
}

/* A pending task says who decides, and until when. */
static void dialect_modern_append_message(struct buffer *out, const struct task *task,
                                          enum extra extra)
{
    char text[CLOCK_TEXT_BYTES];
    OWNED_BUFFER(message);
    if (extra == EXTRA_REQUESTS)
        buffer_append_text(&message, "Waiting for the client's answer");
    else
        dialect_status_message(task, &message);
    if (task->state == TASK_PENDING && *task->workflow)
        buffer_append_format(&message, ": workflow %s decides", task->workflow);
    if (task->state == TASK_PENDING && task->decide_by_ms > 0)
        buffer_append_format(&message, " until %s", clock_format(task->decide_by_ms, text));
    if (message.length) {
        buffer_append_text(out, ",\"statusMessage\":");
        buffer_append_json_string(out, buffer_str(&message));
    }
}

static int64_t poll_interval_of(const struct task *task, const struct dialect_view *view)
{
    bool is_slow =
        task->state == TASK_PENDING && view->now_ms - task->created_ms >= UNDECIDED_AFTER_MS;
    return is_slow ? UNDECIDED_POLL_MS : POLL_MS;
}

static void dialect_modern_append_members(struct buffer *out, const struct task *task,
                                          const struct dialect_view *view, struct face face)
{
    bool changed_since = task->state == TASK_EXECUTING && view->changed_ms > task->updated_ms;
    buffer_append_format(out, "\"taskId\":\"%s\",\"status\":\"%s\"", task->id, face.status);
    dialect_modern_append_message(out, task, face.extra);
    dialect_modern_append_time(out, "createdAt", task->created_ms);
    dialect_modern_append_time(out, "lastUpdatedAt",
                               changed_since ? view->changed_ms : task->updated_ms);
    buffer_append_format(out, ",\"ttlMs\":%" PRId64 ",\"pollIntervalMs\":%" PRId64,
                         task_retention_horizon_ms(task), poll_interval_of(task, view));
}

/* A legacy server ties the result of a task of its own to that task, which no client knows. */
static void append_untied(struct buffer *out, struct str result)
{
    struct str meta = json_member(result, "_meta");
    OWNED_BUFFER(others);
    if (json_member(meta, RELATED_TASK).length == 0) {
        buffer_append(out, result);
        return;
    }
    json_write_without_member(&others, meta, RELATED_TASK);
    if (json_count(buffer_str(&others)) > 0)
        json_write_with_member(out, result, "_meta", buffer_str(&others));
    else
        json_write_without_member(out, result, "_meta");
}

/* The clients of the extension fail on a result without `resultType`. */
static void dialect_modern_write_outcome(struct buffer *out, struct str result)
{
    OWNED_BUFFER(untied);
    append_untied(&untied, result);
    if (json_member(result, "resultType").length)
        buffer_append(out, buffer_str(&untied));
    else
        json_write_with_member(out, buffer_str(&untied), "resultType", STR("\"complete\""));
}

/* The revision forbids the code that the gateway itself has stored for any era. */
static void append_own_outcome(struct buffer *out, struct str error)
{
    if (str_equal(json_member(error, "code"), STR("-32002")))
        json_write_with_member(out, error, "code", STR("-32603"));
    else
        buffer_append(out, error);
}

static void append_error(struct buffer *out, const struct task *task)
{
    if (task->state != TASK_FAILED || task->outcome != TASK_OUTCOME_ERROR || !task->outcome_length)
        dialect_write_own_error(out, task);
    else if (task->failure == TASK_FAILURE_GATEWAY)
        append_own_outcome(out, dialect_modern_outcome_of(task));
    else
        buffer_append(out, dialect_modern_outcome_of(task));
}

static void append_extra(struct buffer *out, const struct task *task,
                         const struct dialect_view *view, enum extra extra)
{
    switch (extra) {
    case EXTRA_NONE:
        break;
    case EXTRA_REQUESTS:
        buffer_append_text(out, ",\"inputRequests\":");
        buffer_append(out, view->input_requests);
        break;
    case EXTRA_RESULT:
        buffer_append_text(out, ",\"result\":");
        dialect_modern_write_outcome(out, dialect_modern_outcome_of(task));
        break;
    case EXTRA_ERROR:
        buffer_append_text(out, ",\"error\":");
        append_error(out, task);
        break;
    }
}

static void append_detailed(struct buffer *out, const struct task *task,
                            const struct dialect_view *view)
{
    struct face face = face_of(task, view);
    dialect_modern_append_members(out, task, view, face);
    append_extra(out, task, view, face.extra);
}

/* The result of tasks/get: the task with its result, error or requests. A result that the server
 * gave without `resultType` gets one; a stored error is verbatim. */
static void write_modern_task(struct buffer *out, const struct task *task,
                              const struct dialect_view *view)
{
    buffer_append_text(out, "{\"resultType\":\"complete\",");
    append_detailed(out, task, view);
    buffer_append_char(out, '}');
}

void dialect_modern_write_notification(struct buffer *out, const struct task *task,
                                       const struct dialect_view *view, struct str subscription_id)
{
    buffer_append_text(out, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tasks\",\"params\":{");
    append_detailed(out, task, view);
    buffer_append_text(out, ",\"_meta\":{\"io.modelcontextprotocol/subscriptionId\":");
    buffer_append(out, subscription_id);
    buffer_append_text(out, "}}}");
}

bool mcp_declares_task_extension(struct str client_capabilities)
{
    return json_type(json_path(client_capabilities, "extensions", MODERN_TASKS_EXTENSION)) ==
           JSON_OBJECT;
}

bool dialect_modern_is_round(struct str requests, struct str state)
{
    struct str key, request;
    size_t count = json_count(requests);
    if ((requests.length > 0 && json_type(requests) != JSON_OBJECT) ||
        (state.length > 0 && json_type(state) != JSON_STRING) || count > MODERN_MOST_REQUESTS)
        return false;
    for (size_t position = 0; json_next_member(requests, &position, &key, &request);) {
        if (mcp_question_of(request) == MCP_QUESTION_NONE)
            return false;
    }
    return state.length > 0 || count > 0;
}

/* ---- the table of the era ---- */

static struct dialect_error modern_error(enum jsonrpc_error error)
{
    static const struct dialect_error others[JSONRPC_ERROR_COUNT] = {
#define MODERN_ERROR_ROW(symbol, stands_in, status)                                                \
    [JSONRPC_##symbol] = {JSONRPC_##stands_in, status},
#include "taskgate/mcp/error_table.h"
#undef MODERN_ERROR_ROW
    };
    return others[error].status ? others[error] : (struct dialect_error){error, 200};
}

/* Each result names its type; one that has none is complete. */
static void write_modern_result(struct buffer *out, struct str id, struct str result)
{
    OWNED_BUFFER(typed);
    dialect_modern_write_outcome(&typed, result);
    jsonrpc_write_result(out, id, buffer_str(&typed));
}

static void write_modern_answer(struct buffer *out, struct str id, const struct task *task)
{
    OWNED_BUFFER(error);
    bool has_run = task->state == TASK_COMPLETED || task->state == TASK_FAILED;
    if (has_run && task->outcome == TASK_OUTCOME_RESULT) {
        jsonrpc_write_result(out, id, dialect_modern_outcome_of(task));
        return;
    }
    append_error(&error, task);
    jsonrpc_write_error_text(out, id, buffer_str(&error));
}

#define SERVER_INFO "io.modelcontextprotocol/serverInfo"

/* Each result should say which server made it (basic, "Per-response metadata"). One that has been
 * made of a server's keeps what that server says. */
static void write_modern_own_result(struct buffer *out, struct str id, struct str result)
{
    OWNED_BUFFER(whole);
    if (json_path(result, "_meta", SERVER_INFO).length > 0)
        buffer_append(&whole, result);
    else
        json_write_with_inner(&whole, result, "_meta", SERVER_INFO,
                              STR("{\"name\":\"taskgate\",\"version\":\"" TASKGATE_VERSION "\"}"));
    write_modern_result(out, id, buffer_str(&whole));
}

/* The result of a tools/call that became a task. Its status is `working` wherever the task is:
 * clients refuse a new task that has ended. The shape has no text for the model. */
static void write_modern_create_result(struct buffer *out, const struct task *task,
                                       const struct dialect_view *view, struct str immediate)
{
    buffer_append_text(out, "{\"resultType\":\"task\",");
    dialect_modern_append_members(out, task, view, (struct face){"working", EXTRA_NONE});
    buffer_append_char(out, '}');
}

const struct dialect dialect_modern = {
    .era = MCP_ERA_MODERN,
    .extends_tasks = true,
    .error = modern_error,
    .write_result = write_modern_result,
    .write_own_result = write_modern_own_result,
    .write_list = mcp_cacheable_write,
    .write_task = write_modern_task,
    .write_answer = write_modern_answer,
    .write_create_result = write_modern_create_result,
};
