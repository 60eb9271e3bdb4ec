/* How an approved call begins. It is compared with what was approved. `executing` is committed. The
 * first byte goes to the server after the commit (design invariants 4 and 5). */
#include "call/request_headers.h"
#include "decision/drift_check.h"
#include "execution_internal.h"
#include "server/catalogue.h"
#include "server/own.h"
#include "state/source_eras.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"

#define STORE_RETRY_MS 1000
#define LIST_RETRY_MS 5000
#define TOKEN_RETRY_MS 5000

static const struct store_actor gateway_actor = {"gateway", "taskgate"};

static void on_retry(void *context)
{
    struct execution *execution = execution_from(context);
    struct task *task = task_ref(execution->base.task);
    execution_begin(execution, task);
    task_unref(task);
}

static void start_timer(struct execution *execution, int64_t in_ms)
{
    loop_timer_start_with(&execution->base.timer, on_retry, execution, in_ms);
}

static void try_again(struct execution *execution, int64_t in_ms)
{
    execution_wait(execution);
    start_timer(execution, in_ms);
}

/* ---- the token of the server ---- */

static void on_token(struct execution *execution)
{
    on_retry(execution);
}

static void on_no_token(struct execution *execution)
{
    start_timer(execution, TOKEN_RETRY_MS);
}

/* At OFFERED. Begins anew with it. */
static void ask_for_token(struct execution *execution)
{
    execution_token_obtain(execution, on_token, on_no_token);
}

/* ---- committing ---- */

struct drift_check execution_drift(const struct execution *execution)
{
    const struct invocation *base = &execution->base;
    return (struct drift_check){.identity = execution->identity,
                                .catalog = base->worker->gateway->catalog,
                                .snapshot = base->snapshot,
                                .source = base->source,
                                .task = base->task};
}

/* The rules in force may have changed while `executing` was on its way to the disk, and so may the
 * tool. A list that is out of date by now says nothing of it: a current one was compared right
 * before, and the call cannot wait for the next any more. */
static bool is_still_allowed(struct execution *execution, enum jsonrpc_error *error)
{
    struct invocation *base = &execution->base;
    snapshot_unref(base->snapshot);
    base->snapshot = snapshot_current();
    base->source = config_source_find(base->snapshot->config, str_from(base->task->source));
    struct drift_check drift = execution_drift(execution);
    drift.was_compared = true;
    return drift_check_passes(&drift, error);
}

/* `executing` is on disk, so the outcome is this execution's to tell. No byte has gone to the
 * server before. */
void execution_run(struct execution *execution, struct task *task)
{
    enum jsonrpc_error error;
    invocation_set_task(&execution->base, task);
    if (!is_still_allowed(execution, &error)) {
        log_warn("An approved call is not run: what was approved has changed",
                 LOG_TEXT("task", task->id), LOG_TEXT("error", jsonrpc_error_type(error)));
        execution_fail(execution, error, "");
        return;
    }
    if (!invocation_move(&execution->base, INVOCATION_RUNNING)) {
        execution_end(execution);
        return;
    }
    log_info("Executing", LOG_TEXT("task", task->id), LOG_TEXT("tool", task->tool));
    if (execution_session_is_needed(execution))
        execution_session_open(execution);
    else
        execution_send(execution);
}

static void on_executing(void *context, const struct store_reply *reply)
{
    struct execution *execution = execution_from(context);
    if (invocation_where(&execution->base) == INVOCATION_ENDED)
        ; /* the answer comes too late */
    else if (reply->status == STORE_OK)
        execution_run(execution, reply->task);
    else if (reply->status == STORE_FAILED)
        try_again(execution, STORE_RETRY_MS); /* a waiting client does not ask again */
    else
        execution_end(execution);       /* another worker was first */
    invocation_unref(&execution->base); /* the message's own reference */
}

static void commit(struct execution *execution)
{
    struct invocation *base = &execution->base;
    struct task_change change = {.to = TASK_EXECUTING,
                                 .credentials = execution->credentials_digest};
    if (!invocation_move(base, INVOCATION_COMMITTING)) {
        execution_end(execution);
        return;
    }
    invocation_ref(base);
    store_task_change(base->worker->gateway->store, str_from(base->id), &change, &gateway_actor,
                      (struct store_call){base->worker->loop, on_executing, execution});
}

/* ---- checking ---- */

/* The call cannot be compared without the server's list of tools, and a call that was not compared
 * does not run. The approval stands until execute-by. The owner's next call tries again at once. */
static void wait_for_list(struct execution *execution)
{
    log_warn("An approved call waits: upstream does not say what its tools are now",
             LOG_TEXT("task", execution->base.id),
             LOG_TEXT("source", execution->base.task->source));
    try_again(execution, LIST_RETRY_MS);
}

static void check(struct execution *execution)
{
    enum jsonrpc_error error;
    const struct drift_check drift = execution_drift(execution);
    if (!drift_check_can_compare(&drift))
        wait_for_list(execution);
    else if (!drift_check_passes(&drift, &error))
        execution_refuse(execution, error);
    else
        commit(execution);
}

/* A modern server has no sessions, so these are what the call is sent with. */
static void set_own_headers(struct execution *execution)
{
    struct invocation *base = &execution->base;
    headers_finish(&base->headers);
    service_session_begin(&base->headers, base->source);
    mirrored_headers_restore(&base->headers, str_from(base->task->mirrored_headers));
}

bool execution_take_rules(struct execution *execution)
{
    snapshot_unref(execution->base.snapshot);
    execution->base.snapshot = snapshot_current();
    execution->base.source = config_source_find(execution->base.snapshot->config,
                                                str_from(execution->base.task->source));
    if (execution->base.source && !execution->own_session)
        headers_set_static(&execution->base.headers, execution->base.source);
    execution->is_bridged_down =
        *execution->base.task->mirrored_headers && execution->base.source &&
        source_eras_bridge_down(execution->base.worker->gateway->eras, execution->base.source,
                                clock_monotonic_ms());
    if (execution->own_session && execution->base.source && execution_is_modern(execution))
        set_own_headers(execution);
    execution->lacks_session =
        execution->lacks_session ||
        (!execution->own_session && !*execution->base.task->mirrored_headers &&
         execution->base.source &&
         service_session_is_wanted(execution->base.worker, execution->base.source,
                                   &execution->base.headers));
    bool has_token = execution_token_find(execution);
    request_headers_digest_credentials(&execution->base.headers, execution->base.source,
                                       execution->credentials_digest);
    return has_token;
}

static void on_looked(void *context)
{
    struct execution *execution = execution_from(context);
    struct invocation *base = &execution->base;
    if (invocation_where(base) == INVOCATION_CHECKING) {
        if (atomic_load(&base->worker->gateway->shutting_down)) {
            execution_wait(execution);
        } else if (execution_take_rules(execution)) {
            check(execution);
        } else {
            execution_wait(execution);
            ask_for_token(execution);
        }
    }
    invocation_unref(base); /* the fetch's own reference */
}

/* Asks the server what the tool is now: as the gateway itself, or with the owner's credentials. */
static void look(struct execution *execution)
{
    struct invocation *base = &execution->base;
    invocation_ref(base);
    if (execution->own_session)
        tools_fetch_for_gateway(base->worker, base->snapshot, base->source, on_looked, execution);
    else if (execution->lacks_session)
        tools_fetch_in_session_with(base->worker, base->snapshot, base->source,
                                    str_from(base->task->owner), &base->headers, on_looked,
                                    execution);
    else
        tools_fetch_with(base->worker, base->snapshot, base->source, str_from(base->task->owner),
                         &base->headers, on_looked, execution);
}

void execution_begin(struct execution *execution, struct task *task)
{
    struct invocation *base = &execution->base;
    struct gateway *gateway = base->worker->gateway;
    if (invocation_where(base) != INVOCATION_OFFERED || atomic_load(&gateway->shutting_down))
        return;
    loop_timer_stop(&base->timer);
    invocation_set_task(base, task);
    if (!execution_complete_headers(execution, task)) {
        execution_end(execution); /* the owner's next call offers its own */
        return;
    }
    if (!execution_take_rules(execution)) {
        ask_for_token(execution);
        return;
    }
    /* The same credentials would only be refused again. */
    if (task_has_refused(task, execution->credentials_digest))
        return;
    if (!invocation_move(base, INVOCATION_CHECKING))
        return;
    atomic_fetch_add(&gateway->in_flight, 1);
    const struct drift_check drift = execution_drift(execution);
    if (drift_check_must_look(&drift))
        look(execution);
    else
        check(execution);
}
