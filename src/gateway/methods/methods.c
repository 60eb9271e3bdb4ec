/* Methods that go to the server as they are, and what several methods have in common. */
#include "methods.h"
#include "call/request_state.h"
#include "client/cancelled.h"
#include "conversation/detach.h"
#include "conversation/question.h"
#include "conversation/relay.h"
#include "taskgate/core/log.h"
#include "taskgate/json/text.h"

bool methods_have_good_rounds(struct call *call)
{
    const struct envelope *envelope = &call->envelope;
    if (envelope->request_state.length > 0 && json_type(envelope->request_state) != JSON_STRING)
        call_refuse_params(call, "params.requestState must be a string");
    else if (envelope->input_responses.length > 0 &&
             json_type(envelope->input_responses) != JSON_OBJECT)
        call_refuse_params(call, DIALECT_RESPONSES_REFUSAL);
    else if (request_state_is_ours(call) && call->method->treatment != MCP_TOOLS_CALL &&
             !call_leases_session(call))
        call_answer_error(call, JSONRPC_INVALID_PARAMS, STR(REQUEST_STATE_REFUSAL), NULL);
    else
        return true;
    return false;
}

const struct looks looks_at_questions = {.take_message = question_take_from_stream};

/* True: the gateway notifies the server itself. */
static bool methods_give_up_request(struct call *call)
{
    call_identify(call);
    bool is_taken = detached_call_takes_cancel(call);
    cancelled_notify(call);
    return is_taken;
}

void relay_plainly_handle(struct call *call)
{
    bool is_cancel = call->envelope.kind == ENVELOPE_NOTIFICATION &&
                     str_equal(call->envelope.method, STR(MCP_CANCELLED));
    if (is_cancel && methods_give_up_request(call))
        call_answer(call, STR_EMPTY);
    else
        relay_start(call, &looks_at_questions, NULL);
}

void methods_refuse_unknown(struct call *call)
{
    log_warn("Unknown method refused", LOG_STR("method", call->envelope.method));
    call_answer_error(call, JSONRPC_METHOD_NOT_FOUND, STR_EMPTY, NULL);
}
