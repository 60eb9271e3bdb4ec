/* Calls of the control plane: no client, no session, the same gates (behaviour 17.1). */
#include "control.h"

#include <stdio.h>
#include <stdlib.h>

#include "call/call_span.h"
#include "conversation/execute.h"
#include "decision/task_binding.h"
#include "server/own.h"
#include "state/source_eras.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"
#include "taskgate/core/owned.h"
#include "taskgate/core/random.h"
#include "taskgate/gateway/blocks.h"
#include "taskgate/json/text.h"

#define RESUME_PAGE 100

static void finish(struct control *control)
{
    span_end(control->span);
    envelope_finish(&control->envelope);
    buffer_finish(&control->body);
    buffer_finish(&control->reason);
    free(control->owner);
    free(control->maker);
    snapshot_unref(control->snapshot);
    MAGIC_CLEAR(control);
    free(control);
}

SPAN_COLD static void fail_span(struct span *span, int code, const char *message)
{
    char type[16];
    snprintf(type, sizeof type, "%d", code);
    span_fail(span, str_from(type), str_from(message));
}

static void refuse(struct control *control, enum control_status status, int code,
                   const char *message)
{
    const struct control_reply reply = {.status = status, .code = code, .message = message};
    if (control->span)
        fail_span(control->span, code, message);
    control->callback(control->context, &reply);
    finish(control);
}

void control_refuse(struct control *control, enum jsonrpc_error error, const char *message)
{
    enum control_status status = message ? CONTROL_INVALID : CONTROL_DENIED;
    if (error == JSONRPC_UNAVAILABLE)
        status = CONTROL_UNAVAILABLE;
    else if (error == JSONRPC_RATE_LIMITED)
        status = CONTROL_LIMITED;
    if (!message)
        metrics_count(METRIC_ERRORS, str_from(jsonrpc_error_type(error)), STR("tools/call"));
    refuse(control, status, jsonrpc_error_code(error),
           message ? message : jsonrpc_error_message(error));
}

/* ---- what is asked ---- */

/* The only source, or the one that is named. */
static bool choose_source(struct control *control, struct str wanted)
{
    const struct config *config = control->snapshot->config;
    if (wanted.length > 0)
        control->source = config_source_find(config, wanted);
    else if (config->source_count == 1)
        control->source = &config->sources[0];
    return control->source != NULL;
}

static void control_call_write_body(struct buffer *body, const struct control_call *call)
{
    char uuid[RANDOM_UUID_BYTES];
    random_uuid(uuid);
    buffer_append_format(body, "{\"jsonrpc\":\"2.0\",\"id\":\"tg:%s\",\"method\":\"tools/call\"",
                         uuid);
    buffer_append_text(body, ",\"params\":{\"name\":");
    buffer_append(body, call->tool);
    buffer_append_text(body, ",\"arguments\":");
    buffer_append(body, call->arguments.length > 0 ? call->arguments : STR("{}"));
    buffer_append_text(body, ",\"task\":{");
    if (call->ttl.length > 0) {
        buffer_append_text(body, "\"ttl\":");
        buffer_append(body, call->ttl);
    }
    buffer_append_text(body, "}}}");
}

/* The body that runs later is read like a client's, by the same reader. */
static bool read_body(struct control *control, const struct control_call *call, struct error *error)
{
    int64_t ttl_ms;
    control_call_write_body(&control->body, call);
    if (json_type(call->tool) != JSON_STRING)
        return error_set(error, "tool must be a string");
    if (call->arguments.length > 0 && json_type(call->arguments) != JSON_OBJECT)
        return error_set(error, "arguments must be an object");
    if (control->body.length > (size_t)control->snapshot->config->limits.body_bytes)
        return error_set(error, "the call is larger than limits.body_bytes");
    if (envelope_read(&control->envelope, buffer_str(&control->body), error) != ENVELOPE_OK)
        return false;
    if (dialect_read_ttl(control->envelope.task.raw, 1, INT64_MAX, &ttl_ms) == DIALECT_TTL_INVALID)
        return error_set(error, "ttl must be a positive integer of milliseconds");
    return true;
}

/* ---- the task ---- */

static void control_call_on_stored(void *context, const struct store_reply *reply)
{
    static const char *const limits[] = {
        [STORE_LIMIT_PRINCIPAL] = "too many pending tasks of this token",
        [STORE_LIMIT_PRINCIPAL_BYTES] = "the pending tasks of this token are too large",
        [STORE_LIMIT_TOTAL] = "too many pending tasks",
        [STORE_LIMIT_BYTES] = "the task store is full",
    };
    struct control *control = MAGIC_CAST(struct control, CONTROL_MAGIC, context);
    size_t status = reply->status;
    if (status == STORE_OK) {
        task_binding_announce(reply->task);
        control->callback(control->context, &(struct control_reply){.task = reply->task});
        finish(control);
    } else if (status < sizeof limits / sizeof *limits && limits[status]) {
        control_refuse(control, JSONRPC_RATE_LIMITED, limits[status]);
    } else {
        control_refuse(control, JSONRPC_UNAVAILABLE, "the task store is not available");
    }
}

/* Nobody has sent a request of MCP's: the trace begins here. */
SPAN_COLD static struct span *begin_span(const struct control *control)
{
    const struct span_parent nobody = {0};
    struct str tool = control->envelope.name.text;
    OWNED_BUFFER(name);
    span_name_write(&name, control->envelope.method, tool);
    struct span *span = span_start(SPAN_INTERNAL, buffer_str(&name), &nobody);
    span_set_text(span, ATTRIBUTE_METHOD, control->envelope.method);
    span_set_text(span, ATTRIBUTE_TOOL, tool);
    span_set_text(span, ATTRIBUTE_SOURCE, str_from(control->source->id));
    return span;
}

/* A call that may be forwarded runs as a task at once: there is nobody on a connection to whom
 * upstream's answer could be streamed. */
void control_create(struct control *control, const struct policy_decision *decision,
                    const struct catalog_tool *tool, bool accelerated)
{
    struct gateway *gateway = control->worker->gateway;
    const struct config_limits *limits = &control->snapshot->config->limits;
    struct store_limits pending = {limits->pending_per_principal, limits->pending_total,
                                   limits->store_bytes, limits->pending_bytes_per_principal};
    const struct task_origin origin = {
        .snapshot = control->snapshot,
        .source = control->source,
        .envelope = &control->envelope,
        .catalog = gateway->catalog,
        .told_owner = "", /* CATALOG_GATEWAY */
        .owner = control->owner,
        .session = "",
        .principal = control->owner,
        .maker = control->maker,
        .agent_reason = control->reason.bytes,
        .span = control->span,
    };
    ASSERT(decision->action != ACTION_DENY);
    struct task *task = task_binding_create(&origin, decision, tool, accelerated);
    if (source_eras_lacks_sessions(gateway->eras, control->source))
        client_request_keep_own(gateway->catalog, control->source, &control->envelope, task);
    store_task_create(gateway->store, task, &pending,
                      (struct store_call){control->worker->loop, control_call_on_stored, control});
}

/* ---- the beginning ---- */

/* An operator's calls have no client. */
static bool control_call_is_blocked(struct control *control)
{
    const struct store_block_caller caller = {str_from(control->owner),
                                              str_from(control->source->id), STR_EMPTY};
    OWNED_BUFFER(reason);
    if (!blocks_any())
        return false;
    enum blocks_verdict verdict = blocks_judge(&caller, &reason);
    if (verdict == BLOCKS_BLOCKED)
        control_refuse(control, JSONRPC_CALLER_BLOCKED, NULL);
    else if (verdict == BLOCKS_UNKNOWN)
        control_refuse(control, JSONRPC_UNAVAILABLE, NULL);
    return verdict != BLOCKS_FREE;
}

struct control *control_begin(struct gateway_worker *worker, const struct control_call *call,
                              control_callback callback, void *context)
{
    struct error error = {""};
    struct control *control = memory_alloc(sizeof *control);
    MAGIC_SET(control, CONTROL_MAGIC);
    control->worker = worker;
    control->snapshot = snapshot_current();
    control->callback = callback;
    control->context = context;
    control->owner = control_owner(call->name);
    control->maker = memory_copy_text(call->maker);
    if (atomic_load(&worker->gateway->shutting_down)) {
        control_refuse(control, JSONRPC_UNAVAILABLE, "the gateway is shutting down");
    } else if (!choose_source(control, call->source)) {
        refuse(control, CONTROL_INVALID, 0,
               call->source.length > 0 ? "there is no source of this id"
                                       : "there are several sources: name one");
    } else if (!read_body(control, call, &error)) {
        refuse(control, CONTROL_INVALID, 0, error.message);
    } else if (!control_call_is_blocked(control)) {
        if (telemetry_is_on)
            control->span = begin_span(control);
        return control;
    }
    return NULL;
}

/* ---- who owns a task, and running it ---- */

char *control_owner(const char *name)
{
    return memory_format(PERSON_OWNER "%s", name);
}

void control_wants_result(struct gateway_worker *worker, struct task *task)
{
    if (str_starts_with(str_from(task->owner), STR(PERSON_OWNER)))
        execution_offer_own(worker, task, true);
}

static void on_resumed(void *context, const struct store_reply *reply)
{
    struct gateway_worker *worker = gateway_worker_from(context);
    if (reply->status == STORE_OK)
        execution_offer_own(worker, reply->task, false);
}

static void resume_from(struct gateway_worker *worker, int64_t before_sequence);

static void on_approved(void *context, const struct store_reply *reply)
{
    struct gateway_worker *worker = gateway_worker_from(context);
    for (size_t i = 0; reply->status == STORE_OK && i < reply->task_count; i++) {
        if (str_starts_with(str_from(reply->tasks[i]->owner), STR(PERSON_OWNER)))
            store_task_get(worker->gateway->store, str_from(reply->tasks[i]->id),
                           (struct store_call){worker->loop, on_resumed, worker});
    }
    if (reply->status == STORE_OK && reply->has_more && reply->task_count > 0)
        resume_from(worker, reply->sequences[reply->task_count - 1]);
}

static void resume_from(struct gateway_worker *worker, int64_t before_sequence)
{
    const struct store_task_query approved = {
        .states = 1u << TASK_APPROVED,
        .behind_sequence = before_sequence,
        .limit = RESUME_PAGE,
    };
    store_task_list(worker->gateway->store, &approved,
                    (struct store_call){worker->loop, on_approved, worker});
}

void control_resume(struct gateway_worker *worker)
{
    resume_from(worker, 0);
}

/* ---- what became of it ---- */

void control_write_outcome(struct buffer *out, const struct task *task)
{
    struct str outcome = str_slice(task->outcome_text, task->outcome_length);
    if (task->outcome == TASK_OUTCOME_RESULT && task->state != TASK_CANCELLED) {
        buffer_append_text(out, "\"result\":");
        buffer_append(out, outcome);
        return;
    }
    OWNED_BUFFER(message);
    dialect_write_task_answer(&message, STR("0"), task);
    buffer_append_text(out, "\"error\":");
    buffer_append(out, json_member(buffer_str(&message), "error"));
}
