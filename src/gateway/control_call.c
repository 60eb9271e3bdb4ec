/* Calls of the control plane: no client, no session, the same gates (behaviour 17.1). */
#include "state/tool_catalog.h"
#include "taskgate/gateway/control.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "call/call_span.h"
#include "conversation/execute.h"
#include "decision/task_binding.h"
#include "methods/tools_call.h"
#include "server/bridge_request.h"
#include "state/source_eras.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"
#include "taskgate/core/random.h"
#include "taskgate/gateway/blocks.h"
#include "taskgate/json/text.h"

#define RESUME_PAGE 100

/* A call on its way; gone when it is answered. */
struct control {
    struct tools_call_control base; /* first; its span ends with the answer */
    char *maker;                    /* the task's */
    control_callback callback;
    void *context;
};

static struct control *control_of(struct tools_call_control *base)
{
    return (struct control *)base;
}

static void finish(struct control *control)
{
    span_end(control->base.span);
    envelope_finish(&control->base.envelope);
    buffer_finish(&control->base.body);
    buffer_finish(&control->base.reason);
    free(control->base.owner);
    free(control->maker);
    snapshot_unref(control->base.snapshot);
    MAGIC_CLEAR(&control->base);
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
    if (control->base.span)
        fail_span(control->base.span, code, message);
    control->callback(control->context, &reply);
    finish(control);
}

static void refuse_as(struct control *control, enum control_status status, enum jsonrpc_error error)
{
    metrics_count(METRIC_ERRORS, str_from(jsonrpc_error_type(error)), STR("tools/call"));
    refuse(control, status, jsonrpc_error_code(error), jsonrpc_error_message(error));
}

/* ---- what is asked ---- */

/* The only source, or the one that is named. */
static bool choose_source(struct control *control, struct str wanted)
{
    const struct config *config = control->base.snapshot->config;
    if (wanted.length > 0)
        control->base.source = config_source_find(config, wanted);
    else if (config->source_count == 1)
        control->base.source = &config->sources[0];
    return control->base.source != NULL;
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
    control_call_write_body(&control->base.body, call);
    if (json_type(call->tool) != JSON_STRING)
        return error_set(error, "tool must be a string");
    if (call->arguments.length > 0 && json_type(call->arguments) != JSON_OBJECT)
        return error_set(error, "arguments must be an object");
    if (control->base.body.length > (size_t)control->base.snapshot->config->limits.body_bytes)
        return error_set(error, "the call is larger than limits.body_bytes");
    if (envelope_read(&control->base.envelope, buffer_str(&control->base.body), error) !=
        ENVELOPE_OK)
        return false;
    if (dialect_read_ttl(control->base.envelope.task.raw, 1, INT64_MAX, &ttl_ms) ==
        DIALECT_TTL_INVALID)
        return error_set(error, "ttl must be a positive integer of milliseconds");
    return true;
}

/* ---- the task ---- */

static void control_call_on_stored(void *context, const struct store_reply *reply)
{
    struct control *control = context;
    switch (reply->status) {
    case STORE_OK:
        task_binding_announce(reply->task);
        control->callback(control->context, &(struct control_reply){.task = reply->task});
        finish(control);
        break;
    case STORE_LIMIT_PRINCIPAL:
        refuse(control, CONTROL_LIMITED, jsonrpc_error_code(JSONRPC_RATE_LIMITED),
               "too many pending tasks of this token");
        break;
    case STORE_LIMIT_PRINCIPAL_BYTES:
        refuse(control, CONTROL_LIMITED, jsonrpc_error_code(JSONRPC_RATE_LIMITED),
               "the pending tasks of this token are too large");
        break;
    case STORE_LIMIT_TOTAL:
        refuse(control, CONTROL_LIMITED, jsonrpc_error_code(JSONRPC_RATE_LIMITED),
               "too many pending tasks");
        break;
    case STORE_LIMIT_BYTES:
        refuse(control, CONTROL_LIMITED, jsonrpc_error_code(JSONRPC_RATE_LIMITED),
               "the task store is full");
        break;
    case STORE_NOT_FOUND:
    case STORE_CONFLICT:
    case STORE_REFUSED:
    case STORE_FAILED:
        refuse(control, CONTROL_UNAVAILABLE, jsonrpc_error_code(JSONRPC_UNAVAILABLE),
               "the task store is not available");
        break;
    }
}

/* Nobody has sent a request of MCP's: the trace begins here. */
SPAN_COLD static struct span *begin_span(const struct control *control)
{
    const struct span_parent nobody = {0};
    struct str tool = control->base.envelope.name.text;
    struct buffer name = {0};
    span_name_write(&name, control->base.envelope.method, tool);
    struct span *span = span_start(SPAN_INTERNAL, buffer_str(&name), &nobody);
    buffer_finish(&name);
    span_set_text(span, ATTRIBUTE_METHOD, control->base.envelope.method);
    span_set_text(span, ATTRIBUTE_TOOL, tool);
    span_set_text(span, ATTRIBUTE_SOURCE, str_from(control->base.source->id));
    return span;
}

/* A call that may be forwarded runs as a task at once: there is nobody on a connection to whom
 * upstream's answer could be streamed. */
static void control_call_create(struct tools_call_control *base,
                                const struct policy_decision *decision,
                                const struct catalog_tool *tool, bool accelerated)
{
    struct control *control = control_of(base);
    struct gateway *gateway = control->base.worker->gateway;
    const struct config_limits *limits = &control->base.snapshot->config->limits;
    struct store_limits pending = {limits->pending_per_principal, limits->pending_total,
                                   limits->store_bytes, limits->pending_bytes_per_principal};
    const struct task_origin origin = {
        .snapshot = control->base.snapshot,
        .source = control->base.source,
        .envelope = &control->base.envelope,
        .catalog = control->base.worker->gateway->catalog,
        .told_owner = "", /* CATALOG_GATEWAY */
        .owner = control->base.owner,
        .session = "",
        .principal = control->base.owner,
        .maker = control->maker,
        .agent_reason = control->base.reason.bytes,
        .span = control->base.span,
    };
    struct task *task = task_binding_create(&origin, decision, tool, accelerated);
    if (source_eras_is_modern_alone(gateway->eras, control->base.source))
        bridge_request_keep_own(gateway->catalog, control->base.source, &control->base.envelope,
                                task);
    store_task_create(
        gateway->store, task, &pending,
        (struct store_call){control->base.worker->loop, control_call_on_stored, control});
}

/* ---- the gates ---- */

static void refuse_at_gate(struct tools_call_control *base, enum jsonrpc_error error,
                           const char *message)
{
    bool is_unavailable = error == JSONRPC_UNAVAILABLE;
    if (!message)
        refuse_as(control_of(base), CONTROL_DENIED, error);
    else
        refuse(control_of(base), is_unavailable ? CONTROL_UNAVAILABLE : CONTROL_INVALID,
               jsonrpc_error_code(error), message);
}

/* An operator's calls have no client. */
static bool control_call_is_blocked(struct control *control)
{
    const struct store_block_caller caller = {str_from(control->base.owner),
                                              str_from(control->base.source->id), STR_EMPTY};
    struct buffer reason;
    if (!blocks_any())
        return false;
    buffer_init(&reason);
    enum blocks_verdict verdict = blocks_judge(&caller, &reason);
    buffer_finish(&reason);
    if (verdict == BLOCKS_BLOCKED)
        refuse_as(control, CONTROL_DENIED, JSONRPC_CALLER_BLOCKED);
    else if (verdict == BLOCKS_UNKNOWN)
        refuse_as(control, CONTROL_UNAVAILABLE, JSONRPC_UNAVAILABLE);
    return verdict != BLOCKS_FREE;
}

static void put_to_gates(struct control *control)
{
    if (control_call_is_blocked(control))
        return;
    if (telemetry_is_on)
        control->base.span = begin_span(control);
    tools_call_control(&control->base);
}

void control_call(struct gateway_worker *worker, const struct control_call *call,
                  control_callback callback, void *context)
{
    struct error error = {""};
    struct control *control = memory_alloc(sizeof *control);
    control->base.worker = worker;
    control->base.snapshot = snapshot_current();
    MAGIC_SET(&control->base, TOOLS_CALL_CONTROL_MAGIC);
    control->base.refuse = refuse_at_gate;
    control->base.pass = control_call_create;
    control->callback = callback;
    control->context = context;
    control->base.owner = control_owner(call->name);
    control->maker = memory_copy_text(call->maker);
    if (atomic_load(&worker->gateway->shutting_down))
        refuse(control, CONTROL_UNAVAILABLE, jsonrpc_error_code(JSONRPC_UNAVAILABLE),
               "the gateway is shutting down");
    else if (!choose_source(control, call->source))
        refuse(control, CONTROL_INVALID, 0,
               call->source.length > 0 ? "there is no source of this id"
                                       : "there are several sources: name one");
    else if (!read_body(control, call, &error))
        refuse(control, CONTROL_INVALID, 0, error.message);
    else
        put_to_gates(control);
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
    struct buffer message;
    buffer_init(&message);
    dialect_write_task_answer(&message, STR("0"), task);
    buffer_append_text(out, "\"error\":");
    buffer_append(out, json_member(buffer_str(&message), "error"));
    buffer_finish(&message);
}
