/* tasks/get, tasks/update, tasks/result and tasks/cancel: ids that begin with tg_ are answered
 * here, all others go to the server (behaviour 7.2). Another owner's task answers as an unknown
 * one. */
#include "call/client_profile.h"
#include "conversation/execute.h"
#include "conversation/question.h"
#include "conversation/relay.h"
#include "conversation/rounds.h"
#include "conversation/task_inputs.h"
#include "conversation/waiting.h"
#include "methods.h"
#include "server/credential_check.h"
#include "server/probe.h"
#include "state/source_eras.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/dialect_modern.h"

static void answer_task(struct call *call, const struct task *task)
{
    struct gateway *gateway = call->worker->gateway;
    struct dialect_view view = {.pending = client_pending_look(call), .now_ms = clock_now_ms()};
    OWNED_BUFFER(result);
    OWNED_BUFFER(asked);
    if (!call->dialect->extends_tasks) {
        question_view(gateway, task, &view, &asked);
    } else if (task->state == TASK_EXECUTING) {
        rounds_show(gateway->questions, str_from(task->id), &asked, &view.changed_ms);
        view.input_requests = buffer_str(&asked);
    }
    call->dialect->write_task(&result, task, &view);
    call_answer_result(call, buffer_str(&result));
}

/* ---- tasks/get ---- */

/* Behaviour 12.1: a poll may carry the answer to what upstream asks. false: it was a bad one, and
 * the call is answered. */
static bool take_elicitation_response(struct call *call, const struct task *task)
{
    struct error error = {""};
    struct str response = json_member(call->envelope.meta.raw, DIALECT_ELICITATION_RESPONSE);
    if (response.length == 0 || question_answer_in_task(call->worker, task, response, &error))
        return true;
    call_answer_error(call, JSONRPC_INVALID_PARAMS, str_from(error.message), NULL);
    return false;
}

/* The extension has no tasks/result: a poll is what wants the result. */
static void tasks_get(struct call *call, struct task *task)
{
    bool extends_tasks = call->dialect->extends_tasks;
    if (!extends_tasks && !take_elicitation_response(call, task))
        return;
    struct task *shown = execution_offer_shown(call, task, extends_tasks);
    answer_task(call, shown);
    task_unref(shown);
}

/* ---- tasks/update ---- */

/* Keys that are unknown or answered count for nothing, and are acknowledged. */
static void tasks_update(struct call *call, struct task *task)
{
    task_inputs_answer(call->worker, task, call->envelope.input_responses);
    call_answer_result(call, DIALECT_ACKNOWLEDGEMENT);
}

/* ---- tasks/result ---- */

static void tasks_result(struct call *call, struct task *task)
{
    if (task_state_is_terminal(task->state)) {
        waiting_answer(call, task);
        return;
    }
    execution_offer(call, task, true);
    waiting_open(call);
    waiting_offer(call->worker, task);
}

/* ---- tasks/cancel ---- */

static void answer_unknown(struct call *call)
{
    call_answer_error(call, JSONRPC_TASK_NOT_FOUND, STR_EMPTY, NULL);
}

/* The extension acknowledges a task that has ended as well. */
static void on_cancelled(struct call *call, const struct store_reply *reply)
{
    if (reply->status == STORE_NOT_FOUND)
        answer_unknown(call);
    else if (reply->status == STORE_FAILED)
        call_answer_no_store(call);
    else if (call->dialect->extends_tasks)
        call_answer_result(call, DIALECT_ACKNOWLEDGEMENT);
    else if (reply->status == STORE_CONFLICT)
        call_answer_error(call, JSONRPC_TASK_TERMINAL, STR_EMPTY, NULL);
    else
        answer_task(call, reply->task);
}

static void tasks_cancel(struct call *call, struct task *task)
{
    call_cancel_task(call, task, NULL, on_cancelled);
}

/* ---- tasks of ours ---- */

static void tasks_on_read(struct call *call, const struct store_reply *reply)
{
    static void (*const methods[])(struct call * call, struct task * task) = {
        [MCP_TASKS_GET] = tasks_get,
        [MCP_TASKS_UPDATE] = tasks_update,
        [MCP_TASKS_RESULT] = tasks_result,
        [MCP_TASKS_CANCEL] = tasks_cancel,
    };
    const size_t which = call->method->treatment;
    struct task *task = call_own_task(call, reply, call->envelope.task_id.text);
    ASSERT_NUMBERS(which, <, sizeof methods / sizeof *methods);
    ASSERT(methods[which]);
    if (reply->status == STORE_FAILED)
        call_answer_no_store(call);
    else if (!task)
        answer_unknown(call);
    else
        methods[which](call, task);
}

/* The wait begins before the task is read: an end in between is then not missed. A client that may
 * not see the task learns nothing by waiting: the answer comes with the read. */
static void read_own(struct call *call)
{
    if (call->method->treatment == MCP_TASKS_RESULT)
        waiting_begin(call, call->envelope.task_id.text,
                      &(struct waiting_options){.timed_out = NULL});
    store_task_get(call->worker->gateway->store, call->envelope.task_id.text,
                   call_to_store(call, tasks_on_read));
}

/* The server must accept who asks before anything is said of a task. */
static void handle_own(struct call *call)
{
    if (call->method->treatment == MCP_TASKS_UPDATE &&
        json_type(call->envelope.input_responses) != JSON_OBJECT)
        call_refuse_params(call, DIALECT_RESPONSES_REFUSAL);
    else
        credential_check_owner_then(call, read_own);
}

/* ---- tasks of the server ---- */

/* A server without tasks does not know the method. The gateway offers the extension all the same,
 * so for the client it is the id that nobody knows. */
static bool is_not_known(struct call *call, int status, struct str reply)
{
    (void)call, (void)status;
    return json_check(reply, NULL) && str_equal(json_path(reply, "error", "code"), STR("-32601"));
}

static void answer_unknown_alone(struct call *call, bool has_begun)
{
    (void)has_begun; /* never: an event stream's end is no reply */
    answer_unknown(call);
}

static enum source_tasks tasks_of_server(const struct call *call)
{
    return source_eras_tasks(call->worker->gateway->eras, call->source);
}

/* No client of the extension knows of a task of a server that makes none. */
static void handle_theirs(struct call *call)
{
    bool extends_tasks = call->dialect->extends_tasks;
    static const struct looks looks = {.outlives = is_not_known, .alone = answer_unknown_alone};
    if (call_leases_session(call) || (extends_tasks && tasks_of_server(call) == SOURCE_LACKS_TASKS))
        answer_unknown(call);
    else
        relay_start(call, extends_tasks ? &looks : &looks_at_questions, NULL);
}

void task_handle(struct call *call)
{
    struct str id = call->envelope.task_id.text;
    bool extends_tasks = call->dialect->extends_tasks;
    struct jsonrpc_error_data data = {.required_capabilities = DIALECT_REQUIRES_TASKS};
    if (extends_tasks &&
        !mcp_declares_task_extension(call->envelope.reserved.client_capabilities)) {
        call_answer_error(call, JSONRPC_MISSING_CAPABILITY, STR_EMPTY, &data);
    } else if (!id.bytes) {
        call_answer_error(call, JSONRPC_INVALID_PARAMS, STR("params.taskId must be a string"),
                          NULL);
    } else if (task_id_is_ours(id)) {
        call_identify(call);
        call_with_facts(call, handle_own);
    } else if (extends_tasks && !call_leases_session(call) &&
               tasks_of_server(call) == SOURCE_TASKS_UNKNOWN) {
        era_probe_then(call, handle_theirs);
    } else {
        handle_theirs(call);
    }
}
