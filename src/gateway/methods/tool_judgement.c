/* The gates of a `tools/call`, in their order. */
#include "tool_judgement.h"

#include <stdlib.h>

#include "call/request_headers.h"
#include "decision/agent_reason.h"
#include "decision/decision_log.h"
#include "decision/policy_check.h"
#include "server/catalogue.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/metrics.h"
#include "taskgate/json/text.h"

/* A longer one is not repeated in the answer. */
#define MOST_KEY_BYTES 64

bool tool_judgement_is_well_formed(struct call *call)
{
    struct str arguments = call->envelope.arguments.raw;
    if (!call->envelope.name.text.bytes)
        call_answer_error(call, JSONRPC_INVALID_PARAMS, STR("params.name must be a string"), NULL);
    else if (arguments.length > 0 && json_type(arguments) != JSON_OBJECT)
        call_answer_error(call, JSONRPC_INVALID_PARAMS, STR("params.arguments must be an object"),
                          NULL);
    else
        return true;
    return false;
}

void tool_judgement_refuse(struct call *call, enum jsonrpc_error error, enum policy_gate gate)
{
    struct jsonrpc_error_data data = {.tool = call_tool(call),
                                      .gate = str_from(policy_gate_name(gate))};
    call_answer_error(call, error, STR_EMPTY, &data);
}

void tool_judgement_count(enum config_action action)
{
    static _Thread_local struct {
        struct metrics_handle decisions, matches;
    } counters[CONFIG_ACTION_COUNT];
    struct str name = str_from(config_action_name(action));
    metrics_add_by(&counters[action].decisions, METRIC_DECISIONS, 1,
                   METRIC_LABELS(policy_gate_label(POLICY_GATE_GOVERNANCE), name));
    metrics_add_by(&counters[action].matches, METRIC_RULE_MATCHES, 1, METRIC_LABELS(name));
}

bool tool_judgement_is_plain(const struct call *call, struct policy_request *request,
                             struct policy_decision *decision)
{
    const struct policy *policy = call->snapshot->policy;
    *request = (struct policy_request){call->source, call->envelope.name.text,
                                       call->envelope.arguments.raw, call_verified(call)};
    if (call->source->pins[DEFINITION_TOOL] == PIN_APPROVE ||
        !policy_is_visible(policy, call->source, request->name))
        return false;
    policy_decide(policy, request, decision);
    return decision->action == ACTION_FORWARD && !decision->force_required &&
           !policy_requires_tasks(decision);
}

void tool_judgement_begin(struct call *call, const struct snapshot *snapshot,
                          struct tool_judgement *judgement)
{
    judgement->request.verified = call_verified(call);
    call_find_tool(call, judgement->request.name, &judgement->tool);
    judgement->request.definition = judgement->tool.definition;
    judgement->facts = (struct policy_facts){
        .principal = {str_from(call->owner), str_from(call->facts.client.name),
                      str_from(call->facts.client.version)},
        .hints = judgement->tool.hints,
        .now_ms = clock_now_ms(),
    };
    if (!call->facts.server.has_tasks || call->is_bridged)
        judgement->tool.has_own = false; /* its word about tasks means nothing then */
    judgement->is_hidden =
        !policy_is_visible(snapshot->policy, judgement->request.source, judgement->request.name);
    if (!judgement->is_hidden)
        policy_decide(snapshot->policy, &judgement->request, &judgement->decision);
}

bool tool_judgement_waits_for_list(struct call *call, const struct tool_judgement *judgement,
                                   call_step next)
{
    bool is_told = judgement->tool.word == CATALOG_TOLD && judgement->tool.is_current;
    return !is_told && !judgement->is_hidden && judgement->decision.action != ACTION_DENY &&
           tools_fetch_then(call, next);
}

void tool_judgement_record(struct call *call, const struct tool_judgement *judgement,
                           bool becomes_task)
{
    const struct decision_log_entry entry = {
        .snapshot = call->snapshot,
        .request = &judgement->request,
        .decision = judgement->is_hidden ? NULL : &judgement->decision,
        .facts = &judgement->facts,
        .identity = call->identity,
        .becomes_task = becomes_task,
        .span = call->span,
    };
    decision_log_write(call->worker, &entry);
}

bool tool_judgement_passes_gates(struct call *call, const struct tool_judgement *judgement)
{
    if (judgement->is_hidden) {
        metrics_count(METRIC_DECISIONS, policy_gate_label(POLICY_GATE_VISIBILITY), STR("block"));
        tool_judgement_record(call, judgement, false);
        tool_judgement_refuse(call, JSONRPC_NOT_EXPOSED, POLICY_GATE_VISIBILITY);
        return false;
    }
    tool_judgement_count(judgement->decision.action);
    if (judgement->decision.action != ACTION_DENY)
        return true;
    tool_judgement_record(call, judgement, false);
    tool_judgement_refuse(call, JSONRPC_RULE_DENIED, POLICY_GATE_GOVERNANCE);
    return false;
}

/* The bytes of the call are others afterwards. */
static bool take_without_reason(struct call *call, struct tool_judgement *judgement,
                                struct buffer *body, struct buffer *reason)
{
    struct error error = {""};
    free(call->agent_reason);
    call->agent_reason = buffer_take(reason, NULL);
    if (call_replace_body(call, body, &error) != ENVELOPE_OK) {
        call_answer_error(call, JSONRPC_INTERNAL, STR_EMPTY, NULL);
        return false;
    }
    judgement->request.name = call->envelope.name.text;
    judgement->request.arguments = call->envelope.arguments.raw;
    return true;
}

static bool passes_reason(struct call *call, struct tool_judgement *judgement)
{
    struct error error = {""};
    struct buffer body, reason;
    const struct agent_reason_call asked = {
        .catalog = call->worker->gateway->catalog,
        .source = call->source->id,
        .owner = call->owner,
        .tool = &judgement->tool,
        .decision = &judgement->decision,
        .envelope = &call->envelope,
    };
    buffer_init(&body);
    buffer_init(&reason);
    enum agent_reason verdict = agent_reason_take(&asked, &body, &reason, &error);
    bool passes = verdict == AGENT_REASON_NONE;
    if (verdict == AGENT_REASON_TAKEN)
        passes = take_without_reason(call, judgement, &body, &reason);
    else if (verdict == AGENT_REASON_REFUSED)
        call_answer_error(call, JSONRPC_REASON_REQUIRED, str_from(error.message), NULL);
    buffer_finish(&reason);
    buffer_finish(&body);
    return passes;
}

bool tool_judgement_passes_arguments(struct call *call, struct tool_judgement *judgement)
{
    struct error error = {""};
    if (!passes_reason(call, judgement))
        return false;
    if (!policy_refuses_arguments(&judgement->request, &judgement->decision, &error))
        return true;
    error_prefix(&error, "params.arguments");
    call_answer_error(call, JSONRPC_INVALID_PARAMS, str_from(error.message), NULL);
    return false;
}

/* Approvers are shown params. They would never see a member beside it. */
static void refuse_unknown_member(struct call *call)
{
    struct buffer key, details;
    buffer_init(&key);
    buffer_init(&details);
    json_decode_string(call->envelope.unknown_member, &key);
    buffer_append_text(&details, "a call that becomes a task has no members beside jsonrpc, id, "
                                 "method and params");
    if (key.length <= MOST_KEY_BYTES)
        buffer_append_format(&details, "; this one has \"%.*s\"", STR_ARGS(buffer_str(&key)));
    struct jsonrpc_error_data data = {.tool = call_tool(call), .details = buffer_str(&details)};
    call_answer_error(call, JSONRPC_INVALID_REQUEST, STR_EMPTY, &data);
    buffer_finish(&details);
    buffer_finish(&key);
}

bool tool_judgement_is_shown_whole(struct call *call)
{
    const struct jsonrpc_error_data too_long = {
        .tool = call_tool(call),
        .details = STR("the headers of a call that becomes a task have 16 KiB at most")};
    if (call->envelope.unknown_member.length > 0)
        refuse_unknown_member(call);
    else if (!request_headers_fit(call->exchange))
        call_answer_error(call, JSONRPC_INVALID_REQUEST, STR_EMPTY, &too_long);
    else
        return true;
    return false;
}

/* ---- a call that is under way ---- */

static enum config_action action_now(struct call *call, const struct snapshot *now)
{
    struct tool_judgement judgement = {
        .request = {config_source_find(now->config, str_from(call->source->id)),
                    call->envelope.name.text, call->envelope.arguments.raw}};
    if (!judgement.request.source)
        return ACTION_DENY;
    tool_judgement_begin(call, now, &judgement);
    if (judgement.is_hidden)
        return ACTION_DENY;
    policy_check(now, &judgement.request, &judgement.facts, &judgement.decision);
    return judgement.decision.action;
}

bool tool_judgement_forbids(struct call *call)
{
    struct snapshot *now = snapshot_current();
    bool is_forbidden =
        now->number != call->snapshot->number && action_now(call, now) != ACTION_FORWARD;
    snapshot_unref(now);
    if (is_forbidden)
        tool_judgement_refuse(call, JSONRPC_RULE_DENIED, POLICY_GATE_GOVERNANCE);
    return is_forbidden;
}
