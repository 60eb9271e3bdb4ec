/* Calls of the control plane: no client, no session, the same gates (seed 004). */
#include "state/tool_catalog.h"
#include "taskgate/gateway/control.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "call/upstream_span.h"
#include "decision/agent_reason.h"
#include "decision/decision_log.h"
#include "decision/policy_check.h"
#include "decision/task_binding.h"
#include "run/execution.h"
#include "server/bridge_request.h"
#include "server/catalogue.h"
#include "state/source_eras.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"
#include "taskgate/core/random.h"
#include "taskgate/gateway/blocks.h"
#include "taskgate/json/text.h"
#include "taskgate/policy/gate.h"

#define RESUME_PAGE 100

/* A call on its way; gone when it is answered. */
struct control {
    struct gateway_worker *worker;
    struct snapshot *snapshot;
    const struct config_source *source;
    char *owner, *maker;        /* the task's */
    struct buffer body, reason; /* `reason`: the agent's, NUL-terminated; empty without */
    struct envelope envelope;
    control_callback callback;
    void *context;
    struct span *span; /* until the answer; NULL without telemetry */
};

static void finish(struct control *control)
{
    span_end(control->span);
    envelope_finish(&control->envelope);
    buffer_finish(&control->body);
    buffer_finish(&control->reason);
    free(control->owner);
    free(control->maker);
    snapshot_unref(control->snapshot);
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

static void refuse_as(struct control *control, enum control_status status, enum jsonrpc_error error)
{
    metrics_count(METRIC_ERRORS, str_from(jsonrpc_error_type(error)), STR("tools/call"));
    refuse(control, status, jsonrpc_error_code(error), jsonrpc_error_message(error));
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

static void write_body(struct buffer *body, const struct control_call *call)
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
    write_body(&control->body, call);
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

static void on_stored(void *context, const struct store_reply *reply)
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
    struct str tool = control->envelope.name.text;
    struct buffer name = {0};
    span_name_write(&name, control->envelope.method, tool);
    struct span *span = span_start(SPAN_INTERNAL, buffer_str(&name), &nobody);
    buffer_finish(&name);
    span_set_text(span, ATTRIBUTE_METHOD, control->envelope.method);
    span_set_text(span, ATTRIBUTE_TOOL, tool);
    span_set_text(span, ATTRIBUTE_SOURCE, str_from(control->source->id));
    return span;
}

static void create(struct control *control, const struct policy_decision *decision,
                   const struct catalog_tool *tool)
{
    struct gateway *gateway = control->worker->gateway;
    const struct config_limits *limits = &control->snapshot->config->limits;
    struct store_limits pending = {limits->pending_per_principal, limits->pending_total,
                                   limits->store_bytes, limits->pending_bytes_per_principal};
    const struct task_origin origin = {
        .snapshot = control->snapshot,
        .source = control->source,
        .envelope = &control->envelope,
        .catalog = control->worker->gateway->catalog,
        .told_owner = "", /* CATALOG_GATEWAY */
        .owner = control->owner,
        .session = "",
        .principal = control->owner,
        .maker = control->maker,
        .agent_reason = control->reason.bytes,
        .span = control->span,
    };
    struct task *task =
        task_binding_create(&origin, decision, tool, decision->action == ACTION_FORWARD);
    if (source_eras_is_modern_alone(gateway->eras, control->source))
        bridge_request_keep_own(gateway->catalog, control->source, &control->envelope, task);
    store_task_create(gateway->store, task, &pending,
                      (struct store_call){control->worker->loop, on_stored, control});
}

static void record(const struct control *control, const struct policy_request *request,
                   const struct policy_facts *facts, const struct policy_decision *decision)
{
    const struct decision_log_entry entry = {
        .snapshot = control->snapshot,
        .request = request,
        .decision = decision,
        .facts = facts,
        .span = control->span,
        .becomes_task = decision && decision->action != ACTION_DENY,
    };
    decision_log_write(control->worker, &entry);
}

/* The caller's reason is for people, and no part of the call. False when the call is refused. */
static bool passes_reason(struct control *control, struct policy_request *request,
                          const struct policy_decision *decision, const struct catalog_tool *tool)
{
    struct error error = {""};
    struct buffer body;
    const struct agent_reason_call asked = {
        .catalog = control->worker->gateway->catalog,
        .source = control->source->id,
        .owner = "", /* CATALOG_GATEWAY */
        .tool = tool,
        .decision = decision,
        .envelope = &control->envelope,
    };
    buffer_init(&body);
    enum agent_reason verdict = agent_reason_take(&asked, &body, &control->reason, &error);
    bool is_good = verdict == AGENT_REASON_NONE;
    if (verdict == AGENT_REASON_TAKEN) {
        buffer_append_char(&control->reason, '\0');
        envelope_finish(&control->envelope);
        buffer_finish(&control->body);
        control->body = body;
        is_good =
            envelope_read(&control->envelope, buffer_str(&control->body), &error) == ENVELOPE_OK;
        request->name = control->envelope.name.text;
        request->arguments = control->envelope.arguments.raw;
    }
    if (!is_good)
        refuse(control, CONTROL_INVALID, jsonrpc_error_code(JSONRPC_REASON_REQUIRED),
               error.message);
    return is_good;
}

/* The gates of methods/tools_call.c in their order. A call that may be forwarded runs as a task at
 * once: there is nobody on a connection to whom upstream's answer could be streamed. */
static void judge(struct control *control)
{
    const struct policy *policy = control->snapshot->policy;
    struct catalog *catalog = control->worker->gateway->catalog;
    struct str source = str_from(control->source->id), tool_name = control->envelope.name.text;
    struct policy_request request = {control->source, tool_name, control->envelope.arguments.raw};
    struct policy_facts facts = {.principal.owner = str_from(control->owner),
                                 .now_ms = clock_now_ms()};
    struct policy_decision decision;
    struct catalog_tool tool;
    struct error error = {""};
    catalog_find_tool(catalog, source, CATALOG_GATEWAY, tool_name, &tool);
    facts.hints = tool.hints;
    request.definition = tool.definition;
    if (!control->source->enabled || !policy_is_visible(policy, control->source, tool_name)) {
        metrics_count(METRIC_DECISIONS, policy_gate_label(POLICY_GATE_VISIBILITY), STR("block"));
        record(control, &request, &facts, NULL);
        refuse_as(control, CONTROL_DENIED, JSONRPC_NOT_EXPOSED);
        return;
    }
    policy_decide(policy, &request, &decision);
    struct str action = str_from(config_action_name(decision.action));
    metrics_count(METRIC_DECISIONS, policy_gate_label(POLICY_GATE_GOVERNANCE), action);
    metrics_count(METRIC_RULE_MATCHES, action);
    if (!passes_reason(control, &request, &decision, &tool))
        return;
    if (policy_refuses_arguments(&request, &decision, &error)) {
        error_prefix(&error, "arguments");
        refuse(control, CONTROL_INVALID, jsonrpc_error_code(JSONRPC_INVALID_PARAMS), error.message);
        return;
    }
    policy_check(control->snapshot, &request, &facts, &decision);
    record(control, &request, &facts, &decision);
    if (decision.action == ACTION_DENY) {
        refuse_as(control, CONTROL_DENIED,
                  decision.by_policies ? JSONRPC_POLICY_DENIED : JSONRPC_RULE_DENIED);
        return;
    }
    struct mcp_capabilities upstream = {0};
    catalog_capabilities(catalog, source, &upstream);
    if (!upstream.tasks ||
        source_eras_is_modern_alone(control->worker->gateway->eras, control->source))
        tool.has_own = false; /* its word about tasks means nothing then */
    create(control, &decision, &tool);
}

/* ---- what the gateway's own session is told of the tool ---- */

static bool must_look(const struct control *control)
{
    struct catalog *catalog = control->worker->gateway->catalog;
    const struct policy *policy = control->snapshot->policy;
    struct str source = str_from(control->source->id), name = control->envelope.name.text;
    const struct policy_request request = {control->source, name, STR_EMPTY};
    struct policy_decision decision;
    struct catalog_tool tool;
    catalog_find_tool(catalog, source, CATALOG_GATEWAY, name, &tool);
    policy_decide(policy, &request, &decision);
    return (tool.word != CATALOG_TOLD || !tool.is_current) &&
           policy_is_visible(policy, control->source, name) && decision.action != ACTION_DENY &&
           catalog_look_is_due(catalog, source, CATALOG_GATEWAY, clock_monotonic_ms());
}

static void on_looked(void *context)
{
    struct control *control = context;
    struct gateway *gateway = control->worker->gateway;
    catalog_looked(gateway->catalog, str_from(control->source->id), CATALOG_GATEWAY,
                   clock_monotonic_ms());
    if (atomic_load(&gateway->shutting_down))
        refuse(control, CONTROL_UNAVAILABLE, jsonrpc_error_code(JSONRPC_UNAVAILABLE),
               "the gateway is shutting down");
    else
        judge(control);
}

/* An operator's calls have no client. */
static bool is_blocked(struct control *control)
{
    const struct store_block_caller caller = {str_from(control->owner),
                                              str_from(control->source->id), STR_EMPTY};
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

static void look_and_judge(struct control *control)
{
    if (is_blocked(control))
        return;
    if (telemetry_is_on)
        control->span = begin_span(control);
    if (control->source->enabled && must_look(control))
        tools_fetch_for_gateway(control->worker, control->snapshot, control->source, on_looked,
                                control);
    else
        judge(control);
}

void control_call(struct gateway_worker *worker, const struct control_call *call,
                  control_callback callback, void *context)
{
    struct error error = {""};
    struct control *control = memory_alloc(sizeof *control);
    control->worker = worker;
    control->snapshot = snapshot_current();
    control->callback = callback;
    control->context = context;
    control->owner = control_owner(call->name);
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
        look_and_judge(control);
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
