/* A call becomes a task: bound to who asked, what was asked and under which rule, durable
 * before its id is known to anyone (design invariants 2 and 5). */
#include <stdlib.h>
#include <string.h>

#include "execution.h"
#include "internal.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"
#include "taskgate/json/canonical.h"
#include "waiting.h"
#define POLL_INTERVAL_MAX_MS 5000     /* seed 002 §6.6 */
#define POLL_INTERVAL_RUNNING_MS 1000 /* of a call that is run at once */
#define LIMIT_RETRY_AFTER_S 60

/* What was decided, kept until upstream has vouched for the client. */
struct creation {
    struct policy_decision decision;
    struct catalog_tool tool;
    bool accelerated;
    enum task_answer answer;
};

static void drop_creation(struct call *call)
{
    free(call->state);
    call->state = NULL;
    call->abandoned = NULL;
}

/* What operators see: the client's name, and enough of the owner's digest to tell two apart. */
static char *describe_principal(const struct call *call)
{
    const char *name = call->facts.client_name[0] ? call->facts.client_name : "unknown client";
    const char *digest = strchr(call->owner, ':');
    if (!digest)
        return memory_format("%s (anonymous)", name);
    return memory_format("%s (%.*s %.12s)", name, (int)(digest - call->owner), call->owner,
                         digest + 1);
}

static void replace(char **field, char *value)
{
    free(*field);
    *field = value;
}

static void bind(struct task *task, const struct call *call, const struct creation *creation)
{
    const struct policy_decision *decision = &creation->decision;
    struct str arguments = call->envelope.arguments.raw;
    replace(&task->source, memory_copy_text(call->source->id));
    replace(&task->owner, memory_copy_text(call->owner));
    replace(&task->session, memory_copy_text(call->session));
    replace(&task->principal, describe_principal(call));
    replace(&task->tool, memory_copy_str(call->envelope.name.text));
    if (!creation->accelerated && decision->workflow)
        replace(&task->workflow, memory_copy_text(decision->workflow->name));
    replace(&task->action, memory_copy_text(creation->accelerated ? "forward" : "approve"));
    replace(&task->request, memory_copy_str(call->envelope.body));
    task->request_length = call->envelope.body.length;
    replace(&task->arguments, memory_copy_str(arguments.length > 0 ? arguments : STR("{}")));
    canonical_digest(arguments, task->arguments_digest);
    memcpy(task->definition_digest, creation->tool.digest, sizeof task->definition_digest);
    replace(&task->progress_token, memory_copy_str(call->envelope.progress_token));
    task->on_result = decision->execution == EXECUTION_ON_RESULT;
    task->accelerated = creation->accelerated;
    task->keep_task = creation->tool.has_own && creation->tool.own == ANNOTATION_REQUIRED;
}

static void set_clocks(struct task *task, const struct call *call, const struct creation *creation)
{
    const struct config_times *times = &call->snapshot->config->times;
    int64_t now_ms = clock_now_ms();
    struct str asked = call->envelope.task.raw;
    enum dialect_ttl read =
        dialect_read_ttl(asked.length > 0 ? asked : STR("{}"), times->task_default_ttl_ms,
                         times->task_max_ttl_ms, &task->ttl_ms);
    if (read == DIALECT_TTL_CLAMPED)
        log_warn("Task ttl clamped to the maximum", LOG_STR("tool", call->envelope.name.text),
                 LOG_NUMBER("max_ttl_ms", times->task_max_ttl_ms));
    task->created_ms = task->updated_ms = now_ms;
    if (creation->accelerated) {
        task->execute_by_ms = now_ms + times->approval_validity_ms;
        task->poll_interval_ms = POLL_INTERVAL_RUNNING_MS;
        return;
    }
    int64_t timeout_ms = creation->decision.workflow ? creation->decision.workflow->timeout_ms
                                                     : times->task_default_ttl_ms;
    int64_t decide_in_ms = timeout_ms < task->ttl_ms ? timeout_ms : task->ttl_ms;
    int64_t interval_ms = task_poll_interval_ms(decide_in_ms);
    task->decide_by_ms = now_ms + decide_in_ms;
    task->poll_interval_ms =
        interval_ms < POLL_INTERVAL_MAX_MS ? interval_ms : POLL_INTERVAL_MAX_MS;
}

static void answer_limit(struct call *call, const char *which)
{
    struct jsonrpc_error_data data = {
        .tool = call_tool(call), .details = str_from(which), .retry_after = LIMIT_RETRY_AFTER_S};
    call_answer_error(call, JSONRPC_RATE_LIMITED, STR_EMPTY, &data);
}

static void answer_created(struct call *call, struct task *task)
{
    struct buffer result;
    buffer_init(&result);
    dialect_write_create_result(&result, task, call_pending_look(call));
    call_answer_result(call, buffer_str(&result));
    buffer_finish(&result);
}

/* A create on its way to the store: it outlives the client's patience. */
struct pending_create {
    struct call *call;
    enum task_answer answer;
    char id[TASK_ID_BYTES];
};

static void answer_refused(struct call *call, enum store_status status)
{
    struct jsonrpc_error_data data = {.details = STR("the task store is not available"),
                                      .retry_after = 5};
    if (status == STORE_LIMIT_PRINCIPAL)
        answer_limit(call, "too many pending tasks of this client");
    else if (status == STORE_LIMIT_TOTAL)
        answer_limit(call, "too many pending tasks");
    else
        call_answer_error(call, JSONRPC_UNAVAILABLE, STR_EMPTY, &data);
}

static void on_created(void *context, const struct store_reply *reply)
{
    struct pending_create *create = context;
    struct call *call = create->call;
    if (reply->status == STORE_OK) {
        struct task *task = reply->task;
        metrics_count(METRIC_TASKS_CREATED,
                      task->accelerated ? STR("accelerated") : STR("approval"));
        log_info("Task created", LOG_TEXT("task", task->id), LOG_TEXT("tool", task->tool),
                 LOG_TEXT("source", task->source), LOG_TEXT("workflow", task->workflow));
        if (call->exchange && create->answer == TASK_ANSWER_CREATED)
            answer_created(call, task);
        else if (call->exchange)
            waiting_open(call);
    } else {
        log_warn("Task refused", LOG_NUMBER("store_status", reply->status));
        execution_forget(call->worker, str_from(create->id));
        if (call->exchange)
            answer_refused(call, reply->status);
    }
    call_unref(call);
    free(create);
}

/* Upstream knows this client: the task is made. */
static void create(struct call *call)
{
    struct creation creation = *(struct creation *)call->state;
    struct gateway *gateway = call->worker->gateway;
    const struct config_limits *limits = &call->snapshot->config->limits;
    struct store_limits pending = {limits->pending_per_principal, limits->pending_total};
    struct task *task = task_create(creation.accelerated ? TASK_APPROVED : TASK_PENDING);
    drop_creation(call);
    bind(task, call, &creation);
    set_clocks(task, call, &creation);
    metrics_count(METRIC_DECISIONS, STR("gate4"),
                  creation.accelerated ? STR("allow") : STR("started"));
    struct pending_create *pending_create = memory_alloc(sizeof *pending_create);
    pending_create->call = call_ref(call);
    pending_create->answer = creation.answer;
    memcpy(pending_create->id, task->id, sizeof pending_create->id);
    execution_hold(call, task);
    if (creation.answer == TASK_ANSWER_RESULT)
        waiting_begin(call, str_from(task->id));
    store_task_create(gateway->store, task, &pending,
                      (struct store_call){call->worker->loop, on_created, pending_create});
}

void task_create_from_call(struct call *call, const struct policy_decision *decision,
                           const struct catalog_tool *tool, bool accelerated,
                           enum task_answer answer)
{
    struct creation *creation = memory_alloc(sizeof *creation);
    *creation = (struct creation){*decision, *tool, accelerated, answer};
    call->state = creation;
    call->abandoned = drop_creation;
    verify_then(call, create);
}
