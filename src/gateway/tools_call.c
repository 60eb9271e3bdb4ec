/* `tools/call`: the gates in their order, then the call goes up, or becomes a task, or is
 * refused (seed 002 F-004, F-005; reference §2.1). */
#include <stdlib.h>
#include <string.h>

#include "consult.h"
#include "relay.h"
#include "taskgate/core/log.h"
#include "taskgate/core/metrics.h"
#include "taskgate/json/text.h"

static void refuse(struct call *call, enum jsonrpc_error error, const char *gate)
{
    struct jsonrpc_error_data data = {.tool = call_tool(call), .gate = str_from(gate)};
    call_answer_error(call, error, STR_EMPTY, &data);
}

static void count_decision(enum config_action action)
{
    struct str name = str_from(config_action_name(action));
    metrics_count(METRIC_DECISIONS, STR("gate2"), name);
    metrics_count(METRIC_RULE_MATCHES, name);
}

static void forward(struct call *call)
{
    struct relay_options options = {.silence_ms =
                                        call->snapshot->config->times.sync_forward_timeout_ms};
    relay_start(call, &options);
}

static void refuse_task_required(struct call *call, const struct policy_decision *decision)
{
    bool needs_approval = decision->action != ACTION_FORWARD;
    struct jsonrpc_error_data data = {
        .tool = call_tool(call),
        .reason = str_from(needs_approval ? DIALECT_REASON_REQUIRED : DIALECT_REASON_FORCED),
        .hint = str_from(DIALECT_HINT_REQUIRED),
    };
    metrics_count(METRIC_TASK_VALIDATION_ERRORS, STR("required"));
    call_answer_error(call, JSONRPC_TASK_REQUIRED, STR_EMPTY, &data);
}

static void refuse_task_forbidden(struct call *call)
{
    struct jsonrpc_error_data data = {
        .tool = call_tool(call),
        .reason = str_from(DIALECT_REASON_FORBIDDEN),
    };
    metrics_count(METRIC_TASK_VALIDATION_ERRORS, STR("forbidden"));
    call_answer_error(call, JSONRPC_TASK_FORBIDDEN, STR_EMPTY, &data);
}

static void consult_policies(const struct call *call, const struct policy_request *request,
                             const struct catalog_tool *tool, struct policy_decision *decision)
{
    const struct policy_principal principal = {
        .owner = str_from(call->owner),
        .client_name = str_from(call->facts.client_name),
        .client_version = str_from(call->facts.client_version),
    };
    consult(call->snapshot, request, &principal, tool, decision);
}

/* Gates 1 and 2 come before any look at the task field, then its form. False when the call is
 * answered. */
static bool passes_rules(struct call *call, const struct policy_request *request,
                         struct policy_decision *decision)
{
    const struct policy *policy = call->snapshot->policy;
    struct str task = call->envelope.task.raw;
    int64_t ttl_ms;
    if (!policy_is_visible(policy, call->source, request->name)) {
        metrics_count(METRIC_DECISIONS, STR("gate1"), STR("block"));
        refuse(call, JSONRPC_NOT_EXPOSED, "visibility");
        return false;
    }
    policy_decide(policy, request, decision);
    count_decision(decision->action);
    if (decision->action == ACTION_DENY) {
        refuse(call, JSONRPC_RULE_DENIED, "governance");
        return false;
    }
    if (task.length > 0 && dialect_read_ttl(task, 1, INT64_MAX, &ttl_ms) == DIALECT_TTL_INVALID) {
        call_answer_error(call, JSONRPC_INVALID_PARAMS,
                          STR("params.task must be an object, and its ttl a positive integer of "
                              "milliseconds"),
                          NULL);
        return false;
    }
    return true;
}

/* Who can be told that the task field is missing is told so before any policy is asked (seed
 * 002 F-004, F-005). */
static void judge(struct call *call)
{
    struct gateway *gateway = call->worker->gateway;
    struct policy_request request = {call->source, call->envelope.name.text,
                                     call->envelope.arguments.raw};
    bool has_task = call->envelope.task.raw.length > 0;
    struct policy_decision decision;
    struct catalog_tool tool;
    if (!passes_rules(call, &request, &decision))
        return;
    catalog_find_tool(gateway->catalog, str_from(call->source->id), request.name, &tool);
    if (!call->facts.upstream_tasks)
        tool.has_own = false; /* what it says of tasks means nothing then */
    enum policy_annotation announced =
        policy_annotate(&decision, call->facts.upstream_tasks, tool.has_own, tool.own);
    if (has_task || !call_knows_tasks(call))
        consult_policies(call, &request, &tool, &decision);
    if (decision.by_policies && !has_task) /* the client knows of no announcement */
        announced = policy_annotate(&decision, call->facts.upstream_tasks, tool.has_own, tool.own);
    switch (policy_route(&decision, announced, has_task, tool.has_own, tool.own)) {
    case ROUTE_FORWARD:
        forward(call);
        break;
    case ROUTE_DENIED:
        refuse(call, JSONRPC_RULE_DENIED, "governance");
        break;
    case ROUTE_REJECTED:
        refuse(call, JSONRPC_POLICY_DENIED, "policy");
        break;
    case ROUTE_APPROVAL:
        task_create_from_call(call, &decision, &tool, false, TASK_ANSWER_CREATED);
        break;
    case ROUTE_ACCELERATED:
        task_create_from_call(call, &decision, &tool, true, TASK_ANSWER_CREATED);
        break;
    case ROUTE_TASK_REQUIRED:
        if (call_knows_tasks(call))
            refuse_task_required(call, &decision);
        else
            task_create_from_call(call, &decision, &tool, decision.action == ACTION_FORWARD,
                                  TASK_ANSWER_RESULT);
        break;
    case ROUTE_TASK_FORBIDDEN:
        refuse_task_forbidden(call);
        break;
    }
}

/* Without an id there is nobody to answer: the call goes up only if nothing stands against
 * it; everything else is dropped and said in the log. */
static void judge_silent(struct call *call)
{
    struct str name = call->envelope.name.text;
    struct policy_request request = {call->source, name, call->envelope.arguments.raw};
    struct policy_decision decision;
    policy_decide(call->snapshot->policy, &request, &decision);
    if (policy_is_visible(call->snapshot->policy, call->source, name) &&
        decision.action == ACTION_FORWARD && !decision.force_required &&
        call->envelope.task.raw.length == 0) {
        forward(call);
        return;
    }
    log_warn("A tools/call without id was dropped", LOG_STR("tool", name));
    call_answer(call, STR_EMPTY);
}

/* The hot path: whoever asks, and whatever their session negotiated, nothing but forwarding
 * can come of it, so neither is looked up. */
static bool goes_straight_up(const struct call *call)
{
    const struct policy *policy = call->snapshot->policy;
    struct str name = call->envelope.name.text;
    struct policy_request request = {call->source, name, call->envelope.arguments.raw};
    struct policy_decision decision;
    struct catalog_tool tool;
    if (call->envelope.task.raw.length > 0 || !policy_is_visible(policy, call->source, name))
        return false;
    policy_decide(policy, &request, &decision);
    if (decision.action != ACTION_FORWARD || decision.force_required)
        return false;
    catalog_find_tool(call->worker->gateway->catalog, str_from(call->source->id), name, &tool);
    return !(tool.has_own && tool.own == ANNOTATION_REQUIRED);
}

void tools_call_handle(struct call *call)
{
    if (!call->envelope.name.text.bytes) {
        call_answer_error(call, JSONRPC_INVALID_PARAMS, STR("params.name must be a string"), NULL);
    } else if (call->envelope.arguments.raw.length > 0 &&
               json_type(call->envelope.arguments.raw) != JSON_OBJECT) {
        call_answer_error(call, JSONRPC_INVALID_PARAMS, STR("params.arguments must be an object"),
                          NULL);
    } else if (call->envelope.kind == ENVELOPE_NOTIFICATION) {
        judge_silent(call);
    } else if (goes_straight_up(call)) {
        count_decision(ACTION_FORWARD);
        forward(call);
    } else {
        call_identify(call);
        call_with_facts(call, judge);
    }
}
