/*
 * The methods that a client may send, and what answers each: the requests and notifications of the
 * 2025-11-25 schema, and the question with which a client of the next era opens. Included many
 * times; no guard on purpose.
 *
 * MCP_TREATMENT_ROW(symbol, handler): what is done with a method. The handler is a function of
 *     src/gateway/methods; both its declaration and its place in the dispatch come from the row.
 * MCP_METHOD_ROW(name, symbol): a method, and its treatment. One that has no row is not relayed.
 */
/* clang-format off */
#ifdef MCP_TREATMENT_ROW
MCP_TREATMENT_ROW(RELAY, relay_plainly_handle) /* as it is */
MCP_TREATMENT_ROW(INITIALIZE, initialize_handle)
MCP_TREATMENT_ROW(TOOLS_LIST, tools_list_handle)
MCP_TREATMENT_ROW(TOOLS_CALL, tools_call_handle)
MCP_TREATMENT_ROW(RESOURCES_LIST, resources_list_handle) /* filtered by `expose` on uri */
MCP_TREATMENT_ROW(RESOURCES_TEMPLATES_LIST, resources_templates_list_handle) /* relayed: templates name no resource */
MCP_TREATMENT_ROW(PROMPTS_LIST, prompts_list_handle) /* filtered by `expose` on name */
MCP_TREATMENT_ROW(GATED_URI, name_gate_handle) /* `expose` and the rules, by params.uri */
MCP_TREATMENT_ROW(RESOURCES_UNSUBSCRIBE, unsubscribe_handle) /* relayed, whatever the rules have become meanwhile */
MCP_TREATMENT_ROW(GATED_NAME, name_gate_handle) /* by params.name */
MCP_TREATMENT_ROW(GATED_REFERENCE, completion_handle) /* by params.ref */
MCP_TREATMENT_ROW(TASKS_GET, tasks_get_handle)
MCP_TREATMENT_ROW(TASKS_RESULT, tasks_result_handle)
MCP_TREATMENT_ROW(TASKS_CANCEL, tasks_cancel_handle)
MCP_TREATMENT_ROW(TASKS_LIST, tasks_list_handle)
MCP_TREATMENT_ROW(SERVER_DISCOVER, discover_handle) /* HTTP 400 and -32601: this is the legacy era */
MCP_TREATMENT_ROW(UNKNOWN, unknown_method_handle) /* `methods.allow`, else -32601 */
#endif

#ifdef MCP_METHOD_ROW
MCP_METHOD_ROW("tools/call", TOOLS_CALL)
MCP_METHOD_ROW("tools/list", TOOLS_LIST)
MCP_METHOD_ROW("tasks/get", TASKS_GET)
MCP_METHOD_ROW("tasks/result", TASKS_RESULT)
MCP_METHOD_ROW("tasks/cancel", TASKS_CANCEL)
MCP_METHOD_ROW("tasks/list", TASKS_LIST)
MCP_METHOD_ROW("ping", RELAY)
MCP_METHOD_ROW("initialize", INITIALIZE)
MCP_METHOD_ROW("resources/list", RESOURCES_LIST)
MCP_METHOD_ROW("resources/templates/list", RESOURCES_TEMPLATES_LIST)
MCP_METHOD_ROW("resources/read", GATED_URI)
MCP_METHOD_ROW("resources/subscribe", GATED_URI)
MCP_METHOD_ROW("resources/unsubscribe", RESOURCES_UNSUBSCRIBE)
MCP_METHOD_ROW("prompts/list", PROMPTS_LIST)
MCP_METHOD_ROW("prompts/get", GATED_NAME)
MCP_METHOD_ROW("logging/setLevel", RELAY)
MCP_METHOD_ROW("completion/complete", GATED_REFERENCE)
MCP_METHOD_ROW("server/discover", SERVER_DISCOVER)
MCP_METHOD_ROW("notifications/initialized", RELAY)
MCP_METHOD_ROW(MCP_CANCELLED, RELAY)
MCP_METHOD_ROW("notifications/progress", RELAY)
MCP_METHOD_ROW("notifications/roots/list_changed", RELAY)
MCP_METHOD_ROW("notifications/tasks/status", RELAY)
#endif
/* clang-format on */
