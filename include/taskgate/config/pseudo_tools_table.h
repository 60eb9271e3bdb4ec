/*
 * The tools that the gateway itself offers to clients that know no tasks:
 * PSEUDO_TOOL_ROW(symbol, name). Included many times; no guard on purpose.
 * src/gateway/tools/tools_table.h describes each.
 */
/* clang-format off */
#ifndef PSEUDO_TOOL_ROW
#error "define PSEUDO_TOOL_ROW before including this table"
#endif
PSEUDO_TOOL_ROW(LIST_TASKS, "list_tasks")
PSEUDO_TOOL_ROW(GET_TASK, "get_task")
PSEUDO_TOOL_ROW(GET_TASK_RESULT, "get_task_result")
PSEUDO_TOOL_ROW(CANCEL_TASK, "cancel_task")
PSEUDO_TOOL_ROW(AWAIT_ACTIVITY, "await_activity")
PSEUDO_TOOL_ROW(EXECUTE_TOOL, "execute_tool")
PSEUDO_TOOL_ROW(GET_ELICITATIONS, "get_elicitations")
PSEUDO_TOOL_ROW(RESPOND_TO_ELICITATION, "respond_to_elicitation")
PSEUDO_TOOL_ROW(CANCEL_ELICITATION_REQUEST, "cancel_elicitation_request")
PSEUDO_TOOL_ROW(GET_SAMPLING_REQUESTS, "get_sampling_requests")
PSEUDO_TOOL_ROW(RESPOND_TO_SAMPLING, "respond_to_sampling")
PSEUDO_TOOL_ROW(CANCEL_SAMPLING_REQUEST, "cancel_sampling_request")
PSEUDO_TOOL_ROW(GET_NOTIFICATIONS, "get_notifications")
PSEUDO_TOOL_ROW(GET_LOGS, "get_logs")
PSEUDO_TOOL_ROW(LIST_SERVERS, "list_servers")
PSEUDO_TOOL_ROW(LIST_TOOLS, "list_tools")
/* clang-format on */
