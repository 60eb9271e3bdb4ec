/* The answers to a plain call that is a task: the outcome in time, a late outcome, or what is
 * pending. */
#include <string.h>

#include "answer.h"
#include "call/deferred_response.h"
#include "call/refusal.h"
#include "inbox/task_summary.h"
#include "plain_call_internal.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/metrics.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/dialect_modern.h"
#include "taskgate/mcp/lists.h"
#include "tools.h"

static void count_wait(const char *outcome)
{
    metrics_count(METRIC_PSEUDO_WAITS, STR("call"), str_from(outcome));
}

/* ---- the outcome ---- */

static bool has_result(const struct task *task)
{
    bool has_run = task->state == TASK_COMPLETED || task->state == TASK_FAILED;
    return has_run && task->outcome == TASK_OUTCOME_RESULT;
}

static void answer_result(struct call *call, struct str stored)
{
    struct buffer result = {0};
    if (call->dialect->has_sessions)
        buffer_append(&result, stored);
    else
        dialect_modern_write_outcome(&result, stored);
    if (call->is_executed)
        pseudo_answer_result(call, buffer_str(&result));
    else
        call_answer_result_of_server(call, buffer_str(&result));
    buffer_finish(&result);
}

/* The client had gone when the outcome came, so the answer names the task. */
static void append_late(struct buffer *result, const struct task *task, struct str outcome)
{
    struct buffer text = {0}, block = {0};
    buffer_append_format(&text,
                         "This is the outcome of your earlier call, task %s. It was not run again "
                         "for this one.",
                         task->id);
    buffer_append_text(&block, "{\"type\":\"text\",\"text\":");
    buffer_append_json_string(&block, buffer_str(&text));
    buffer_append_char(&block, '}');
    mcp_list_append(result, outcome, "content", buffer_str(&block));
    buffer_finish(&block);
    buffer_finish(&text);
}

/* `message` is the whole answer with related-task _meta, which is of the legacy era. */
static void answer_late_result(struct call *call, const struct task *task, struct str message)
{
    struct buffer result = {0};
    append_late(&result, task,
                call->dialect->has_sessions ? json_member(message, "result")
                                            : str_slice(task->outcome_text, task->outcome_length));
    answer_result(call, buffer_str(&result));
    buffer_finish(&result);
}

static void answer_refusal(struct call *call, const struct task *task, struct str error,
                           bool is_late)
{
    struct buffer refusal = {0}, late = {0}, whole = {0};
    refusal_write_result(&refusal, call, refusal_of_task(task), error, task);
    if (is_late)
        append_late(&late, task, buffer_str(&refusal));
    struct str result = buffer_str(is_late ? &late : &refusal);
    if (call->is_executed) {
        pseudo_write_around(call, &whole, result);
        result = buffer_str(&whole);
    }
    call_answer_result(call, result);
    buffer_finish(&whole);
    buffer_finish(&late);
    buffer_finish(&refusal);
}

static void answer_late_error(struct call *call, const struct task *task, struct str message)
{
    struct str error = json_member(message, "error"), data = json_member(error, "data");
    struct buffer id = {0}, named = {0}, whole = {0}, answer = {0};
    buffer_append_format(&id, "\"%s\"", task->id);
    if (data.length == 0 || json_type(data) == JSON_OBJECT) {
        json_write_with_member(&named, data, "taskId", buffer_str(&id));
        json_write_with_member(&whole, error, "data", buffer_str(&named));
    } else {
        buffer_append(&whole, error);
    }
    jsonrpc_write_error_text(&answer, call->envelope.id, buffer_str(&whole));
    call_answer(call, buffer_str(&answer));
    buffer_finish(&answer);
    buffer_finish(&whole);
    buffer_finish(&named);
    buffer_finish(&id);
}

void plain_call_answer_outcome(struct call *call, const struct plain_call *plain,
                               const struct task *task)
{
    struct buffer message;
    buffer_init(&message);
    bool is_modern = !call->dialect->has_sessions;
    bool is_late = plain->is_late, is_result = has_result(task);
    count_wait(is_late ? "late" : "in_time");
    if (is_modern && !is_result)
        dialect_modern_write_error_answer(&message, call->envelope.id, task);
    else
        dialect_write_task_answer(&message, call->envelope.id, task);
    if (!is_result)
        call->outcome = "error";
    if (is_result && is_late)
        answer_late_result(call, task, buffer_str(&message));
    else if (is_result)
        answer_result(call, str_slice(task->outcome_text, task->outcome_length));
    else if (refusal_is_due(call, refusal_of_task(task)))
        answer_refusal(call, task, json_member(buffer_str(&message), "error"), is_late);
    else if (is_late)
        answer_late_error(call, task, buffer_str(&message));
    else
        call_answer(call, buffer_str(&message));
    buffer_finish(&message);
}

/* ---- what is pending ---- */

#define UNDECIDED_GRACE_MS 60000 /* the client may come back for the expiry itself */
#define UNDER_WAY_MS 600000

/* Some clients take a result without the member `inputRequests` for a final one. */
static void answer_required(struct call *call, const struct plain_call *plain, struct str requests,
                            enum request_state_kind kind)
{
    static const char *const counted[] = {"state", "confirm", "questions"};
    struct request_state next = {.round = plain->state.round + (kind == REQUEST_STATE_HOLD),
                                 .kind = kind};
    struct buffer result;
    buffer_init(&result);
    memcpy(next.id, plain->id, sizeof next.id);
    next.until_ms = plain->is_pending && kind != REQUEST_STATE_EXECUTE
                        ? plain->decide_by_ms + UNDECIDED_GRACE_MS
                        : clock_now_ms() + UNDER_WAY_MS;
    count_wait(counted[kind]);
    buffer_append_text(&result, "{\"resultType\":\"input_required\",\"inputRequests\":");
    buffer_append(&result, requests);
    buffer_append_text(&result, ",\"requestState\":");
    request_state_write(call, &next, &result);
    buffer_append_char(&result, '}');
    call_answer_result(call, buffer_str(&result));
    buffer_finish(&result);
}

void plain_call_answer_state(struct call *call, const struct plain_call *plain)
{
    answer_required(call, plain, STR("{}"), REQUEST_STATE_HOLD);
}

void plain_call_answer_asking(struct call *call, const struct plain_call *plain,
                              struct str requests, enum request_state_kind kind)
{
    answer_required(call, plain, requests, kind);
}

/* Calls of other sessions have another owner. */
static bool is_of_session(const struct call *call)
{
    return owner_is_session(call->owner);
}

/* How its client gets the outcome: by a tool that it is offered, or by the call itself. */
static void write_advice(struct buffer *out, const struct call *call,
                         const struct plain_call *plain)
{
    struct tool_names names = pseudo_tools_names(call);
    struct str tool = call_tool(call);
    if (tool_names_offer(&names, PSEUDO_TOOL_GET_TASK_RESULT)) {
        buffer_append_text(out, " To get the outcome, call ");
        tool_names_write(&names, PSEUDO_TOOL_GET_TASK_RESULT, out);
        buffer_append_format(out, " with task_id \"%s\".", plain->id);
    }
    if (plain->key[0])
        buffer_append_format(out,
                             " Calling %.*s again with the same arguments%s asks for the same task "
                             "and does not run it twice.",
                             STR_ARGS(tool), is_of_session(call) ? " in this session" : "");
}

static void write_sentence(struct buffer *out, const struct call *call,
                           const struct plain_call *plain, const struct task *task)
{
    struct str tool = call_tool(call);
    if (task->promoted) {
        bool hears = call->envelope.progress_token.length > 0 && deferred_response_may_stream(call);
        pseudo_write_promoted(call,
                              call->is_executed ? call->patience_ms : client_wait_ms(call, hears),
                              task->id, out);
        return;
    }
    buffer_append_format(out,
                         task->state == TASK_PENDING
                             ? "%.*s has not run yet: it waits for a person's approval (task %s)."
                             : "%.*s was approved and is running, but has no result yet (task %s).",
                         STR_ARGS(tool), task->id);
    write_advice(out, call, plain);
}

static void write_block(struct buffer *out, const struct call *call, const struct plain_call *plain,
                        const struct task *task, const struct store_reply *working)
{
    struct pseudo_questions inputs;
    pseudo_questions_init(&inputs, call);
    buffer_append_text(out, "{\"proxy_task\":");
    task_summary_write_proxy(out, task);
    buffer_append_format(out, ",\"joined\":%s,\"pending_on_server\":{\"tasks\":[",
                         plain->is_joined ? "true" : "false");
    for (size_t i = 0; i < working->task_count; i++) {
        if (i > 0)
            buffer_append_char(out, ',');
        task_summary_write_working(out, working->tasks[i]);
    }
    buffer_append_format(out, "],\"elicitations_for_server\":%.*s}}",
                         STR_ARGS(buffer_str(&inputs.elicitations)));
    pseudo_questions_finish(&inputs);
}

static const struct task *newest(const struct plain_call *plain, const struct store_reply *working)
{
    for (size_t i = 0; i < working->task_count; i++) {
        if (str_equal(str_from(working->tasks[i]->id), str_from(plain->id)))
            return working->tasks[i];
    }
    return plain->task;
}

void plain_call_answer_pending(struct call *call, const struct plain_call *plain,
                               const struct store_reply *working)
{
    const struct task *task = newest(plain, working);
    bool promises_other = task->promoted && plain->tool.has_output_schema && !call->is_executed;
    struct buffer text = {0}, json = {0};
    count_wait("pending");
    write_sentence(&text, call, plain, task);
    write_block(&json, call, plain, task, working);
    pseudo_answer_pending(call, &(struct pseudo_pending){.text = buffer_str(&text),
                                                         .json = buffer_str(&json),
                                                         .task_id = task->id,
                                                         .promises_other = promises_other});
    buffer_finish(&json);
    buffer_finish(&text);
}
