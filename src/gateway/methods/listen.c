/* `subscriptions/listen`: what its request must be. */
#include "client/listen.h"

#include "call/deferred_response.h"
#include "methods.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/dialect_modern.h"

void listen_handle(struct call *call)
{
    struct str filter = call->envelope.notifications;
    struct jsonrpc_error_data needs_tasks = {.required_capabilities = MODERN_REQUIRES_TASKS};
    struct mcp_subscription wanted;
    const char *wrong = json_type(filter) == JSON_OBJECT ? mcp_subscription_read(filter, &wanted)
                                                         : "params.notifications must be an object";
    if (wrong)
        methods_refuse_params(call, wrong);
    else if (wanted.task_ids.length > 0 &&
             !dialect_modern_declares_tasks(call->envelope.reserved.client_capabilities))
        call_answer_error(call, JSONRPC_MISSING_CAPABILITY, STR_EMPTY, &needs_tasks);
    else if (!deferred_response_may_stream(call))
        methods_refuse_params(call, "the Accept header must name text/event-stream");
    else
        listen_begin(call, &wanted);
}
