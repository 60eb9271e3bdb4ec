/* The last gates: the source serves messages, and the method answers. */
#include "call/call.h"
#include "conversation/question.h"
#include "gates.h"
#include "methods/given_session.h"
#include "methods/methods.h"
#include "taskgate/policy/gate.h"

enum gate_verdict gate_serving(struct call *call)
{
    struct jsonrpc_error_data data = {.gate = str_from(policy_gate_name(POLICY_GATE_VISIBILITY))};
    if (call->source->enabled)
        return GATE_PASSED;
    call_answer_error(call, JSONRPC_NOT_EXPOSED, STR_EMPTY, &data);
    return GATE_ANSWERED;
}

static void dispatch(struct call *call)
{
    static const struct {
        call_step legacy, modern;
    } handlers[] = {
#define MCP_TREATMENT_ROW(symbol, legacy, modern) [MCP_##symbol] = {legacy, modern},
#include "taskgate/mcp/method_table.h"
#undef MCP_TREATMENT_ROW
    };
    call->method = mcp_method_find(call->envelope.method, call->dialect->era);
    enum mcp_treatment treatment = call->method->treatment;
    call_counters_came(call->method, call->envelope.body.length);
    if (treatment != MCP_TOOLS_CALL)
        call_identify(call);
    bool may_be_silent =
        treatment == MCP_RELAY || treatment == MCP_UNKNOWN || treatment == MCP_TOOLS_CALL;
    if (call->envelope.kind == ENVELOPE_NOTIFICATION && !may_be_silent)
        call_answer(call, STR_EMPTY); /* nobody waits for the answer, so nothing is asked */
    else if (call->dialect->era == MCP_ERA_MODERN)
        handlers[treatment].modern(call);
    else if (call->is_bridged)
        given_session_handle(call, handlers[treatment].legacy);
    else
        handlers[treatment].legacy(call);
}

enum gate_verdict gate_method(struct call *call)
{
    if (!call->is_post)
        verb_handle(call);
    else if (call->envelope.kind != ENVELOPE_RESPONSE)
        dispatch(call);
    else if (call->is_bridged)
        given_session_handle_response(call);
    else if (!question_take_response(call))
        relay_plainly_handle(call); /* to a request of upstream's, in this session */
    return GATE_ANSWERED;
}
