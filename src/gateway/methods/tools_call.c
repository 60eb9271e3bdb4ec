/* `tools/call`: the gates in their order, then the call goes up, or becomes a task, or is
 * refused (seed 002 F-004, F-005; reference §2.1). */
#include <stdlib.h>
#include <string.h>

#include "block_check.h"
#include "call/client_profile.h"
#include "conversation/question.h"
#include "decision/decision_log.h"
#include "decision/policy_check.h"
#include "methods.h"
#include "pseudo_tool_call.h"
#include "relay/relay.h"
#include "run/detached_call.h"
#include "run/task_create.h"
#include "server/catalogue.h"
#include "state/tool_catalog.h"
#include "taskgate/core/log.h"
#include "taskgate/core/metrics.h"
#include "taskgate/gateway/blocks.h"
#include "tool_judgement.h"
#include "tools/answer.h"
#include "tools/plain.h"

/* As if nobody had made the same call before. */
static void forward_anew(struct call *call)
{
    const struct config *config = call->snapshot->config;
    bool is_kept_from_it =
        config->pseudo.mode == PSEUDO_NEVER || config->pseudo.promote == PROMOTE_NEVER;
    bool may_be_promoted =
        call->envelope.kind == ENVELOPE_REQUEST && (call->is_executed || !is_kept_from_it);
    struct relay_options options = {
        .silence_ms = call->is_executed ? 0 : config->times.sync_forward_timeout_ms,
        .answer_result = call->is_executed ? pseudo_answer_result : NULL,
        .slow_ms = may_be_promoted ? detached_call_first_look_ms(call) : 0,
        .slow = detached_call_of_slow,
        .left = may_be_promoted ? detached_call_of_left : NULL,
        .forbidden = tool_judgement_forbids,
        .asks_later = detached_call_asks_later,
        .take_message = question_take_from_stream,
    };
    if (call->is_executed && !call->is_bridged)
        detached_call_run(call, call->patience_ms);
    else
        relay_start(call, &options);
}

static void forward(struct call *call, const struct policy_decision *decision)
{
    if (!plain_call_rejoins(call, decision, forward_anew))
        forward_anew(call);
}

/* A client that cannot do as the error says can still have the tool called for it. */
static void refuse_task(struct call *call, enum jsonrpc_error error, const char *which,
                        struct jsonrpc_error_data *data)
{
    struct buffer alternative;
    buffer_init(&alternative);
    pseudo_tools_write_alternative(call, &alternative);
    data->alternative = buffer_str(&alternative);
    metrics_count(METRIC_TASK_VALIDATION_ERRORS, str_from(which));
    call_answer_error(call, error, STR_EMPTY, data);
    buffer_finish(&alternative);
}

static void refuse_task_required(struct call *call, const struct policy_decision *decision)
{
    bool needs_approval = decision->action != ACTION_FORWARD;
    struct jsonrpc_error_data data = {
        .tool = call_tool(call),
        .reason = str_from(needs_approval ? DIALECT_REASON_REQUIRED : DIALECT_REASON_FORCED),
        .hint = str_from(DIALECT_HINT_REQUIRED),
    };
    refuse_task(call, JSONRPC_TASK_REQUIRED, "required", &data);
}

static void refuse_task_forbidden(struct call *call)
{
    struct jsonrpc_error_data data = {
        .tool = call_tool(call),
        .reason = str_from(DIALECT_REASON_FORBIDDEN),
    };
    refuse_task(call, JSONRPC_TASK_FORBIDDEN, "forbidden", &data);
}

/* Gates 1 and 2 come before any look at the task field, then its form. False when the call is
 * answered. */
static bool passes_rules(struct call *call, struct tool_judgement *judgement)
{
    struct str task = call->envelope.task.raw;
    int64_t ttl_ms;
    if (!tool_judgement_passes_gates(call, judgement))
        return false;
    if (task.length > 0 && dialect_read_ttl(task, 1, INT64_MAX, &ttl_ms) == DIALECT_TTL_INVALID) {
        call_answer_error(call, JSONRPC_INVALID_PARAMS,
                          STR("params.task must be an object, and its ttl a positive integer of "
                              "milliseconds"),
                          NULL);
        return false;
    }
    return tool_judgement_passes_arguments(call, judgement);
}

static void become_task(struct call *call, const struct tool_judgement *judgement, bool accelerated,
                        bool is_plain)
{
    if (!tool_judgement_is_shown_whole(call))
        return;
    tool_judgement_record(call, judgement, true);
    if (is_plain)
        plain_call_become_task(call, &judgement->decision, &judgement->tool, accelerated);
    else
        task_create_from_call(call, &judgement->decision, &judgement->tool, accelerated);
}

static void answer_route(struct call *call, const struct tool_judgement *judgement,
                         enum policy_route route)
{
    const struct policy_decision *decision = &judgement->decision;
    switch (route) {
    case ROUTE_FORWARD:
        tool_judgement_record(call, judgement, false);
        forward(call, decision);
        break;
    case ROUTE_DENIED:
        tool_judgement_refuse(call, JSONRPC_RULE_DENIED, POLICY_GATE_GOVERNANCE);
        break;
    case ROUTE_REJECTED:
        tool_judgement_record(call, judgement, false);
        tool_judgement_refuse(call, JSONRPC_POLICY_DENIED, POLICY_GATE_POLICY);
        break;
    case ROUTE_APPROVAL:
        become_task(call, judgement, false, false);
        break;
    case ROUTE_ACCELERATED:
        become_task(call, judgement, true, false);
        break;
    case ROUTE_HELD:
        become_task(call, judgement, false, true);
        break;
    case ROUTE_HELD_ACCELERATED:
        become_task(call, judgement, true, true);
        break;
    case ROUTE_TASK_REQUIRED:
        refuse_task_required(call, decision);
        break;
    case ROUTE_TASK_FORBIDDEN:
        refuse_task_forbidden(call);
        break;
    case ROUTE_LACKS_EXTENSION: /* of the modern era */
    case POLICY_ROUTE_COUNT:
        abort();
    }
}

/* A client that knows tasks is told that the task field is missing before any policy is asked (seed
 * 002 F-004, F-005). */
static void judge_upstreams(struct call *call)
{
    struct tool_judgement judgement = {
        .request = {call->source, call->envelope.name.text, call->envelope.arguments.raw}};
    const struct policy_decision *decision = &judgement.decision;
    const struct catalog_tool *tool = &judgement.tool;
    bool upstream_tasks = call->facts.server.has_tasks;
    tool_judgement_begin(call, call->snapshot, &judgement);
    if (tool_judgement_waits_for_list(call, &judgement, judge_upstreams))
        return;
    const struct policy_caller caller = {.has_task = call->envelope.task.raw.length > 0,
                                         .knows_tasks = client_knows_tasks(call),
                                         .is_executed = call->is_executed};
    if (!passes_rules(call, &judgement))
        return;
    enum policy_annotation announced =
        policy_annotate(decision, upstream_tasks, tool->has_own, tool->own);
    if (policy_asks_policies(&caller, decision))
        policy_check(call->snapshot, &judgement.request, &judgement.facts, &judgement.decision);
    if (decision->by_policies && !caller.has_task) /* the client knows of no announcement */
        announced = policy_annotate(decision, upstream_tasks, tool->has_own, tool->own);
    answer_route(call, &judgement,
                 policy_outcome(&caller, decision, announced, tool->has_own, tool->own));
}

void tools_call_execute(struct call *call, int64_t patience_ms)
{
    call->is_executed = true;
    call->patience_ms = patience_ms;
    judge_upstreams(call);
}

/* The call goes up by its rule alone. The client was not looked at. */
static void forward_plainly(struct call *call, const struct policy_request *request,
                            const struct policy_decision *decision)
{
    const struct decision_log_entry entry = {.snapshot = call->snapshot,
                                             .request = request,
                                             .decision = decision,
                                             .identity = call->identity,
                                             .span = call->span};
    decision_log_write_unidentified(call, &entry);
    forward(call, decision);
}

/* The gateway's own tools are no server's, so no rule is for them. */
static void judge(struct call *call)
{
    const struct pseudo_tool *own = pseudo_tool_called(call);
    if (!own)
        judge_upstreams(call);
    else if (call->envelope.task.raw.length > 0)
        refuse_task_forbidden(call);
    else
        pseudo_tool_run(call, own);
}

/* A call without an id has nobody to answer. It goes up only if no gate stands against it;
 * otherwise it is dropped, and the log says so. */
static void judge_silent(struct call *call)
{
    struct str name = call->envelope.name.text;
    struct policy_request request = {call->source, name, call->envelope.arguments.raw,
                                     call_verified(call)};
    struct policy_decision decision;
    policy_decide(call->snapshot->policy, &request, &decision);
    if (policy_is_visible(call->snapshot->policy, call->source, name) &&
        decision.action == ACTION_FORWARD && !decision.force_required &&
        !policy_requires_tasks(&decision) && call->envelope.task.raw.length == 0 &&
        !pseudo_tool_called(call)) {
        forward_plainly(call, &request, &decision);
        return;
    }
    log_warn("A tools/call without id was dropped", LOG_STR("tool", name));
    call_answer(call, STR_EMPTY);
}

/* Whether upstream says, or may say when it is asked, that it runs the tool as a task only. */
static bool may_need_task(struct call *call, struct str name)
{
    struct catalog *catalog = call->worker->gateway->catalog;
    struct catalog_tool tool;
    if (!catalog_has_seen_tasks(catalog, str_from(call->source->id)))
        return false;
    call_find_tool(call, name, &tool);
    return (tool.has_own && tool.own == ANNOTATION_REQUIRED) ||
           (tool.word != CATALOG_TOLD && tools_fetch_is_due(call));
}

/* The hot path: such a call is forwarded for every client and every session, so neither is looked
 * up. True when the call is on its way. */
static bool goes_straight_up(struct call *call)
{
    struct policy_request request;
    struct policy_decision decision;
    if (call->envelope.task.raw.length > 0 || !tool_judgement_is_plain(call, &request, &decision))
        return false;
    if (pseudo_tool_called(call) || may_need_task(call, request.name))
        return false;
    tool_judgement_count(ACTION_FORWARD);
    forward_plainly(call, &request, &decision);
    return true;
}

/* The caller is not blocked. */
static void handle(struct call *call)
{
    if (call->envelope.kind == ENVELOPE_NOTIFICATION) {
        judge_silent(call);
    } else if (!goes_straight_up(call)) {
        call_identify(call);
        call_with_facts(call, judge);
    }
}

static void check_and_handle(struct call *call)
{
    if (!block_check_refused(call))
        handle(call);
}

void tools_call_handle(struct call *call)
{
    if (!tool_judgement_is_well_formed(call))
        return;
    if (!blocks_any()) {
        handle(call);
    } else {
        call_identify(call);
        call_with_facts(call, check_and_handle);
    }
}
