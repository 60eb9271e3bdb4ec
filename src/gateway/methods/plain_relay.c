/* Methods that go to the server as they are, and those that no era has. */
#include "cancelled.h"
#include "client/modern.h"
#include "conversation/detach.h"
#include "conversation/question.h"
#include "methods.h"
#include "name_gate.h"
#include "taskgate/core/log.h"
#include "taskgate/policy/policy.h"

bool (*methods_taker(const struct call *call))(struct call *call, struct str message)
{
    return call->dialect->server_may_ask ? question_take_from_stream : NULL;
}

/* True: the gateway notifies the server itself. */
static bool give_up_request(struct call *call)
{
    call_identify(call);
    bool is_taken = detached_call_takes_cancel(call);
    cancelled_notify(call);
    return is_taken;
}

void relay_plainly_handle(struct call *call)
{
    struct relay_options options = {.take_message = methods_taker(call)};
    bool is_cancel = call->envelope.kind == ENVELOPE_NOTIFICATION &&
                     str_equal(call->envelope.method, STR(MCP_CANCELLED));
    if (is_cancel && give_up_request(call))
        call_answer(call, STR_EMPTY);
    else
        client_forward(call, &options);
}

void methods_refuse_unknown(struct call *call)
{
    log_warn("Unknown method refused", LOG_STR("method", call->envelope.method));
    call_answer_error(call, JSONRPC_METHOD_NOT_FOUND, STR_EMPTY, NULL);
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
