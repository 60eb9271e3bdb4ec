/* Calls of the gateway's own tools: checked by the table, then handled. */
#include "pseudo_tool_call.h"

#include "inbox/inbox.h"
#include "server/credential_check.h"
#include "taskgate/core/metrics.h"
#include "tools/answer.h"

static void (*const handlers[PSEUDO_TOOL_COUNT])(struct call *call, struct str arguments) = {
#define TOOL(symbol, title, effect, handler, description, ...) [PSEUDO_TOOL_##symbol] = (handler),
#include "tools/tools_table.h"
#undef TOOL
};

/* Upstream knows this client. */
static void run(struct call *call)
{
    const struct pseudo_tool *tool = pseudo_tool_called(call);
    struct str arguments = call->envelope.arguments.raw;
    char key[CLIENT_KEY_BYTES];
    struct buffer problem, text;
    buffer_init(&problem);
    buffer_init(&text);
    inbox_key_of_call(call, key);
    if (!call->is_away)
        inbox_touch(call->worker->gateway, str_from(key));
    if (!tool) {
        pseudo_answer_text(call, STR("This tool is now the server's own: list the tools again"),
                           true); /* its list has come meanwhile */
    } else if (pseudo_check_arguments(arguments, tool->parameters, &problem)) {
        handlers[tool->id](call, arguments);
    } else {
        buffer_append_format(&text, "Invalid arguments for %.*s: %.*s",
                             STR_ARGS(call->envelope.name.text), STR_ARGS(buffer_str(&problem)));
        pseudo_answer_text(call, buffer_str(&text), true);
    }
    buffer_finish(&text);
    buffer_finish(&problem);
}

void pseudo_tool_run(struct call *call, const struct pseudo_tool *tool)
{
    metrics_count(METRIC_PSEUDO_CALLS, str_from(config_pseudo_tool_name(tool->id)));
    if (tool->id == PSEUDO_TOOL_EXECUTE_TOOL)
        credential_check_then(call, run);
    else
        credential_check_owner_then(call, run);
}
