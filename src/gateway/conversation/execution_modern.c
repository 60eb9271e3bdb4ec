/* Rounds of questions, and tasks of the server's own, inside one execution. The gateway is the
 * client of the server's rounds and tasks (SEP-2663) for the client that declared them. */
#include <stdlib.h>

#include "answer_gate.h"
#include "execute_internal.h"
#include "invocation_rounds.h"
#include "question.h"
#include "rounds.h"
#include "server/own.h"
#include "task_inputs.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/memory.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/dialect_modern.h"

#define POLL_MS 1000
#define POLL_LEAST_MS 100
#define POLL_MOST_MS 60000

static struct question_table *rounds_of(const struct execution *execution)
{
    return execution->base.worker->gateway->questions;
}

static void start_timer(struct execution *execution, loop_callback callback, int64_t in_ms)
{
    loop_timer_start_with(&execution->base.timer, callback, execution, in_ms);
}

bool execution_has_legacy_client(const struct execution *execution)
{
    const struct task *task = execution->base.task;
    return *task->mirrored_headers && *task->session; /* modern clients have no sessions */
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
    struct sending sending = invocation_sending(&execution->base);
    struct headers headers;
    struct buffer body = {0}, id = {0};
    headers_init(&headers, true);
    write_request(execution, method, more_members, &headers, &body, &id);
    sending.headers = &headers;
    sending.body = buffer_str(&body);
    sending.id = buffer_str(&id);
    exchange_notify(execution->base.worker, &sending);
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

/* The server's new questions take the place of the earlier ones; their keys are unique in the life
 * of their task, so they need one round only. */
static void go_on_polling(struct execution *execution, struct str task)
{
    struct str id = str_from(execution->base.id), requests = json_member(task, "inputRequests");
    bool is_asking = json_string_equals(json_member(task, "status"), STR("input_required"));
    bool has_changed;
    if (is_asking &&
        (answer_gate_denies(execution->base.task) || json_count(requests) > QUESTIONS_PER_ROUND)) {
        execution_modern_cancel(execution);
        execution_fail(execution, JSONRPC_UPSTREAM_ERROR,
                       "upstream requires input for which the client cannot be asked");
        return;
    }
    if (is_asking && json_count(requests) > 0 && dialect_modern_is_round(requests, STR_EMPTY))
        has_changed = rounds_put(rounds_of(execution), id, 1, requests, clock_now_ms());
    else
        has_changed = rounds_forget(rounds_of(execution), id);
    start_timer(execution, on_poll, poll_interval_ms(task));
    if (has_changed)
        invocation_rounds_tell(&execution->base);
    if (has_changed && execution_has_legacy_client(execution))
        task_inputs_ask(&execution->base);
}

static void end_cancelled(struct execution *execution)
{
    execution->base.outcome.change =
        (struct task_change){.to = TASK_CANCELLED, .by = "upstream", .reason = "by upstream"};
    execution_store_outcome(execution);
}

static void on_status(void *context, const struct exchange_reply *reply)
{
    struct execution *execution = execution_from(context);
    struct invocation *base = &execution->base;
    struct str task = json_member(reply->message, "result");
    struct str status = json_member(task, "status");
    struct str result = json_member(task, "result"), error = json_member(task, "error");
    base->exchange = NULL;
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
    static const struct exchange_events events = {.reply = on_status};
    struct execution *execution = execution_from(context);
    struct headers headers;
    struct buffer body = {0}, id = {0};
    headers_init(&headers, true);
    write_request(execution, "tasks/get", STR_EMPTY, &headers, &body, &id);
    execution_ask_with(execution, &headers, buffer_str(&body), buffer_str(&id), &events);
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
    if (!conversation_move(base, CONVERSATION_FOLLOWING)) {
        execution_end(execution);
        return;
    }
    store_task_set_upstream(base->worker->gateway->store, str_from(base->id), str_from(id),
                            (struct store_call){base->worker->loop, NULL, NULL});
    start_timer(execution, on_poll, poll_interval_ms(result));
}

/* ---- what comes in ---- */

bool execution_modern_takes(struct execution *execution, const struct exchange_reply *reply)
{
    struct invocation *base = &execution->base;
    struct str result = json_member(reply->message, "result");
    struct str type = json_member(result, "resultType");
    if (!execution_is_modern(execution) || conversation_where(base) != CONVERSATION_RUNNING)
        return false;
    base->exchange = NULL;
    if (json_string_equals(type, STR("input_required")))
        invocation_rounds_begin(base, result, execution_has_legacy_client(execution));
    else if (json_string_equals(type, STR("task")))
        follow(execution, result);
    else
        return false;
    return true;
}

void execution_modern_update(struct execution *execution, struct str answers)
{
    struct buffer members = {0};
    buffer_append_text(&members, ",\"inputResponses\":");
    buffer_append(&members, answers);
    send_to_server(execution, "tasks/update", buffer_str(&members));
    buffer_finish(&members);
}
