/* The params that several methods have of calls whose client is asked in rounds. */
#include "call/request_state.h"
#include "methods.h"
#include "taskgate/json/text.h"

void methods_refuse_params(struct call *call, const char *why)
{
    struct jsonrpc_error_data data = {.details = str_from(why)};
    struct buffer text;
    buffer_init(&text);
    jsonrpc_write_error(&text, call->envelope.id, JSONRPC_INVALID_PARAMS, STR_EMPTY, &data);
    call_answer_status(call, 400, buffer_str(&text));
    buffer_finish(&text);
}

bool methods_have_good_rounds(struct call *call)
{
    const struct envelope *envelope = &call->envelope;
    if (envelope->request_state.length > 0 && json_type(envelope->request_state) != JSON_STRING)
        methods_refuse_params(call, "params.requestState must be a string");
    else if (envelope->input_responses.length > 0 &&
             json_type(envelope->input_responses) != JSON_OBJECT)
        methods_refuse_params(call, "params.inputResponses must be an object");
    else if (request_state_is_ours(call) && call->method->treatment != MCP_TOOLS_CALL &&
             !call->is_bridged_down)
        call_answer_error(call, JSONRPC_INVALID_PARAMS, STR(REQUEST_STATE_REFUSAL), NULL);
    else
        return true;
    return false;
}
