/* prompts/get, resources/read, resources/subscribe, completion/complete, and what `methods.allow`
 * lets pass: `expose` and the rules on a name or URI. Nothing can wait for a human here, so approve
 * and policy mean no (behaviour 6.2). resources/unsubscribe beside them: it passes, but for what is
 * the gateway's own. */
#include "client/legacy_stream.h"
#include "conversation/question.h"
#include "conversation/relay.h"
#include "methods.h"
#include "tools/doc_resources.h"

#include "taskgate/core/assert.h"
#include "taskgate/core/metrics.h"
#include "taskgate/core/owned.h"
#include "taskgate/policy/gate.h"
#include "taskgate/telemetry/span.h"

static void refuse(struct call *call, enum jsonrpc_error error, enum policy_gate gate)
{
    struct jsonrpc_error_data data = {.gate = str_from(policy_gate_name(gate))};
    call_answer_error(call, error, STR_EMPTY, &data);
}

/* The client was told that there are resources, so it may ask for one; upstream would say that it
 * does not know the method. */
static bool say_not_found(struct call *call, struct str error, struct buffer *message)
{
    struct jsonrpc_error_data data = {.details = call->envelope.uri.text};
    if (!doc_resources_replace(call, error))
        return false;
    dialect_write_error(call->dialect, message, call->envelope.id, JSONRPC_RESOURCE_NOT_FOUND,
                        STR_EMPTY, &data);
    return true;
}

/* The answer is read on its way only for such a call. Otherwise it streams through, because it may
 * be large. */
static bool may_know_no_resources(const struct call *call)
{
    return call->method->treatment == MCP_GATED_URI && call->facts.server.lacks_resources;
}

/* A resource by its URI, or a prompt or tool by its name. */
struct target {
    struct str name;
    enum target_kind { TARGET_URI, TARGET_PROMPT, TARGET_TOOL } kind;
};

/* The targets of the call; all must pass. */
struct targets {
    struct target items[2];
    size_t count;
};

static void add_target(struct targets *targets, struct str name, enum target_kind kind)
{
    ASSERT_NUMBERS(targets->count, <, sizeof targets->items / sizeof *targets->items);
    targets->items[targets->count++] = (struct target){name, kind};
}

static struct targets targets_of(const struct call *call)
{
    const struct envelope *envelope = &call->envelope;
    struct targets targets = {.count = 0};
    switch (call->method->treatment) {
    case MCP_GATED_URI:
        add_target(&targets, envelope->uri.text, TARGET_URI);
        break;
    case MCP_EXTENSION:
        if (call->method->extension.parameter == MCP_PARAMETER_URI)
            add_target(&targets, envelope->uri.text, TARGET_URI);
        break;
    case MCP_GATED_NAME:
        add_target(&targets, envelope->name.text, TARGET_PROMPT);
        break;
    case MCP_GATED_REFERENCE:
        if (envelope->ref_uri.raw.length > 0)
            add_target(&targets, envelope->ref_uri.text, TARGET_URI);
        else
            add_target(&targets, envelope->ref_name.text, TARGET_PROMPT);
        break;
    default: /* of a method that `methods.allow` lets pass */
        if (envelope->uri.raw.length > 0)
            add_target(&targets, envelope->uri.text, TARGET_URI);
        if (envelope->name.raw.length > 0)
            add_target(&targets, envelope->name.text,
                       str_starts_with(envelope->method, STR("prompts/")) ? TARGET_PROMPT
                                                                          : TARGET_TOOL);
    }
    return targets;
}

static bool is_visible(const struct policy *policy, const struct config_source *source,
                       const struct targets *targets)
{
    bool is_visible = true;
    for (size_t i = 0; is_visible && i < targets->count; i++) {
        struct str name = targets->items[i].name;
        switch (targets->items[i].kind) {
        case TARGET_URI:
            is_visible = policy_is_uri_visible(policy, source, name);
            break;
        case TARGET_PROMPT:
            is_visible = policy_is_prompt_visible(policy, source, name, NULL);
            break;
        case TARGET_TOOL:
            is_visible = policy_is_visible(policy, source, name);
            break;
        }
    }
    return is_visible;
}

/* A decision to wait is a refusal here. */
static void tell_span(const struct call *call, const struct policy_decision *decision)
{
    const char *word = decision->action == ACTION_FORWARD ? "forward" : "deny";
    span_set_text(call->span, ATTRIBUTE_DECISION, str_from(word));
    span_set_text(call->span, ATTRIBUTE_RULE,
                  str_from(decision->rule ? decision->rule->match : "default"));
}

static void decide_target(const struct call *call, const struct snapshot *snapshot,
                          const struct config_source *source, const struct target *target,
                          struct policy_decision *decision)
{
    struct policy_request request = {source, target->name, call->envelope.arguments.raw,
                                     call_verified(call),
                                     .is_no_tool = target->kind != TARGET_TOOL};
    if (target->kind == TARGET_URI)
        policy_decide_uri(snapshot->policy, &request, decision);
    else
        policy_decide(snapshot->policy, &request, decision);
}

/* The first decision that is no `forward` is that on the call. */
static enum config_action name_gate_decide(const struct call *call, const struct snapshot *snapshot,
                                           const struct config_source *source,
                                           const struct targets *targets)
{
    struct policy_decision decision = {.action = ACTION_FORWARD};
    for (size_t i = 0; i < targets->count && decision.action == ACTION_FORWARD; i++)
        decide_target(call, snapshot, source, &targets->items[i], &decision);
    if (call->span && targets->count > 0)
        tell_span(call, &decision);
    return decision.action;
}

bool name_gate_forbids_now(struct call *call)
{
    const struct targets targets = targets_of(call);
    struct snapshot *now = snapshot_current();
    const struct config_source *source =
        config_source_find(now->config, str_from(call->source->id));
    bool is_forbidden = now->number != call->snapshot->number &&
                        (!source || !is_visible(now->policy, source, &targets) ||
                         name_gate_decide(call, now, source, &targets) != ACTION_FORWARD);
    snapshot_unref(now);
    if (is_forbidden)
        refuse(call, JSONRPC_RULE_DENIED, POLICY_GATE_GOVERNANCE);
    return is_forbidden;
}

/* An extension's method answers as if there were nothing at that URI. */
static void refuse_hidden(struct call *call)
{
    const struct jsonrpc_error_data data = {.details = call->envelope.uri.text};
    if (call->method->treatment == MCP_EXTENSION)
        call_answer_error(call, JSONRPC_RESOURCE_UNKNOWN, STR_EMPTY, &data);
    else
        refuse(call, JSONRPC_NOT_EXPOSED, POLICY_GATE_VISIBILITY);
}

enum name_gate_verdict name_gate_judge_uri(const struct call *call, struct str uri)
{
    const struct policy *policy = call->snapshot->policy;
    const struct policy_request request = {call->source, uri, STR_EMPTY, call_verified(call)};
    struct policy_decision decision;
    if (!policy_is_uri_visible(policy, call->source, uri))
        return NAME_GATE_HIDDEN;
    policy_decide_uri(policy, &request, &decision);
    return decision.action == ACTION_FORWARD ? NAME_GATE_FORWARD : NAME_GATE_DENIED;
}

bool name_gate_passes(struct call *call)
{
    const struct targets targets = targets_of(call);
    if (!is_visible(call->snapshot->policy, call->source, &targets)) {
        metrics_count(METRIC_DECISIONS, policy_gate_label(POLICY_GATE_VISIBILITY), STR("block"));
        refuse_hidden(call);
        return false;
    }
    enum config_action action = name_gate_decide(call, call->snapshot, call->source, &targets);
    if (targets.count > 0)
        metrics_count(METRIC_DECISIONS, policy_gate_label(POLICY_GATE_GOVERNANCE),
                      str_from(config_action_name(action)));
    if (action != ACTION_FORWARD)
        refuse(call, JSONRPC_RULE_DENIED, POLICY_GATE_GOVERNANCE);
    return action == ACTION_FORWARD;
}

#define GATED .take_message = question_take_from_stream, .forbidden = name_gate_forbids_now

static void judge(struct call *call)
{
    if (!name_gate_passes(call))
        return;
    /* By whether a skill's contents are compared, and whether the server may know no resources. */
    static const struct looks looks[2][2] = {
        {{GATED}, {GATED, .replace_error = say_not_found}},
        {{GATED, SKILL_CONTENTS_LOOKS},
         {GATED, SKILL_CONTENTS_LOOKS, .replace_error = say_not_found}}};
    bool compares = skill_contents_are_compared(call);
    if (!client_stream_takes(call))
        relay_start(call, &looks[compares][may_know_no_resources(call)], NULL);
}

/* ---- resources: some are the gateway's own ---- */

static void answer_own(struct call *call)
{
    OWNED_BUFFER(contents);
    OWNED_BUFFER(result);
    if (str_equal(call->envelope.method, STR("resources/read"))) {
        doc_resources_write_contents(call, &contents);
        call->dialect->write_list(&result, buffer_str(&contents), 0);
    } else {
        buffer_append(&result, STR("{}")); /* a subscription: they never change */
    }
    call_answer_result(call, buffer_str(&result));
}

static bool is_own(const struct call *call)
{
    return doc_resources_are_offered(call) && doc_resources_have(call->envelope.uri.text);
}

static void name_gate_judge_resource(struct call *call)
{
    if (is_own(call))
        answer_own(call);
    else
        judge(call);
}

/* ---- completion: of a prompt's or a resource's arguments ---- */

/* One of the two kinds, with its own member and without the other's: no server can take it for
 * something else than what was judged. */
static bool is_reference(const struct envelope *envelope)
{
    const struct envelope_member *name = &envelope->ref_name, *uri = &envelope->ref_uri;
    if (str_equal(envelope->ref_type.text, STR("ref/prompt")))
        return name->text.bytes && !uri->raw.length;
    return str_equal(envelope->ref_type.text, STR("ref/resource")) && uri->text.bytes &&
           !name->raw.length;
}

/* Without a reference there is nothing to judge, and upstream will say so. */
void completion_handle(struct call *call)
{
    if (!call->envelope.ref.raw.length)
        relay_start(call, &looks_at_questions, NULL);
    else if (is_reference(&call->envelope))
        judge(call);
    else
        call_answer_error(call, JSONRPC_INVALID_PARAMS,
                          STR("params.ref must be a ref/prompt with a name or a ref/resource with "
                              "a uri"),
                          NULL);
}

static bool has_good_params(struct call *call, bool by_uri, bool by_name)
{
    const char *wrong = NULL;
    if (by_uri && !call->envelope.uri.text.bytes)
        wrong = "params.uri must be a string";
    else if (by_name && !call->envelope.name.text.bytes)
        wrong = "params.name must be a string";
    if (wrong)
        call_answer_error(call, JSONRPC_INVALID_PARAMS, str_from(wrong), NULL);
    return !wrong;
}

void name_gate_handle(struct call *call)
{
    bool by_uri = call->method->treatment == MCP_GATED_URI;
    if (!has_good_params(call, by_uri, !by_uri) || !methods_have_good_rounds(call))
        return;
    if (by_uri)
        call_with_facts(call, name_gate_judge_resource);
    else
        judge(call);
}

static void name_gate_handle_allowed(struct call *call)
{
    const struct envelope *envelope = &call->envelope;
    if (has_good_params(call, envelope->uri.raw.length > 0, envelope->name.raw.length > 0))
        judge(call);
}

/* A method that `methods.allow` lets pass is judged first. One of a table has its own gates, in its
 * own era; in the other one nothing would judge it, but a server behind a bridge knows it. */
void unknown_method_handle(struct call *call)
{
    struct str method = call->envelope.method;
    if (!mcp_method_is_known(method) && policy_allows_method(call->snapshot->policy, method)) {
        name_gate_handle_allowed(call);
        return;
    }
    methods_refuse_unknown(call);
}

static void unsubscribe(struct call *call)
{
    if (is_own(call))
        answer_own(call);
    else if (!client_stream_takes(call))
        relay_start(call, &looks_at_questions, NULL);
}

void unsubscribe_handle(struct call *call)
{
    call_with_facts(call, unsubscribe);
}
