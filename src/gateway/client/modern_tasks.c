/* `tasks/get`, `tasks/update` and `tasks/cancel` of the tasks extension (SEP-2663): ids that begin
 * with tg_ are answered here, all others go to the server. */
#include "call/handlers.h"
#include "conversation/execute.h"
#include "conversation/relay.h"
#include "conversation/rounds.h"
#include "conversation/task_inputs.h"
#include "own_task.h"
#include "server/credential_check.h"
#include "server/probe.h"
#include "state/source_eras.h"
#include "taskgate/core/clock.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/dialect_modern.h"

/* ---- tasks/get ---- */

static void modern_tasks_answer_task(struct call *call, const struct task *task)
{
    struct question_table *rounds = call->worker->gateway->questions;
    struct dialect_view view = {.now_ms = clock_now_ms()};
    struct buffer result, requests;
    buffer_init(&result);
    buffer_init(&requests);
    if (task->state == TASK_EXECUTING)
        rounds_show(rounds, str_from(task->id), &requests, &view.changed_ms);
    view.input_requests = buffer_str(&requests);
    dialect_modern_write_get_result(&result, task, &view);
    call_answer_result(call, buffer_str(&result));
    buffer_finish(&requests);
    buffer_finish(&result);
}

static void answer_not_run(struct call *call, const struct task *task)
{
    struct task *shown = own_task_not_run(task);
    modern_tasks_answer_task(call, shown);
    task_unref(shown);
}

/* The extension has no tasks/result: a poll is what wants the result. */
static void modern_tasks_on_get(void *context, const struct store_reply *reply)
{
    struct call *call = call_from(context);
    struct task *task = call->exchange ? own_task_of(call, reply) : NULL;
    if (task && execution_offer(call, task, true))
        modern_tasks_answer_task(call, task);
    else if (task)
        answer_not_run(call, task);
    call_unref(call);
}

/* ---- tasks/update ---- */

/* Keys that are unknown or answered count for nothing, and are acknowledged. */
static void on_update(void *context, const struct store_reply *reply)
{
    struct call *call = call_from(context);
    struct task *task = call->exchange ? own_task_of(call, reply) : NULL;
    if (task) {
        task_inputs_answer(call->worker, task, call->envelope.input_responses);
        call_answer_result(call, MODERN_ACKNOWLEDGEMENT);
    }
    call_unref(call);
}

/* ---- tasks/cancel ---- */

/* A task that has ended is acknowledged as well. */
static void modern_tasks_on_cancelled(void *context, const struct store_reply *reply)
{
    struct call *call = call_from(context);
    if (call->exchange) {
        if (reply->status == STORE_NOT_FOUND)
            own_task_answer_unknown(call);
        else if (reply->status == STORE_FAILED)
            own_task_answer_no_store(call);
        else
            call_answer_result(call, MODERN_ACKNOWLEDGEMENT);
    }
    call_unref(call);
}

static void modern_tasks_on_cancel(void *context, const struct store_reply *reply)
{
    struct call *call = call_from(context);
    struct task *task = call->exchange ? own_task_of(call, reply) : NULL;
    if (task && task_state_is_terminal(task->state)) {
        call_answer_result(call, MODERN_ACKNOWLEDGEMENT);
    } else if (task) {
        struct task_change change = {.to = TASK_CANCELLED, .by = "client"};
        struct store_actor actor = {"client", call->owner};
        store_task_change(call->worker->gateway->store, str_from(task->id), &change, &actor,
                          call_to_store(call, modern_tasks_on_cancelled));
    }
    call_unref(call);
}

/* ---- all three ---- */

static void modern_tasks_read_task(struct call *call)
{
    switch (call->method->treatment) {
    case MCP_TASKS_UPDATE:
        own_task_read(call, on_update);
        break;
    case MCP_TASKS_CANCEL:
        own_task_read(call, modern_tasks_on_cancel);
        break;
    default:
        own_task_read(call, modern_tasks_on_get);
    }
}

/* The server must accept who asks before anything is said of a task. */
static void modern_tasks_verify(struct call *call)
{
    credential_check_then(call, modern_tasks_read_task);
}

static void handle_own(struct call *call)
{
    bool is_update = call->method->treatment == MCP_TASKS_UPDATE;
    if (is_update && json_type(call->envelope.input_responses) != JSON_OBJECT) {
        call_refuse_params(call, "params.inputResponses must be an object");
        return;
    }
    call_identify(call);
    call_with_facts(call, modern_tasks_verify);
}

/* A server without tasks does not know the method. The gateway offers the extension all the same,
 * so for the client it is the id that nobody knows. */
static bool is_not_known(struct call *call, int status, struct str reply)
{
    (void)call, (void)status;
    return json_check(reply, NULL) && str_equal(json_path(reply, "error", "code"), STR("-32601"));
}

static void modern_tasks_answer_unknown(struct call *call, bool has_begun)
{
    (void)has_begun; /* never: an event stream's end is no reply */
    own_task_answer_unknown(call);
}

static enum source_tasks tasks_of_server(const struct call *call)
{
    return source_eras_tasks(call->worker->gateway->eras, call->source);
}

/* No client knows of a task of a server that makes none. */
static void handle_theirs(struct call *call)
{
    const struct relay_options options = {.outlives = is_not_known,
                                          .alone = modern_tasks_answer_unknown};
    if (call_leases_session(call) || tasks_of_server(call) == SOURCE_LACKS_TASKS)
        own_task_answer_unknown(call);
    else
        relay_start(call, &options);
}

void modern_task_handle(struct call *call)
{
    struct str id = call->envelope.task_id.text;
    struct jsonrpc_error_data data = {.required_capabilities = MODERN_REQUIRES_TASKS};
    if (!dialect_modern_declares_tasks(call->envelope.reserved.client_capabilities))
        call_answer_error(call, JSONRPC_MISSING_CAPABILITY, STR_EMPTY, &data);
    else if (!id.bytes)
        call_answer_error(call, JSONRPC_INVALID_PARAMS, STR("params.taskId must be a string"),
                          NULL);
    else if (task_id_is_ours(id))
        handle_own(call);
    else if (!call_leases_session(call) && tasks_of_server(call) == SOURCE_TASKS_UNKNOWN)
        era_probe_then(call, handle_theirs);
    else
        handle_theirs(call);
}
