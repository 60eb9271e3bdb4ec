/* prompts/get, resources/read, resources/subscribe: `expose` and the rules on a name or URI.
 * Nothing can wait for a human here, so approve and policy mean no (contract "Proxy"). */
#include "relay.h"

#include "taskgate/core/metrics.h"

static void refuse(struct call *call, enum jsonrpc_error error, const char *gate)
{
    struct jsonrpc_error_data data = {.gate = str_from(gate)};
    call_answer_error(call, error, STR_EMPTY, &data);
}

void gated_handle(struct call *call)
{
    bool by_uri = call->method->treatment == MCP_GATED_URI;
    struct str name = by_uri ? call->envelope.uri.text : call->envelope.name.text;
    struct policy_request request = {call->source, name, call->envelope.arguments.raw};
    struct policy_decision decision;
    if (!name.bytes) {
        call_answer_error(call, JSONRPC_INVALID_PARAMS,
                          by_uri ? STR("params.uri must be a string")
                                 : STR("params.name must be a string"),
                          NULL);
        return;
    }
    if (!policy_is_visible(call->snapshot->policy, call->source, name)) {
        metrics_count(METRIC_DECISIONS, STR("gate1"), STR("block"));
        refuse(call, JSONRPC_NOT_EXPOSED, "visibility");
        return;
    }
    policy_decide(call->snapshot->policy, &request, &decision);
    metrics_count(METRIC_DECISIONS, STR("gate2"), str_from(config_action_name(decision.action)));
    if (decision.action != ACTION_FORWARD) {
        refuse(call, JSONRPC_RULE_DENIED, "governance");
        return;
    }
    struct relay_options options = {0};
    relay_start(call, &options);
}
