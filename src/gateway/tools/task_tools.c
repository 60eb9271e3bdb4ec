/* list_tasks, get_task, cancel_task. */
#include "answer.h"
#include "call/client_profile.h"
#include "call/refusal.h"
#include "conversation/execute.h"
#include "conversation/waiting.h"
#include "inbox/task_summary.h"
#include "repeated_news.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/metrics.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/members.h"
#include "taskgate/json/text.h"
#include "tools.h"

/* get_task_result: waits for a task's end and answers with its outcome. */

#define MOST_WAIT_MS INT64_C(86400000)
/* URL elicitation required. It stays an error of the protocol wherever it appears (behaviour
 * 12.3). */
#define URL_ELICITATION_REQUIRED STR("-32042")

/* The id of the task that is asked for. The copy outlives the request. */
static struct str asked_id(const struct call *call, struct buffer *id)
{
    buffer_clear(id);
    pseudo_argument_text(call->envelope.arguments.raw, "task_id", id);
    return buffer_str(id);
}

static void read_asked(struct call *call, call_reply take)
{
    OWNED_BUFFER(id);
    store_task_get(call->worker->gateway->store, asked_id(call, &id), call_to_store(call, take));
}

/* NULL: there is none, or it is another client's. */
static struct task *asked_task(const struct call *call, const struct store_reply *reply)
{
    OWNED_BUFFER(id);
    return call_own_task(call, reply, asked_id(call, &id));
}

static void task_tools_count_wait(const char *outcome)
{
    metrics_count(METRIC_PSEUDO_WAITS, STR("get_task_result"), str_from(outcome));
}

/* {"error": …}, as the documented interface has it. */
static void task_tools_answer_error(struct call *call, struct str message, const struct task *asks)
{
    OWNED_BUFFER(json);
    buffer_append_char(&json, '{');
    json_add_str(&json, "error", message);
    buffer_append_char(&json, '}');
    pseudo_answer(call, &(struct pseudo_result){.json = buffer_str(&json),
                                                .structured = buffer_str(&json),
                                                .asks = asks,
                                                .is_error = true});
}

/* Names of tools are in `what` as in tools.h. */
static void answer_about(struct call *call, const char *what)
{
    OWNED_BUFFER(id);
    OWNED_BUFFER(text);
    buffer_append_format(&text, "Task '%.*s' ", STR_ARGS(asked_id(call, &id)));
    pseudo_tools_write_text(call, what, &text);
    task_tools_answer_error(call, buffer_str(&text), waiting_kept(call));
}

/* ---- it has ended ---- */

static void answer_failure(struct call *call, const struct task *task)
{
    OWNED_BUFFER(text);
    OWNED_BUFFER(why);
    const char *verb = task->state == TASK_CANCELLED ? "was" : "";
    task_summary_write_error(&why, task);
    buffer_append_format(&text, "Task '%s' %s%s%s", task->id, verb, *verb ? " " : "",
                         task_summary_status(task->state));
    if (task->state != TASK_CANCELLED && why.length > 0)
        buffer_append_format(&text, ": %.*s", STR_ARGS(buffer_str(&why)));
    task_tools_answer_error(call, buffer_str(&text), NULL);
}

static void answer_refusal(struct call *call, const struct task *task)
{
    OWNED_BUFFER(message);
    OWNED_BUFFER(text);
    OWNED_BUFFER(meta);
    dialect_write_task_answer(&message, call->envelope.id, task);
    struct str error = json_member(buffer_str(&message), "error");
    refusal_write_text(&text, call, refusal_of_task(task), error, task);
    buffer_append_format(&meta, "{\"" REFUSAL_ERROR "\":%.*s}", STR_ARGS(error));
    pseudo_answer(call, &(struct pseudo_result){.text = buffer_str(&text),
                                                .meta = buffer_str(&meta),
                                                .is_error = true});
}

static void answer_ended(struct call *call, struct task *task)
{
    struct str outcome = str_slice(task->outcome_text, task->outcome_length);
    bool has_run = task->state == TASK_COMPLETED || task->state == TASK_FAILED;
    bool is_error = has_run && task->outcome == TASK_OUTCOME_ERROR;
    task_tools_count_wait("ended");
    repeated_news_forget(call, task->id);
    if (has_run && task->outcome == TASK_OUTCOME_RESULT) {
        pseudo_answer_result(call, outcome);
    } else if (is_error && str_equal(json_member(outcome, "code"), URL_ELICITATION_REQUIRED)) {
        call_answer_error_of_server(call, outcome);
    } else if (refusal_is_due(call, refusal_of_task(task))) {
        answer_refusal(call, task);
    } else {
        answer_failure(call, task);
    }
}

/* ---- it has not ---- */

static void answer_timed_out(struct call *call)
{
    task_tools_count_wait("timeout");
    answer_about(call,
                 "is still working[[. Ask again with {get_task_result}, or wait for any change "
                 "with {await_activity}||. Ask again with {get_task_result}]]");
}

/* The wait that the caller asks for; without one as long as the task may take. */
static int64_t task_tools_patience_ms(const struct call *call, const struct task *task)
{
    int64_t remaining_ms = task->created_ms + task->ttl_ms - clock_now_ms();
    int64_t usual_ms = client_wait_ms(call, false);
    return pseudo_argument_number(call->envelope.arguments.raw, "timeout_ms", MOST_WAIT_MS,
                                  remaining_ms > 0 ? remaining_ms : usual_ms);
}

static void on_read(struct call *call, const struct store_reply *reply)
{
    struct task *task = asked_task(call, reply);
    if (reply->status == STORE_FAILED) {
        task_tools_answer_error(call, STR("The task store is not available, try again in a moment"),
                                NULL);
    } else if (!task) {
        answer_about(call, "not found");
    } else if (task_state_is_terminal(task->state)) {
        answer_ended(call, task);
    } else {
        execution_offer(call, task, true);
        waiting_set_patience(call, task_tools_patience_ms(call, task));
        waiting_keep(call, task);
        waiting_open(call);
    }
}

void pseudo_tool_get_task_result(struct call *call, struct str arguments)
{
    static const struct waiting_options options = {
        .ended = answer_ended, .timed_out = answer_timed_out, .opens_late = true};
    OWNED_BUFFER(id);
    waiting_begin(call, asked_id(call, &id), &options);
    read_asked(call, on_read);
}

/* ---- list_tasks ---- */

static void task_tools_answer_list(struct call *call, const struct store_reply *reply)
{
    OWNED_BUFFER(list);
    OWNED_BUFFER(structured);
    buffer_append_char(&list, '[');
    for (size_t i = 0; i < reply->task_count; i++) {
        if (i > 0)
            buffer_append_char(&list, ',');
        task_summary_write(&list, reply->tasks[i]);
    }
    buffer_append_char(&list, ']');
    buffer_append_text(&structured, "{\"tasks\":");
    buffer_append(&structured, buffer_str(&list));
    buffer_append_format(&structured, ",\"has_more\":%s}", reply->has_more ? "true" : "false");
    pseudo_answer(call, &(struct pseudo_result){.json = buffer_str(&list),
                                                .structured = buffer_str(&structured)});
}

static void task_tools_on_listed(struct call *call, const struct store_reply *reply)
{
    if (reply->status != STORE_OK)
        pseudo_answer_no_store(call);
    else
        task_tools_answer_list(call, reply);
}

void pseudo_tool_list_tasks(struct call *call, struct str arguments)
{
    OWNED_BUFFER(server);
    OWNED_BUFFER(status);
    struct store_reply nothing = {.status = STORE_OK};
    unsigned states =
        pseudo_argument_is_true(arguments, "include_completed") ? 0 : TASK_SUMMARY_WORKING;
    if (pseudo_argument_text(arguments, "status", &status))
        states = pseudo_status_states(buffer_str(&status));
    if (pseudo_argument_text(arguments, "server", &server) &&
        !str_equal(buffer_str(&server), str_from(call->source->id)))
        task_tools_answer_list(call, &nothing); /* it can have no tasks of another server */
    else
        task_summary_list(call, states, task_tools_on_listed);
}

/* ---- get_task ---- */

static void task_tools_answer_unknown(struct call *call)
{
    OWNED_BUFFER(id);
    pseudo_fail(call, "Task '%.*s' not found", STR_ARGS(asked_id(call, &id)));
}

static void task_tools_answer_task(struct call *call, const struct task *task)
{
    OWNED_BUFFER(elicitations);
    OWNED_BUFFER(samplings);
    OWNED_BUFFER(json);
    pseudo_write_questions(call, false, task, &elicitations, &samplings);
    buffer_append_text(&json, "{\"task\":");
    task_summary_write_proxy(&json, task);
    /* The documented interface and its example name the list differently. */
    buffer_append_format(&json,
                         ",\"pending_elicitations_for_server\":%.*s,\"pending_elicitations\":%.*s}",
                         STR_ARGS(buffer_str(&elicitations)), STR_ARGS(buffer_str(&elicitations)));
    pseudo_answer_json(call, buffer_str(&json), false);
}

static void on_got(struct call *call, const struct store_reply *reply)
{
    const struct task *task = asked_task(call, reply);
    if (reply->status == STORE_FAILED)
        pseudo_answer_no_store(call);
    else if (!task)
        task_tools_answer_unknown(call);
    else
        task_tools_answer_task(call, task);
}

void pseudo_tool_get_task(struct call *call, struct str arguments)
{
    read_asked(call, on_got);
}

/* ---- cancel_task ---- */

/* `cancelled` is NULL where nothing was. The client of one that was knows the end of the call, and
 * may make it anew. */
static void answer_cancel(struct call *call, const struct task *cancelled)
{
    OWNED_BUFFER(id);
    OWNED_BUFFER(message);
    OWNED_BUFFER(json);
    if (cancelled)
        repeated_news_forget(call, cancelled->id);
    buffer_append_format(&message, "Task '%.*s' %s", STR_ARGS(asked_id(call, &id)),
                         cancelled ? "cancelled" : "not found or not in working state");
    buffer_append_char(&json, '{');
    json_add_bool(&json, "success", cancelled != NULL);
    json_add_str(&json, "message", buffer_str(&message));
    buffer_append_char(&json, '}');
    pseudo_answer_json(call, buffer_str(&json), !cancelled);
}

static void task_tools_on_cancelled(struct call *call, const struct store_reply *reply)
{
    if (reply->status == STORE_FAILED)
        pseudo_answer_no_store(call);
    else
        answer_cancel(call, reply->status == STORE_OK ? reply->task : NULL);
}

static void on_to_cancel(struct call *call, const struct store_reply *reply)
{
    const struct task *task = asked_task(call, reply);
    if (reply->status == STORE_FAILED)
        pseudo_answer_no_store(call);
    else if (!task)
        answer_cancel(call, NULL);
    else
        call_cancel_task(call, task, NULL, task_tools_on_cancelled);
}

void pseudo_tool_cancel_task(struct call *call, struct str arguments)
{
    read_asked(call, on_to_cancel);
}
