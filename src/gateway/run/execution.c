/* Approved calls of one worker: the credentials that are held for them, and what becomes of them
 * when their tasks change. */
#include <stdlib.h>
#include <string.h>

#include "call/broadcast.h"
#include "call/headers.h"
#include "call/request_headers.h"
#include "conversation/rounds.h"
#include "decision/task_binding.h"
#include "execution_internal.h"
#include "result_wait.h"
#include "task_aliases.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"

static struct execution *find(struct gateway_worker *worker, struct str id)
{
    return map_get(worker->executions, id);
}

/* ---- leaving a state ---- */

/* Ends what is under way. Only the worker that runs a task may end the questions of that task. */
static bool leave(struct execution *execution, enum invocation_state to)
{
    struct invocation *base = &execution->base;
    struct gateway *gateway = base->worker->gateway;
    bool was_under_way = invocation_is_under_way(base), had_begun = invocation_has_begun(base);
    exchange_abandon(base->exchange);
    base->exchange = NULL;
    loop_timer_stop(&base->timer);
    if (!invocation_move(base, to))
        return false;
    if (was_under_way)
        atomic_fetch_sub(&gateway->in_flight, 1);
    if (base->server_task)
        task_aliases_remove(gateway->task_aliases, base->audience.key, base->server_task);
    if (had_begun) {
        question_end_task(base->worker, base->task);
        rounds_forget(gateway->questions, str_from(base->id));
    }
    execution_asks_end(execution);
    if (execution_session_is_needed(execution))
        execution_session_close(execution);
    return true;
}

void execution_wait(struct execution *execution)
{
    if (!leave(execution, INVOCATION_OFFERED))
        execution_end(execution);
}

void execution_end(struct execution *execution)
{
    if (invocation_where(&execution->base) == INVOCATION_ENDED)
        return;
    leave(execution, INVOCATION_ENDED);
    execution_token_finish(execution);
    map_remove(execution->base.worker->executions, str_from(execution->base.id));
    invocation_unref(&execution->base);
}

/* ---- holding ---- */

static void on_stored(struct invocation *invocation)
{
    execution_end(execution_from(invocation));
}

static void destroy(struct invocation *invocation)
{
    struct execution *execution = execution_from(invocation);
    execution_token_finish(execution);
    MAGIC_CLEAR(execution);
    free(execution);
}

static void on_answered(struct invocation *invocation)
{
    execution_answered_by_client(execution_from(invocation));
}

static void give_up(struct invocation *invocation, enum jsonrpc_error error, const char *why)
{
    execution_fail(execution_from(invocation), error, why);
}

static void send_round(struct invocation *invocation, struct str answers, struct str state)
{
    execution_send_round(execution_from(invocation), answers, state);
}

static const struct invocation_class execution_class = {.kind = INVOCATION_EXECUTION,
                                                        .end = on_stored,
                                                        .destroy = destroy,
                                                        .answered = on_answered,
                                                        .give_up = give_up,
                                                        .send_round = send_round};

static struct execution *obtain(struct gateway_worker *worker, const struct task *task)
{
    const struct str id = str_slice(task->id, strlen(task->id));
    struct execution *execution = find(worker, id);
    if (execution)
        return execution;
    execution = memory_alloc(sizeof *execution);
    MAGIC_SET(execution, EXECUTION_MAGIC);
    invocation_init(&execution->base, &execution_class, INVOCATION_OFFERED, worker);
    memcpy(execution->base.id, task->id, sizeof execution->base.id);
    map_put(worker->executions, id, execution);
    return execution;
}

/* An owner by token may omit the session, in which the call is to run all the same. */
static bool keep_session(struct headers *headers, const struct execution *execution)
{
    struct str session = headers_find(&execution->base.headers, "mcp-session-id");
    if (session.length == 0)
        return false;
    headers_add(headers, STR("mcp-session-id"), session);
    return true;
}

/* NULL: the call's headers differ from those of the approved call, so its credentials are not used.
 */
static struct execution *hold(const struct call *call, const struct task *task)
{
    const struct str id = str_slice(task->id, strlen(task->id));
    struct execution *execution = find(call->worker, id);
    struct question_audience audience;
    struct headers headers;
    if (execution && invocation_is_under_way(&execution->base))
        return execution;
    question_audience(call, &audience);
    headers_init(&headers, true);
    if (!request_headers_take(call->worker->gateway->request_headers, id, str_from(audience.key),
                              task->headers_digest, call->exchange, &headers))
        return NULL;
    bool keeps_session = execution && headers_find(&headers, "mcp-session-id").length == 0 &&
                         keep_session(&headers, execution);
    headers_fit(&headers);
    execution = obtain(call->worker, task);
    headers_finish(&execution->base.headers);
    execution->base.headers = headers;
    execution->has_all_headers = execution->lacks_session = false;
    execution_token_take(execution, call);
    /* The questions of the call go to those who can be asked in its session. */
    if (!keeps_session) {
        execution->base.audience = audience;
        memcpy(execution->base.session, call->session, sizeof execution->base.session);
    }
    return execution;
}

bool execution_complete_headers(struct execution *execution, const struct task *task)
{
    struct headers *headers = &execution->base.headers;
    if (execution->own_session || execution->has_all_headers)
        return true;
    execution->has_all_headers = request_headers_complete(
        execution->base.worker->gateway->request_headers, str_from(execution->base.id), headers);
    if (*task->mirrored_headers) {
        mirrored_headers_restore(headers, str_from(task->mirrored_headers));
        headers_drop(headers, HTTP_NAME_OF_SESSION); /* a bridged client's, given out here */
    }
    return execution->has_all_headers;
}

void execution_keep_headers(const struct call *call, const struct task *task)
{
    struct question_audience audience;
    question_audience(call, &audience);
    request_headers_keep(call->worker->gateway->request_headers,
                         str_slice(task->id, strlen(task->id)), str_from(audience.key),
                         call->exchange);
}

void execution_hold(const struct call *call, const struct task *task)
{
    execution_keep_headers(call, task);
    hold(call, task);
}

void execution_forget(struct gateway_worker *worker, struct str id)
{
    struct execution *execution = find(worker, id);
    request_headers_forget(worker->gateway->request_headers, id);
    if (execution && !invocation_is_under_way(&execution->base))
        execution_end(execution);
}

static void deliver_session_end(struct gateway_worker *worker, const void *message)
{
    struct str key = ((const struct client_broadcast *)message)->key;
    request_headers_forget_session(worker->gateway->request_headers, key);
    /* Removal moves entries about, so the walk starts again after each. */
    size_t position = 0;
    void *value;
    while (map_next(worker->executions, &position, NULL, &value)) {
        struct execution *execution = value;
        if (invocation_is_under_way(&execution->base) ||
            !str_equal(str_from(execution->base.audience.key), key))
            continue;
        execution_end(execution);
        position = 0;
    }
}

static const struct broadcast_kind session_end_kind = CLIENT_BROADCAST_KIND(deliver_session_end);

void execution_forget_session(struct gateway *gateway, struct str key)
{
    broadcast_send(gateway, &session_end_kind, &(struct client_broadcast){key});
}

void executions_drop(struct gateway_worker *worker)
{
    size_t position = 0;
    void *value;
    while (map_next(worker->executions, &position, NULL, &value)) {
        execution_end(value);
        position = 0;
    }
}

/* ---- offered ---- */

/* The owner and operators read why the approved task does not run. */
static void say_headers_differ(const struct call *call, const struct task *task)
{
    log_warn("A call lends no credentials: its headers differ from those of the approved one",
             LOG_TEXT("task", task->id));
    if (task->state == TASK_APPROVED && strcmp(task->status_message, EXECUTION_OTHER_HEADERS) != 0)
        store_task_set_message(call->worker->gateway->store, str_from(task->id),
                               STR(EXECUTION_OTHER_HEADERS),
                               (struct store_call){call->worker->loop, NULL, NULL});
}

bool execution_offer(const struct call *call, struct task *task, bool wants_result)
{
    if (task_state_is_terminal(task->state) || task->state == TASK_EXECUTING)
        return true;
    struct execution *execution = hold(call, task);
    if (!execution) {
        say_headers_differ(call, task);
        return false;
    }
    if (task->state == TASK_APPROVED && (wants_result || !task->on_result))
        execution_begin(execution, task);
    return true;
}

void execution_offer_own(struct gateway_worker *worker, struct task *task, bool wants_result)
{
    if (task->state != TASK_APPROVED || (task->on_result && !wants_result) ||
        atomic_load(&worker->gateway->shutting_down))
        return;
    struct execution *execution = obtain(worker, task);
    execution->own_session = true;
    execution->base.audience.is_closed = true; /* there is no client */
    execution_begin(execution, task);
}

/* ---- the task has changed ---- */

/* The owner or an operator has cancelled the task. The server is told. */
static void stop(struct execution *execution)
{
    if (execution->base.task && execution_is_modern(execution)) {
        execution_modern_cancel(execution);
    } else if (execution->base.server_task) {
        execution_task_cancel(execution);
    } else if (execution->base.exchange && execution->base.request_id.length > 0) {
        struct buffer body;
        buffer_init(&body);
        invocation_write_cancelled(&execution->base, "cancelled", &body);
        execution_say_last(execution, buffer_str(&body), STR_EMPTY);
        buffer_finish(&body);
    }
    execution_end(execution);
}

const struct identity *execution_identity(const struct gateway_worker *worker, struct str id)
{
    const struct execution *execution = map_get(worker->executions, id);
    return execution ? execution->identity : NULL;
}

void execution_input_changed(struct gateway_worker *worker, const struct task *task)
{
    struct execution *execution = find(worker, str_from(task->id));
    if (execution && execution->base.exchange)
        execution_set_silence(execution);
}

/* Nothing is held for the task here. It may be the control plane's, whose calls only the first
 * worker runs, so that no two workers begin one; or a call waits for it that has them. */
static void obtain_credentials(struct gateway_worker *worker, struct task *task)
{
    const struct call *waiting =
        task->state == TASK_APPROVED && task->on_result ? result_wait_newest(worker, task) : NULL;
    if (waiting)
        execution_offer(waiting, task, true);
    else if (worker == worker->gateway->workers[0] &&
             str_starts_with(str_from(task->owner), STR(PERSON_OWNER)))
        execution_offer_own(worker, task, false);
}

void execution_note_task(struct gateway_worker *worker, struct task *task)
{
    struct execution *execution = find(worker, str_from(task->id));
    if (task_state_is_terminal(task->state))
        request_headers_forget(worker->gateway->request_headers, str_from(task->id));
    if (!execution) {
        obtain_credentials(worker, task);
        return;
    }
    bool runs_elsewhere =
        task->state == TASK_EXECUTING && invocation_where(&execution->base) == INVOCATION_OFFERED;
    bool may_run = !task->on_result || result_wait_exists(worker, task);
    if (task->state == TASK_CANCELLED)
        stop(execution);
    else if (task_state_is_terminal(task->state) || runs_elsewhere)
        execution_end(execution);
    else if (task->state == TASK_APPROVED && may_run)
        execution_begin(execution, task);
}
