/* `tasks/get`, `tasks/update` and `tasks/cancel` of the tasks extension (SEP-2663). */
#include "methods.h"
#include "relay/relay.h"
#include "taskgate/mcp/dialect_modern.h"

/* Ids of the gateway's own begin so, and never go up. */
#define OWN_PREFIX "tg_"

void modern_task_handle(struct call *call)
{
    const struct relay_options options = {0};
    struct str id = call->envelope.task_id.text;
    struct jsonrpc_error_data data = {
        .required_capabilities = STR("{\"extensions\":{\"" MODERN_TASKS_EXTENSION "\":{}}}")};
    if (!dialect_modern_declares_tasks(call->envelope.reserved.client_capabilities))
        call_answer_error(call, JSONRPC_MISSING_CAPABILITY, STR_EMPTY, &data);
    else if (!id.bytes)
        call_answer_error(call, JSONRPC_INVALID_PARAMS, STR("params.taskId must be a string"),
                          NULL);
    else if (str_starts_with(id, STR(OWN_PREFIX)))
        call_answer_error(call, JSONRPC_TASK_NOT_FOUND, STR_EMPTY, NULL);
    else
        relay_start(call, &options);
}
