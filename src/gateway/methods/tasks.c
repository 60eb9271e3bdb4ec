/* tasks/get, tasks/result and tasks/cancel: ids that begin with tg_ are answered here, all others
 * go upstream (behaviour 7.2). Another owner's task answers as an unknown one. */
#include <stdlib.h>

#include "call/client_profile.h"
#include "client/own_task.h"
#include "conversation/execute.h"
#include "conversation/question.h"
#include "conversation/relay.h"
#include "conversation/waiting.h"
#include "methods.h"
#include "server/credential_check.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/json/text.h"

#define ELICITATION_RESPONSE "io.modelcontextprotocol/elicitation-response"

/* Upstream's own tasks go there; for ours the session must be known and accepted first. */
static void route(struct call *call, call_step ours)
{
    struct str id = call->envelope.task_id.text;
    struct relay_options options = {.take_message = question_take_from_stream};
    if (!id.bytes)
        call_answer_error(call, JSONRPC_INVALID_PARAMS, STR("params.taskId must be a string"),
                          NULL);
    else if (!task_id_is_ours(id))
        relay_start(call, &options);
    else
        call_with_facts(call, ours);
}

/* ---- tasks/get ---- */

static void answer_task(struct call *call, const struct task *task)
{
    struct dialect_view view = {.pending = client_pending_look(call)};
    struct buffer result, elicitations;
    buffer_init(&result);
    buffer_init(&elicitations);
    question_view(call->worker->gateway, task, &view, &elicitations);
    dialect_write_get_result(&result, task, &view);
    call_answer_result(call, buffer_str(&result));
    buffer_finish(&elicitations);
    buffer_finish(&result);
}

/* Behaviour 12.1: a poll may carry the answer to what upstream asks. false: it was a bad one, and
 * the call is answered. */
static bool take_elicitation_response(struct call *call, const struct task *task)
{
    struct error error = {""};
    struct str response = json_member(call->envelope.meta.raw, ELICITATION_RESPONSE);
    if (response.length == 0 || question_answer_in_task(call->worker, task, response, &error))
        return true;
    call_answer_error(call, JSONRPC_INVALID_PARAMS, str_from(error.message), NULL);
    return false;
}

static void answer_not_run(struct call *call, const struct task *task)
{
    struct task *shown = own_task_not_run(task);
    answer_task(call, shown);
    task_unref(shown);
}

static void tasks_on_get(void *context, const struct store_reply *reply)
{
    struct call *call = call_from(context);
    struct task *task = call->exchange ? own_task_of(call, reply) : NULL;
    if (task && take_elicitation_response(call, task)) {
        if (execution_offer(call, task, false))
            answer_task(call, task);
        else
            answer_not_run(call, task);
    }
    call_unref(call);
}

static void get(struct call *call)
{
    own_task_read(call, tasks_on_get);
}

static void verify_get(struct call *call)
{
    credential_check_owner_then(call, get);
}

void tasks_get_handle(struct call *call)
{
    route(call, verify_get);
}

/* ---- tasks/result ---- */

static void on_result(void *context, const struct store_reply *reply)
{
    struct call *call = call_from(context);
    struct task *task = NULL;
    if (call->exchange) {
        if (reply->status != STORE_FAILED && own_task_is_asked_for(call, reply->task))
            task = reply->task;
        else if (reply->status == STORE_FAILED)
            own_task_answer_no_store(call);
        else
            own_task_answer_unknown(call);
    }
    if (task && task_state_is_terminal(task->state)) {
        waiting_answer(call, task);
    } else if (task) {
        execution_offer(call, task, true);
        waiting_open(call);
        waiting_offer(call->worker, task);
    }
    call_unref(call);
}

/* The wait begins before the task is read: an end in between is then not missed. A client that may
 * not see the task learns nothing by waiting: the answer comes with the read. */
static void result(struct call *call)
{
    waiting_begin(call, call->envelope.task_id.text);
    own_task_read(call, on_result);
}

static void verify_result(struct call *call)
{
    credential_check_owner_then(call, result);
}

void tasks_result_handle(struct call *call)
{
    route(call, verify_result);
}

/* ---- tasks/cancel ---- */

static void tasks_on_cancelled(void *context, const struct store_reply *reply)
{
    struct call *call = call_from(context);
    if (call->exchange) {
        if (reply->status == STORE_OK)
            answer_task(call, reply->task);
        else if (reply->status == STORE_CONFLICT)
            call_answer_error(call, JSONRPC_TASK_TERMINAL, STR_EMPTY, NULL);
        else if (reply->status == STORE_NOT_FOUND)
            own_task_answer_unknown(call);
        else
            own_task_answer_no_store(call);
    }
    call_unref(call);
}

static void tasks_on_cancel(void *context, const struct store_reply *reply)
{
    struct call *call = call_from(context);
    struct task *task = call->exchange ? own_task_of(call, reply) : NULL;
    if (task) {
        struct task_change change = {.to = TASK_CANCELLED, .by = "client"};
        struct store_actor actor = {"client", call->owner};
        store_task_change(call->worker->gateway->store, str_from(task->id), &change, &actor,
                          call_to_store(call, tasks_on_cancelled));
    }
    call_unref(call);
}

static void cancel(struct call *call)
{
    own_task_read(call, tasks_on_cancel);
}

static void verify_cancel(struct call *call)
{
    credential_check_owner_then(call, cancel);
}

void tasks_cancel_handle(struct call *call)
{
    route(call, verify_cancel);
}
