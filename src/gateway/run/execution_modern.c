/* Rounds of questions, and tasks of the server's own, inside one execution. */
#include "execution_modern.h"

#include <stdlib.h>

#include "execution_internal.h"
#include "mcp_client/client_request.h"
#include "request/broadcast.h"
#include "task_rounds.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/dialect_modern.h"

#define MOST_ROUNDS 10
/* A server that only wants to be asked again is asked after this, then after twice as long … */
#define AGAIN_MS 250
#define AGAIN_MOST_MS 5000
#define POLL_MS 1000
#define POLL_LEAST_MS 100
#define POLL_MOST_MS 60000

static struct task_rounds *rounds_of(const struct execution *execution)
{
    return execution->base.worker->gateway->task_rounds;
}

static void start_timer(struct execution *execution, loop_callback callback, int64_t in_ms)
{
    struct invocation *base = &execution->base;
    loop_timer_stop(&base->timer);
    loop_timer_init(&base->timer, base->worker->loop, callback, execution);
    loop_timer_start(&base->timer, in_ms);
}

/* ---- telling ---- */

static void deliver_change(struct gateway_worker *worker, const void *broadcast)
{
    const struct task_broadcast *changed = broadcast;
    worker->gateway->task_asks(worker, changed->task);
}

static const struct broadcast_kind change_kind = TASK_BROADCAST_KIND(deliver_change);

void execution_modern_tell(const struct execution *execution)
{
    broadcast_send(execution->base.worker->gateway, &change_kind,
                   &(struct task_broadcast){execution->base.task, STR_EMPTY});
}

/* ---- rounds ---- */

static void send_again(struct execution *execution, struct str answers)
{
    struct invocation *base = &execution->base;
    loop_timer_stop(&base->timer);
    task_rounds_forget(rounds_of(execution), str_from(base->id));
    execution_send_round(execution, answers, buffer_str(&execution->server_state));
}

static void on_again(void *context)
{
    send_again(execution_from(context), STR_EMPTY);
}

static void on_unanswered(void *context)
{
    execution_fail(execution_from(context), JSONRPC_UPSTREAM_TIMEOUT,
                   "the client has not answered what upstream asked");
}

static bool is_request(struct str request)
{
    static const char *const methods[] = {"elicitation/create", "sampling/createMessage",
                                          "roots/list"};
    struct str method = json_member(request, "method");
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        if (json_string_equals(method, str_from(methods[i])))
            return true;
    }
    return false;
}

/* What a client would be shown must be what the protocol has; there must be a way to go on. */
static bool is_well_formed(struct str requests, struct str state)
{
    struct str key, request;
    size_t position = 0;
    bool has_requests = json_type(requests) == JSON_OBJECT, has_state = state.length > 0;
    if ((requests.length > 0 && !has_requests) || (has_state && json_type(state) != JSON_STRING))
        return false;
    while (json_next_member(requests, &position, &key, &request)) {
        if (!is_request(request))
            return false;
    }
    return has_state || json_count(requests) > 0;
}

static void wait_without_requests(struct execution *execution)
{
    int64_t now_ms = clock_monotonic_ms();
    int64_t limit_ms = execution->base.snapshot->config->times.execution_timeout_ms;
    if (execution->again_ms == 0) {
        execution->again_ms = AGAIN_MS;
        execution->again_until_ms = limit_ms > 0 ? now_ms + limit_ms : INT64_MAX;
    }
    if (now_ms >= execution->again_until_ms) {
        execution_fail(execution, JSONRPC_UPSTREAM_TIMEOUT,
                       "upstream asked for the call again and again");
        return;
    }
    start_timer(execution, on_again, execution->again_ms);
    execution->again_ms =
        execution->again_ms * 2 < AGAIN_MOST_MS ? execution->again_ms * 2 : AGAIN_MOST_MS;
}

static void require_input(struct execution *execution, struct str requests)
{
    struct invocation *base = &execution->base;
    if (execution->rounds == MOST_ROUNDS) {
        execution_fail(execution, JSONRPC_UPSTREAM_ERROR,
                       "upstream still required input after 10 rounds");
        return;
    }
    execution->rounds++;
    execution->again_ms = 0;
    task_rounds_put(rounds_of(execution), str_from(base->id), execution->rounds, requests,
                    clock_now_ms());
    execution_modern_tell(execution);
    log_info("Upstream asks the client of a task", LOG_TEXT("task", base->id),
             LOG_NUMBER("round", execution->rounds),
             LOG_NUMBER("requests", (int64_t)json_count(requests)));
    if (execution_has_legacy_client(execution)) /* each question has a clock of its own */
        execution_inputs_ask(execution);
    else
        start_timer(execution, on_unanswered,
                    base->snapshot->config->pseudo.elicitation_timeout_ms);
}

/* A client of the extension reads what its task asks, and any other gets it in answer to its held
 * call, where it has declared all of it. */
static bool can_be_asked(const struct task *task, struct str requests)
{
    struct envelope envelope;
    envelope_read(&envelope, str_slice(task->request, task->request_length), NULL);
    struct str declared = envelope.reserved.client_capabilities;
    bool declares = dialect_modern_declares_tasks(declared) ||
                    dialect_modern_declares_requests(declared, requests);
    envelope_finish(&envelope);
    return declares;
}

static void begin_round(struct execution *execution, struct str result)
{
    struct str requests = json_member(result, "inputRequests");
    struct str state = json_member(result, "requestState");
    const struct invocation *base = &execution->base;
    execution->is_conversation = true;
    if (!is_well_formed(requests, state)) {
        execution_fail(execution, JSONRPC_UPSTREAM_ERROR,
                       "upstream requires input, and does not say it as the protocol has it");
        return;
    }
    buffer_clear(&execution->server_state);
    buffer_append(&execution->server_state, state);
    if (json_count(requests) > 0 && !execution_has_legacy_client(execution) &&
        !can_be_asked(base->task, requests))
        execution_fail(execution, JSONRPC_UPSTREAM_ERROR,
                       "upstream requires input that the client does not declare that it gives");
    else if (json_count(requests) > 0)
        require_input(execution, requests);
    else
        wait_without_requests(execution);
}

/* ---- the server's own task ---- */

static void write_request(const struct execution *execution, const char *method,
                          struct str more_members, struct headers *headers, struct buffer *body,
                          struct buffer *id)
{
    const struct invocation *base = &execution->base;
    const struct task *task = base->task;
    struct buffer members = {0}, meta = {0};
    buffer_append_text(&members, "\"taskId\":");
    buffer_append_json_string(&members, str_from(base->server_task));
    buffer_append(&members, more_members);
    client_request_read_meta(&meta, str_slice(task->request, task->request_length));
    headers_add_all(headers, &base->headers);
    const struct client_request request = {.method = method,
                                           .name = str_from(base->server_task),
                                           .members = buffer_str(&members),
                                           .meta = buffer_str(&meta)};
    client_request_write(&request, headers, body, id);
    buffer_finish(&members);
    buffer_finish(&meta);
}

static void send_to_server(struct execution *execution, const char *method, struct str more_members)
{
    struct rpc_call_options options = invocation_rpc_options(&execution->base);
    struct headers headers;
    struct buffer body = {0}, id = {0};
    headers_init(&headers, true);
    write_request(execution, method, more_members, &headers, &body, &id);
    options.headers = &headers;
    options.body = buffer_str(&body);
    options.id = buffer_str(&id);
    rpc_call_notify(execution->base.worker, &options);
    headers_finish(&headers);
    buffer_finish(&body);
    buffer_finish(&id);
}

void execution_modern_cancel(struct execution *execution)
{
    if (execution->base.server_task)
        send_to_server(execution, "tasks/cancel", STR_EMPTY);
}

static int64_t poll_interval_ms(struct str task)
{
    uint64_t interval;
    if (!str_to_u64(json_member(task, "pollIntervalMs"), &interval))
        return POLL_MS;
    if (interval < POLL_LEAST_MS)
        return POLL_LEAST_MS;
    return interval > POLL_MOST_MS ? POLL_MOST_MS : (int64_t)interval;
}

static void on_poll(void *context);

/* What the server asks now takes the place of what it asked before; its keys are unique in the life
 * of its task, so they need one round only. */
static void go_on_polling(struct execution *execution, struct str task)
{
    struct str id = str_from(execution->base.id), requests = json_member(task, "inputRequests");
    bool is_asking = json_string_equals(json_member(task, "status"), STR("input_required"));
    bool has_changed;
    if (is_asking && json_count(requests) > 0 && is_well_formed(requests, STR_EMPTY))
        has_changed = task_rounds_put(rounds_of(execution), id, 1, requests, clock_now_ms());
    else
        has_changed = task_rounds_forget(rounds_of(execution), id);
    start_timer(execution, on_poll, poll_interval_ms(task));
    if (has_changed)
        execution_modern_tell(execution);
    if (has_changed && execution_has_legacy_client(execution))
        execution_inputs_ask(execution);
}

static void end_cancelled(struct execution *execution)
{
    execution->base.outcome.change =
        (struct task_change){.to = TASK_CANCELLED, .by = "upstream", .reason = "by upstream"};
    execution_store_outcome(execution);
}

static void on_status(void *context, const struct rpc_call_reply *reply)
{
    struct execution *execution = execution_from(context);
    struct invocation *base = &execution->base;
    struct str task = json_member(reply->message, "result");
    struct str status = json_member(task, "status");
    struct str result = json_member(task, "result"), error = json_member(task, "error");
    base->rpc = NULL;
    if (task.length == 0) {
        execution_answered(execution, reply); /* an error or no answer is the call's outcome */
    } else if (json_string_equals(status, STR("completed")) && result.length > 0) {
        invocation_take_result(base, result);
        execution_store_outcome(execution);
    } else if (json_string_equals(status, STR("failed")) && json_type(error) == JSON_OBJECT) {
        outcome_of_error(&base->outcome, error);
        execution_store_outcome(execution);
    } else if (json_string_equals(status, STR("cancelled"))) {
        end_cancelled(execution);
    } else if (json_string_equals(status, STR("working")) ||
               json_string_equals(status, STR("input_required"))) {
        go_on_polling(execution, task);
    } else {
        execution_fail(execution, JSONRPC_UPSTREAM_ERROR,
                       "upstream's task is in a state that the protocol does not have");
    }
}

static void on_poll(void *context)
{
    static const struct rpc_call_callbacks callbacks = {.reply = on_status};
    struct execution *execution = execution_from(context);
    struct headers headers;
    struct buffer body = {0}, id = {0};
    headers_init(&headers, true);
    write_request(execution, "tasks/get", STR_EMPTY, &headers, &body, &id);
    execution_start_rpc_with(execution, &headers, buffer_str(&body), buffer_str(&id), &callbacks);
    headers_finish(&headers);
    buffer_finish(&body);
    buffer_finish(&id);
}

static void follow(struct execution *execution, struct str result)
{
    struct invocation *base = &execution->base;
    size_t length = 0;
    char *id = json_string_text(json_member(result, "taskId"), &length);
    if (!id || length == 0) {
        free(id);
        execution_fail(execution, JSONRPC_UPSTREAM_ERROR, "upstream made a task without an id");
        return;
    }
    base->server_task = id;
    if (!invocation_move(base, INVOCATION_POLLING)) {
        execution_end(execution);
        return;
    }
    store_task_set_upstream(base->worker->gateway->store, str_from(base->id), str_from(id),
                            (struct store_call){base->worker->loop, NULL, NULL});
    start_timer(execution, on_poll, poll_interval_ms(result));
}

/* ---- what comes in ---- */

bool execution_modern_takes(struct execution *execution, const struct rpc_call_reply *reply)
{
    struct invocation *base = &execution->base;
    struct str result = json_member(reply->message, "result");
    struct str type = json_member(result, "resultType");
    if (!execution_is_modern(execution) || invocation_where(base) != INVOCATION_RUNNING)
        return false;
    base->rpc = NULL;
    if (json_string_equals(type, STR("input_required")))
        begin_round(execution, result);
    else if (json_string_equals(type, STR("task")))
        follow(execution, result);
    else
        return false;
    return true;
}

static void pass_on_answers(struct execution *execution)
{
    struct buffer answers = {0}, members = {0};
    struct str id = str_from(execution->base.id);
    enum invocation_state where = invocation_where(&execution->base);
    if (execution->is_bridged_down) {
        if (task_rounds_take_some(rounds_of(execution), id, &answers))
            execution_asks_answer(execution, buffer_str(&answers));
    } else if (where == INVOCATION_POLLING) {
        if (task_rounds_take_some(rounds_of(execution), id, &answers)) {
            buffer_append_text(&members, ",\"inputResponses\":");
            buffer_append(&members, buffer_str(&answers));
            send_to_server(execution, "tasks/update", buffer_str(&members));
        }
    } else if (where == INVOCATION_RUNNING && !execution->base.rpc &&
               task_rounds_take(rounds_of(execution), id, &answers)) {
        send_again(execution, buffer_str(&answers));
    }
    buffer_finish(&answers);
    buffer_finish(&members);
}

static void deliver_answers(struct gateway_worker *worker, const void *broadcast)
{
    const struct task_broadcast *answered = broadcast;
    struct execution *execution = map_get(worker->executions, str_from(answered->task->id));
    if (execution)
        pass_on_answers(execution);
    worker->gateway->task_asks(worker, answered->task);
}

static const struct broadcast_kind answers_kind = TASK_BROADCAST_KIND(deliver_answers);

void execution_modern_answer(struct gateway_worker *worker, struct task *task, struct str answers)
{
    struct gateway *gateway = worker->gateway;
    if (task_rounds_answer(gateway->task_rounds, str_from(task->id), answers, clock_now_ms()))
        broadcast_send(gateway, &answers_kind, &(struct task_broadcast){task, STR_EMPTY});
}
