/* list_tasks, get_task, cancel_task. */
#include <stdlib.h>

#include "answer.h"
#include "inbox/task_summary.h"
#include "repeated_news.h"
#include "taskgate/core/memory.h"
#include "tools.h"

static void answer_no_store(struct call *call)
{
    pseudo_answer_text(call, STR("The task store is not available, try again in a moment"), true);
}

/* The id of the task that is asked for. The copy outlives the request. */
static struct str asked_id(const struct call *call, struct buffer *id)
{
    buffer_clear(id);
    pseudo_argument_text(call->envelope.arguments.raw, "task_id", id);
    return buffer_str(id);
}

/* ---- list_tasks ---- */

static void answer_list(struct call *call, const struct store_reply *reply)
{
    struct buffer list = {0}, structured = {0};
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
    pseudo_answer_json(call, buffer_str(&list), buffer_str(&structured));
    buffer_finish(&structured);
    buffer_finish(&list);
}

static void on_listed(void *context, const struct store_reply *reply)
{
    struct call *call = call_from(context);
    if (call->exchange && reply->status != STORE_OK)
        answer_no_store(call);
    else if (call->exchange)
        answer_list(call, reply);
    call_unref(call);
}

void pseudo_tool_list_tasks(struct call *call, struct str arguments)
{
    struct buffer server = {0}, status = {0};
    struct store_reply nothing = {.status = STORE_OK};
    unsigned states =
        pseudo_argument_is_true(arguments, "include_completed") ? 0 : TASK_SUMMARY_WORKING;
    if (pseudo_argument_text(arguments, "status", &status))
        states = pseudo_status_states(buffer_str(&status));
    if (pseudo_argument_text(arguments, "server", &server) &&
        !str_equal(buffer_str(&server), str_from(call->source->id)))
        answer_list(call, &nothing); /* it can have no tasks of another server */
    else
        task_summary_list(call, states, on_listed);
    buffer_finish(&status);
    buffer_finish(&server);
}

/* ---- get_task ---- */

static void answer_unknown(struct call *call, struct str id)
{
    struct buffer text;
    buffer_init(&text);
    buffer_append_format(&text, "Task '%.*s' not found", STR_ARGS(id));
    pseudo_answer_text(call, buffer_str(&text), true);
    buffer_finish(&text);
}

static void answer_task(struct call *call, const struct task *task)
{
    struct pseudo_questions inputs;
    struct buffer json = {0};
    pseudo_questions_init_of(&inputs, call, task);
    buffer_append_text(&json, "{\"task\":");
    task_summary_write_proxy(&json, task);
    /* The seed's interface and its example name the list differently. */
    buffer_append_format(
        &json, ",\"pending_elicitations_for_server\":%.*s,\"pending_elicitations\":%.*s}",
        STR_ARGS(buffer_str(&inputs.elicitations)), STR_ARGS(buffer_str(&inputs.elicitations)));
    pseudo_answer_json(call, buffer_str(&json), buffer_str(&json));
    pseudo_questions_finish(&inputs);
    buffer_finish(&json);
}

static void on_got(void *context, const struct store_reply *reply)
{
    struct call *call = call_from(context);
    struct buffer id = {0};
    if (call->exchange && reply->status == STORE_FAILED)
        answer_no_store(call);
    else if (call->exchange && !task_summary_owns(call, reply, asked_id(call, &id)))
        answer_unknown(call, buffer_str(&id));
    else if (call->exchange)
        answer_task(call, reply->task);
    buffer_finish(&id);
    call_unref(call);
}

void pseudo_tool_get_task(struct call *call, struct str arguments)
{
    struct buffer id = {0};
    store_task_get(call->worker->gateway->store, asked_id(call, &id), call_to_store(call, on_got));
    buffer_finish(&id);
}

/* ---- cancel_task ---- */

static void answer_cancel(struct call *call, bool success, struct str id, const char *what)
{
    struct buffer message = {0}, json = {0};
    buffer_append_format(&message, "Task '%.*s' %s", STR_ARGS(id), what);
    buffer_append_format(&json, "{\"success\":%s,\"message\":", success ? "true" : "false");
    buffer_append_json_string(&json, buffer_str(&message));
    buffer_append_char(&json, '}');
    pseudo_answer(call, &(struct pseudo_result){.json = buffer_str(&json),
                                                .structured = buffer_str(&json),
                                                .is_error = !success});
    buffer_finish(&json);
    buffer_finish(&message);
}

/* Its client knows the end of the call, and may make it anew. */
static void answer_cancelled(struct call *call, struct str id)
{
    char *text = memory_copy_str(id);
    repeated_news_forget(call, text);
    free(text);
    answer_cancel(call, true, id, "cancelled");
}

static void answer_not_cancelled(struct call *call, struct str id)
{
    answer_cancel(call, false, id, "not found or not in working state");
}

static void on_cancelled(void *context, const struct store_reply *reply)
{
    struct call *call = call_from(context);
    struct buffer id = {0};
    if (call->exchange && reply->status == STORE_FAILED)
        answer_no_store(call);
    else if (call->exchange && reply->status == STORE_OK)
        answer_cancelled(call, asked_id(call, &id));
    else if (call->exchange)
        answer_not_cancelled(call, asked_id(call, &id));
    buffer_finish(&id);
    call_unref(call);
}

static void on_to_cancel(void *context, const struct store_reply *reply)
{
    struct call *call = call_from(context);
    struct buffer id = {0};
    if (call->exchange && reply->status == STORE_FAILED) {
        answer_no_store(call);
    } else if (call->exchange && !task_summary_owns(call, reply, asked_id(call, &id))) {
        answer_not_cancelled(call, buffer_str(&id));
    } else if (call->exchange) {
        struct task_change change = {.to = TASK_CANCELLED, .by = "client"};
        struct store_actor actor = {"client", call->owner};
        store_task_change(call->worker->gateway->store, str_from(reply->task->id), &change, &actor,
                          call_to_store(call, on_cancelled));
    }
    buffer_finish(&id);
    call_unref(call);
}

void pseudo_tool_cancel_task(struct call *call, struct str arguments)
{
    struct buffer id = {0};
    store_task_get(call->worker->gateway->store, asked_id(call, &id),
                   call_to_store(call, on_to_cancel));
    buffer_finish(&id);
}
