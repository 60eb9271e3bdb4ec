/* Holding credentials, starting an approved call at most once, storing what came of it. */
#include <stdlib.h>
#include <string.h>

#include "decision/drift_check.h"
#include "decision/task_binding.h"
#include "execution_internal.h"
#include "mcp_client/tools_fetch.h"
#include "request/broadcast.h"
#include "request/request_headers.h"
#include "result_wait.h"
#include "task_aliases.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"
#include "taskgate/json/text.h"

#define STORE_RETRY_MS 1000
#define LIST_RETRY_MS 5000

static const struct store_actor gateway_actor = {"gateway", "taskgate"};

static struct execution *find(struct gateway_worker *worker, struct str id)
{
    return map_get(worker->executions, id);
}

static void unref(struct execution *execution)
{
    if (--execution->references > 0)
        return;
    headers_finish(&execution->credentials);
    buffer_finish(&execution->request_id);
    outcome_finish(&execution->outcome);
    snapshot_unref(execution->snapshot);
    task_unref(execution->task);
    free(execution->upstream_task);
    free(execution);
}

/* Of a task that another worker runs they are that one's. */
static void end_questions(const struct execution *execution)
{
    if (execution->has_begun)
        input_end_task(execution->worker, execution->task);
}

/* Nothing is under way any more; the entry may stay. */
static void rest(struct execution *execution)
{
    if (execution->running)
        atomic_fetch_sub(&execution->worker->gateway->in_flight, 1);
    if (execution->upstream_task)
        task_aliases_remove(execution->worker->gateway->task_aliases, execution->audience.key,
                            execution->upstream_task);
    end_questions(execution);
    execution->running = execution->has_begun = false;
    rpc_call_cancel(execution->rpc);
    execution->rpc = NULL;
    loop_timer_stop(&execution->timer);
    if (execution->own_session)
        execution_session_close(execution);
}

/* Ends it on this side: nothing more is sent, credentials are gone with the last reference. */
static void drop(struct execution *execution)
{
    if (execution->dropped)
        return;
    execution->dropped = true;
    rest(execution);
    map_remove(execution->worker->executions, str_from(execution->id));
    unref(execution);
}

/* ---- holding ---- */

static struct execution *obtain(struct gateway_worker *worker, const struct task *task)
{
    const struct str id = str_slice(task->id, strlen(task->id));
    struct execution *execution = find(worker, id);
    if (execution)
        return execution;
    execution = memory_alloc(sizeof *execution);
    execution->worker = worker;
    execution->references = 1;
    memcpy(execution->id, task->id, sizeof execution->id);
    headers_init(&execution->credentials, true);
    map_put(worker->executions, id, execution);
    return execution;
}

/* NULL: the call has other headers than the one that was approved, so it lends nothing. */
static struct execution *hold(const struct call *call, const struct task *task)
{
    const struct str id = str_slice(task->id, strlen(task->id));
    struct execution *execution = find(call->worker, id);
    struct input_audience audience;
    struct headers headers;
    if (execution && execution->running)
        return execution;
    input_audience(call, &audience);
    headers_init(&headers, true);
    if (!request_headers_take(call->worker->gateway->request_headers, id, str_from(audience.key),
                              task->headers_digest, call->exchange, &headers))
        return NULL;
    execution = obtain(call->worker, task);
    headers_finish(&execution->credentials);
    execution->credentials = headers;
    execution->audience = audience;
    memcpy(execution->session, call->session, sizeof execution->session);
    return execution;
}

void execution_hold(const struct call *call, const struct task *task)
{
    struct input_audience audience;
    input_audience(call, &audience);
    request_headers_keep(call->worker->gateway->request_headers,
                         str_slice(task->id, strlen(task->id)), str_from(audience.key),
                         call->exchange);
    hold(call, task);
}

void execution_forget(struct gateway_worker *worker, struct str id)
{
    struct execution *execution = find(worker, id);
    request_headers_forget(worker->gateway->request_headers, id);
    if (execution && !execution->running)
        drop(execution);
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
        if (execution->running || !str_equal(str_from(execution->audience.key), key))
            continue;
        drop(execution);
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
        drop(value);
        position = 0;
    }
}

/* ---- the end of an execution ---- */

static void store_outcome(struct execution *execution);

static void on_outcome_stored(void *context, const struct store_reply *reply)
{
    struct execution *execution = context;
    if (reply->status == STORE_FAILED && !execution->dropped) {
        /* The answer exists only here: it is kept until the disk takes it. */
        log_error("The outcome of a call could not be stored yet", LOG_TEXT("task", execution->id));
        loop_timer_start(&execution->timer, STORE_RETRY_MS);
    } else {
        drop(execution);
    }
    unref(execution); /* NOLINT(clang-analyzer-unix.Malloc): the message's own reference */
}

static void on_store_retry(void *context)
{
    store_outcome(context);
}

static void store_outcome(struct execution *execution)
{
    struct gateway_worker *worker = execution->worker;
    execution->references++;
    store_task_change(worker->gateway->store, str_from(execution->id),
                      outcome_change(&execution->outcome), &gateway_actor,
                      (struct store_call){worker->loop, on_outcome_stored, execution});
}

static void finish(struct execution *execution)
{
    execution->rpc = NULL;
    end_questions(execution);
    loop_timer_init(&execution->timer, execution->worker->loop, on_store_retry, execution);
    log_info("Call executed", LOG_TEXT("task", execution->id),
             LOG_TEXT("state", task_state_name(execution->outcome.change.to)));
    store_outcome(execution);
}

void execution_fail(struct execution *execution, enum jsonrpc_error error, const char *details)
{
    outcome_of_failure(&execution->outcome, str_from(execution->task->tool), error, details);
    finish(execution);
}

/* Upstream did not let the credentials in: the approval stands until execute-by, and the
 * owner's next call brings fresh ones (contract "Tasks"). */
static void back_to_approved(struct execution *execution)
{
    static const char refused_too_often[] =
        "upstream has refused the credentials of each of three tries";
    if (task_refusal_count(execution->task) + 1 >= TASK_MOST_TRIES) {
        execution_fail(execution, JSONRPC_UPSTREAM_ERROR, refused_too_often);
        return;
    }
    execution->outcome.change =
        (struct task_change){.to = TASK_APPROVED,
                             .credentials = execution->credentials_digest,
                             .status_message = execution->task->accelerated
                                                   ? "Upstream refused the credentials"
                                                   : "Approved; upstream refused the credentials"};
    log_warn("Upstream refused the credentials of an approved call",
             LOG_TEXT("task", execution->id));
    finish(execution);
}

static bool is_refusal(int status)
{
    return status == 401 || status == 403 || status == 404;
}

void execution_answered(struct execution *execution, const struct rpc_call_reply *reply)
{
    execution->rpc = NULL;
    if (reply->too_large)
        metrics_count(METRIC_LIMITS_REACHED, STR("result_bytes"));
    struct str result = json_member(reply->message, "result");
    struct str error = json_member(reply->message, "error");
    bool may_be_task = execution->task->keep_task && !execution->has_result;
    bool was_not_let_in = is_refusal(reply->status) || reply->result == UPSTREAM_CONNECT_FAILED;
    if (result.length > 0 && may_be_task && execution_task_follow(execution, result))
        return;
    if (result.length > 0) {
        outcome_of_result(&execution->outcome, result);
    } else if (error.length > 0) {
        outcome_of_error(&execution->outcome, error);
    } else if (is_refusal(reply->status) && !execution->upstream_task) {
        back_to_approved(execution);
        return;
    } else if (was_not_let_in && execution->upstream_task) {
        outcome_of_failure(&execution->outcome, str_from(execution->task->tool),
                           JSONRPC_UPSTREAM_ERROR,
                           "upstream runs the call, and no longer says what becomes of it");
    } else {
        outcome_of_no_answer(&execution->outcome, str_from(execution->task->tool), reply);
    }
    finish(execution);
}

static void begin(struct execution *execution, struct task *task);

static void on_begin_retry(void *context)
{
    struct execution *execution = context;
    struct task *task = task_ref(execution->task);
    begin(execution, task);
    task_unref(task);
}

static void on_executing(void *context, const struct store_reply *reply)
{
    struct execution *execution = context;
    if (!execution->dropped) {
        if (reply->status == STORE_OK) {
            task_unref(execution->task);
            execution->task = task_ref(reply->task);
            execution->has_begun = true;
            log_info("Executing", LOG_TEXT("task", execution->id),
                     LOG_TEXT("tool", execution->task->tool));
            /* `executing` is on disk: now, and only now, the first byte goes to upstream. */
            if (execution->own_session)
                execution_session_open(execution);
            else
                execution_send(execution);
        } else if (reply->status == STORE_FAILED) {
            /* Who waits for the result asks no more: it begins when the disk takes it. */
            rest(execution);
            loop_timer_init(&execution->timer, execution->worker->loop, on_begin_retry, execution);
            loop_timer_start(&execution->timer, STORE_RETRY_MS);
        } else {
            drop(execution); /* someone else was first */
        }
    }
    unref(execution); /* NOLINT(clang-analyzer-unix.Malloc): the message's own reference */
}

/* ---- the beginning ---- */

/* Another worker may have found nothing amiss a moment ago, and run it: then this one is too late,
 * and must not say that nothing was done. */
static void refuse(struct execution *execution, enum jsonrpc_error error)
{
    log_warn("An approved call is not run: what was approved has changed",
             LOG_TEXT("task", execution->id), LOG_TEXT("error", jsonrpc_error_type(error)));
    outcome_of_failure(&execution->outcome, str_from(execution->task->tool), error, "");
    execution->outcome.change.unless_begun = true;
    finish(execution);
}

/* The list that the call must be compared with cannot be had now: nothing is run uncompared. The
 * approval stands until execute-by, and the owner's next call tries at once. */
static void wait_for_list(struct execution *execution)
{
    log_warn("An approved call waits: upstream does not say what its tools are now",
             LOG_TEXT("task", execution->id), LOG_TEXT("source", execution->task->source));
    rest(execution);
    loop_timer_init(&execution->timer, execution->worker->loop, on_begin_retry, execution);
    loop_timer_start(&execution->timer, LIST_RETRY_MS);
}

static struct drift_check drift_of(const struct execution *execution)
{
    return (struct drift_check){.catalog = execution->worker->gateway->catalog,
                                .snapshot = execution->snapshot,
                                .source = execution->source,
                                .task = execution->task};
}

/* Whether the call is still what was approved; then nothing goes up before the commit. */
static void try_to_execute(struct execution *execution)
{
    enum jsonrpc_error error;
    const struct drift_check drift = drift_of(execution);
    if (!drift_check_can_compare(&drift)) {
        wait_for_list(execution);
        return;
    }
    if (!drift_check_passes(&drift, &error)) {
        refuse(execution, error);
        return;
    }
    struct task_change change = {.to = TASK_EXECUTING,
                                 .credentials = execution->credentials_digest};
    execution->references++;
    store_task_change(execution->worker->gateway->store, str_from(execution->id), &change,
                      &gateway_actor,
                      (struct store_call){execution->worker->loop, on_executing, execution});
}

static void take_rules_in_force(struct execution *execution)
{
    snapshot_unref(execution->snapshot);
    execution->snapshot = snapshot_current();
    execution->source =
        config_source_find(execution->snapshot->config, str_from(execution->task->source));
    if (execution->source && !execution->own_session)
        headers_set_static(&execution->credentials, execution->source);
    request_headers_digest_credentials(&execution->credentials, execution->source,
                                       execution->credentials_digest);
}

static void on_looked(void *context)
{
    struct execution *execution = context;
    if (!execution->dropped && atomic_load(&execution->worker->gateway->shutting_down)) {
        rest(execution);
    } else if (!execution->dropped) {
        take_rules_in_force(execution);
        try_to_execute(execution);
    }
    unref(execution); /* NOLINT(clang-analyzer-unix.Malloc): the fetch's own reference */
}

static void begin(struct execution *execution, struct task *task)
{
    struct gateway *gateway = execution->worker->gateway;
    if (execution->running || atomic_load(&gateway->shutting_down))
        return;
    loop_timer_stop(&execution->timer);
    task_ref(task);
    task_unref(execution->task);
    execution->task = task;
    take_rules_in_force(execution);
    /* The same credentials would only be refused again. */
    if (task_has_refused(task, execution->credentials_digest))
        return;
    execution->running = true;
    buffer_clear(&execution->request_id); /* nothing has gone up yet */
    atomic_fetch_add(&gateway->in_flight, 1);
    const struct drift_check drift = drift_of(execution);
    if (!drift_check_must_look(&drift)) {
        try_to_execute(execution);
        return;
    }
    execution->references++;
    if (execution->own_session)
        tools_fetch_for_gateway(execution->worker, execution->snapshot, execution->source,
                                on_looked, execution);
    else
        tools_fetch_with(execution->worker, execution->snapshot, execution->source,
                         str_from(execution->task->owner), &execution->credentials, on_looked,
                         execution);
}

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
        begin(execution, task);
    return true;
}

void execution_offer_own(struct gateway_worker *worker, struct task *task, bool wants_result)
{
    if (task->state != TASK_APPROVED || (task->on_result && !wants_result) ||
        atomic_load(&worker->gateway->shutting_down))
        return;
    struct execution *execution = obtain(worker, task);
    execution->own_session = true;
    execution->audience.is_closed = true; /* there is no client */
    begin(execution, task);
}

/* ---- the task has changed ---- */

/* Stopped by its owner or an operator: upstream is told, as far as it listens. */
static void stop(struct execution *execution)
{
    if (execution->upstream_task) {
        execution_task_cancel(execution);
    } else if (execution->rpc && execution->request_id.length > 0) {
        struct buffer body;
        buffer_init(&body);
        buffer_append_format(&body,
                             "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
                             "\"params\":{\"requestId\":%.*s,\"reason\":\"cancelled\"}}",
                             STR_ARGS(buffer_str(&execution->request_id)));
        execution_say_last(execution, buffer_str(&body), STR_EMPTY);
        buffer_finish(&body);
    }
    drop(execution);
}

void execution_input_changed(struct gateway_worker *worker, const struct task *task)
{
    struct execution *execution = find(worker, str_from(task->id));
    if (execution && execution->rpc)
        execution_set_silence(execution);
}

void execution_note_task(struct gateway_worker *worker, struct task *task)
{
    struct execution *execution = find(worker, str_from(task->id));
    if (task_state_is_terminal(task->state))
        request_headers_forget(worker->gateway->request_headers, str_from(task->id));
    if (!execution) {
        /* One worker alone speaks for the control plane, so that no two begin. */
        if (worker == worker->gateway->workers[0] &&
            str_starts_with(str_from(task->owner), STR(TASK_BINDING_ADMIN)))
            execution_offer_own(worker, task, false);
        return;
    }
    bool runs_elsewhere = task->state == TASK_EXECUTING && !execution->running;
    bool may_run = !task->on_result || result_wait_exists(worker, task);
    if (task->state == TASK_CANCELLED)
        stop(execution);
    else if (task_state_is_terminal(task->state) || runs_elsewhere)
        drop(execution);
    else if (task->state == TASK_APPROVED && may_run)
        begin(execution, task);
}
