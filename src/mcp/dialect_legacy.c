/* A task's shapes in the legacy era: status words, the flat Task and shapes made of it. */
#include <inttypes.h>

#include "taskgate/core/assert.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/dialect.h"

/* Tying a message to its task. */

/* Appends the key's value. */
static void dialect_append_related(struct buffer *out, struct str task_id)
{
    buffer_append_text(out, "{\"taskId\":");
    buffer_append_json_string(out, task_id);
    buffer_append_char(out, '}');
}

/* Appends `"_meta":{…}`, a member to be, without comma. */
static void dialect_append_related_meta(struct buffer *out, struct str task_id)
{
    buffer_append_text(out, "\"_meta\":{\"" RELATED_TASK "\":");
    dialect_append_related(out, task_id);
    buffer_append_char(out, '}');
}

/* Writes `object` with the key set in its _meta; the other members of _meta stay. */
static void dialect_write_related(struct buffer *out, struct str object, struct str task_id)
{
    OWNED_BUFFER(value);
    dialect_append_related(&value, task_id);
    json_write_with_inner(out, object, "_meta", RELATED_TASK, buffer_str(&value));
}

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
    ASSERT_NUMBERS(state, <, TASK_STATE_COUNT);
    return names[state];
}

/* Behaviour 7.4: an execution is input_required while upstream waits for the client. */
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
    OWNED_BUFFER(message);
    if (asks)
        buffer_append_text(&message, "Waiting for the client's answer");
    else
        dialect_status_message(task, &message);
    if (message.length) {
        buffer_append_text(out, ",\"statusMessage\":");
        buffer_append_json_string(out, buffer_str(&message));
    }
}

static void dialect_legacy_append_time(struct buffer *out, const char *key, int64_t wall_ms)
{
    char text[CLOCK_TEXT_BYTES];
    buffer_append_format(out, ",\"%s\":\"%s\"", key, clock_format(wall_ms, text));
}

/* The flat Task without its braces. Optional members are left out rather than null, and a poll
 * interval of 0 would make clients spin. */
static void dialect_legacy_append_members(struct buffer *out, const struct task *task,
                                          const struct dialect_view *view)
{
    bool changed_since = task->state == TASK_EXECUTING && view->changed_ms > task->updated_ms;
    append_status(out, task, view);
    dialect_legacy_append_time(out, "createdAt", task->created_ms);
    dialect_legacy_append_time(out, "lastUpdatedAt",
                               changed_since ? view->changed_ms : task->updated_ms);
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
    dialect_legacy_append_members(out, task, view);
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

/* The result of a create: the flat fields, `task` with the same, and _meta: related-task,
 * pending-elicitations where some are open, and model-immediate-response, which is
 * `immediate` or, when that is empty, a sentence on where the task stands. */
static void write_legacy_create_result(struct buffer *out, const struct task *task,
                                       const struct dialect_view *view, struct str immediate)
{
    OWNED_BUFFER(sentence);
    if (immediate.length > 0)
        buffer_append(&sentence, immediate);
    else
        append_immediate(&sentence, task);
    buffer_append_char(out, '{');
    dialect_legacy_append_members(out, task, view);
    buffer_append_text(out, ",\"task\":");
    dialect_write_task(out, task, view);
    buffer_append_char(out, ',');
    append_meta(out, task, view, buffer_str(&sentence));
    buffer_append_char(out, '}');
}

/* The result of tasks/get and tasks/cancel: a flat Task with _meta related-task and
 * pending-elicitations. */
static void write_legacy_task(struct buffer *out, const struct task *task,
                              const struct dialect_view *view)
{
    buffer_append_char(out, '{');
    dialect_legacy_append_members(out, task, view);
    buffer_append_char(out, ',');
    append_meta(out, task, view, STR_EMPTY);
    buffer_append_char(out, '}');
}

void dialect_write_status_event(struct buffer *out, const struct task *task,
                                const struct dialect_view *view, int64_t now_ms)
{
    buffer_append_char(out, '{');
    append_status(out, task, view);
    dialect_legacy_append_time(out, "timestamp", now_ms);
    buffer_append_char(out, '}');
}

void dialect_write_status_notification(struct buffer *out, const struct task *task,
                                       const struct dialect_view *view)
{
    buffer_append_text(
        out, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tasks/status\",\"params\":{");
    dialect_legacy_append_members(out, task, view);
    if (is_asking(task, view)) {
        buffer_append_char(out, ',');
        append_meta(out, task, view, STR_EMPTY);
    }
    buffer_append_text(out, "}}");
}

/* tasks/result of a task that has ended. */

/* A result that is not an object has no place for _meta, so it stays unchanged. */
static void write_stored_result(struct buffer *out, struct str id, struct str result,
                                struct str task_id)
{
    OWNED_BUFFER(related);
    if (json_type(result) == JSON_OBJECT)
        dialect_write_related(&related, result, task_id);
    else
        buffer_append(&related, result);
    jsonrpc_write_result(out, id, buffer_str(&related));
}

/* The error of a task that ended without upstream's word. */
static void write_own_error(struct buffer *out, struct str id, const struct task *task)
{
    OWNED_BUFFER(error);
    dialect_write_own_error(&error, task);
    jsonrpc_write_error_text(out, id, buffer_str(&error));
}

void dialect_write_task_answer(struct buffer *out, struct str id, const struct task *task)
{
    ASSERT(task_state_is_terminal(task->state));
    const bool has_run = task->state == TASK_COMPLETED || task->state == TASK_FAILED;
    struct str outcome = str_slice(task->outcome_text, task->outcome_length);
    if (has_run && outcome.length && task->outcome == TASK_OUTCOME_RESULT)
        write_stored_result(out, id, outcome, str_from(task->id));
    else if (has_run && outcome.length && task->outcome == TASK_OUTCOME_ERROR)
        jsonrpc_write_error_text(out, id, outcome);
    else
        write_own_error(out, id, task);
}

/* Progress of a task: the gateway's own while a human thinks, upstream's while it runs. */

void dialect_write_progress(struct buffer *out, struct str token, int64_t progress,
                            struct str message, struct str task_id)
{
    buffer_append_text(out, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\","
                            "\"params\":{\"progressToken\":");
    buffer_append(out, token);
    buffer_append_format(out, ",\"progress\":%" PRId64, progress);
    if (message.length) {
        buffer_append_text(out, ",\"message\":");
        buffer_append_json_string(out, message);
    }
    if (task_id.length) {
        buffer_append_char(out, ',');
        dialect_append_related_meta(out, task_id);
    }
    buffer_append_text(out, "}}");
}

void dialect_rewrite_progress(struct buffer *out, struct str message, struct str token,
                              struct str task_id)
{
    OWNED_BUFFER(retokened);
    OWNED_BUFFER(params);
    json_write_with_member(&retokened, json_member(message, "params"), "progressToken", token);
    dialect_write_related(&params, buffer_str(&retokened), task_id);
    json_write_with_member(out, message, "params", buffer_str(&params));
}

void dialect_write_related_message(struct buffer *out, struct str message, struct str id,
                                   struct str task_id)
{
    OWNED_BUFFER(params);
    OWNED_BUFFER(related);
    dialect_write_related(&params, json_member(message, "params"), task_id);
    json_write_with_member(&related, message, "params", buffer_str(&params));
    if (id.length > 0)
        json_write_with_member(out, buffer_str(&related), "id", id);
    else
        buffer_append(out, buffer_str(&related));
}

/* params.task: how long a client wants its task kept. */

/* A literal without fraction or exponent that is above 0. JSON allows no leading zeros, so a
 * first digit of 0 is 0. */
static bool is_positive_integer(struct str number)
{
    for (size_t i = 0; i < number.length; i++) {
        if (number.bytes[i] < '0' || number.bytes[i] > '9')
            return false;
    }
    return number.length > 0 && number.bytes[0] != '0';
}

enum dialect_ttl dialect_read_ttl(struct str task, int64_t default_ms, int64_t max_ms,
                                  int64_t *ttl_ms)
{
    if (json_type(task) != JSON_OBJECT)
        return DIALECT_TTL_INVALID;
    struct str ttl = json_member(task, "ttl");
    if (ttl.length == 0) {
        *ttl_ms = default_ms;
        return DIALECT_TTL_OK;
    }
    if (!is_positive_integer(ttl))
        return DIALECT_TTL_INVALID;
    uint64_t asked; /* a literal beyond 64 bits is above any maximum */
    if (!str_to_u64(ttl, &asked) || asked > (uint64_t)max_ms) {
        *ttl_ms = max_ms;
        return DIALECT_TTL_CLAMPED;
    }
    *ttl_ms = (int64_t)asked;
    return DIALECT_TTL_OK;
}

/* ---- the table of the era ---- */

/* Its clients read errors only there. */
static struct dialect_error legacy_error(enum jsonrpc_error error)
{
    return (struct dialect_error){error, 200};
}

static void write_legacy_list(struct buffer *out, struct str result, int64_t most_ms)
{
    (void)most_ms; /* the era knows no such thing */
    buffer_append(out, result);
}

const struct dialect dialect_legacy = {
    .era = MCP_ERA_LEGACY,
    .has_sessions = true,
    .server_may_ask = true,
    .offers_all_tools = true,
    .announces_tasks = true,
    .error = legacy_error,
    .write_result = jsonrpc_write_result,
    .write_own_result = jsonrpc_write_result,
    .write_list = write_legacy_list,
    .write_task = write_legacy_task,
    .write_answer = dialect_write_task_answer,
    .write_create_result = write_legacy_create_result,
};
