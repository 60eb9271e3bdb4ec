/*
 * The methods that a client may send, and what answers each: the requests and notifications of the
 * 2025-11-25 and 2026-07-28 schemas, and of the tasks extension. Included many times; no guard on
 * purpose.
 *
 * MCP_TREATMENT_ROW(symbol, legacy, modern): what is done with a method. `legacy` and `modern` are
 *     the handlers, in src/gateway/methods; their declarations and their places in the dispatch
 *     come from the row. One that is not reached in an era is unknown_method_handle there.
 * MCP_METHOD_ROW(name, symbol, eras, mirrored): a method, its treatment, the eras that have it
 *     (LEGACY, MODERN, BOTH), and the member of params that a modern request repeats in its
 *     Mcp-Name header (NOTHING, NAME, URI, TASK_ID). One that has no row is not relayed.
 */
/* clang-format off */
#ifdef MCP_TREATMENT_ROW
MCP_TREATMENT_ROW(RELAY, relay_plainly_handle, relay_plainly_handle) /* as it is */
MCP_TREATMENT_ROW(INITIALIZE, initialize_handle, unknown_method_handle)
MCP_TREATMENT_ROW(TOOLS_LIST, tools_list_handle, tools_list_handle)
MCP_TREATMENT_ROW(TOOLS_CALL, tools_call_handle, tools_call_handle)
MCP_TREATMENT_ROW(RESOURCES_LIST, resources_list_handle, resources_list_handle) /* filtered by `expose` on uri */
MCP_TREATMENT_ROW(RESOURCES_TEMPLATES_LIST, resources_templates_list_handle, resources_templates_list_handle) /* relayed: templates name no resource */
MCP_TREATMENT_ROW(PROMPTS_LIST, prompts_list_handle, prompts_list_handle) /* filtered by `expose` on name */
MCP_TREATMENT_ROW(GATED_URI, name_gate_handle, name_gate_handle) /* `expose` and the rules, by params.uri */
MCP_TREATMENT_ROW(RESOURCES_UNSUBSCRIBE, unsubscribe_handle, unknown_method_handle) /* relayed, whatever the rules have become meanwhile */
MCP_TREATMENT_ROW(GATED_NAME, name_gate_handle, name_gate_handle) /* by params.name */
MCP_TREATMENT_ROW(GATED_REFERENCE, completion_handle, completion_handle) /* by params.ref */
MCP_TREATMENT_ROW(TASKS_GET, task_handle, task_handle)
MCP_TREATMENT_ROW(TASKS_UPDATE, unknown_method_handle, task_handle)
MCP_TREATMENT_ROW(TASKS_RESULT, task_handle, unknown_method_handle)
MCP_TREATMENT_ROW(TASKS_CANCEL, task_handle, task_handle)
MCP_TREATMENT_ROW(TASKS_LIST, tasks_list_handle, unknown_method_handle)
MCP_TREATMENT_ROW(SERVER_DISCOVER, discover_refuse_handle, discover_handle)
MCP_TREATMENT_ROW(LISTEN, unknown_method_handle, listen_handle)
MCP_TREATMENT_ROW(EXTENSION, extension_handle, extension_handle) /* as extension_table.h says */
MCP_TREATMENT_ROW(UNKNOWN, unknown_method_handle, unknown_method_handle) /* `methods.allow`, else -32601 */
#endif

#ifdef MCP_METHOD_ROW
MCP_METHOD_ROW("tools/call", TOOLS_CALL, BOTH, NAME)
MCP_METHOD_ROW("tools/list", TOOLS_LIST, BOTH, NOTHING)
MCP_METHOD_ROW("tasks/get", TASKS_GET, BOTH, TASK_ID)
MCP_METHOD_ROW("tasks/update", TASKS_UPDATE, MODERN, TASK_ID)
MCP_METHOD_ROW("tasks/result", TASKS_RESULT, LEGACY, NOTHING)
MCP_METHOD_ROW("tasks/cancel", TASKS_CANCEL, BOTH, TASK_ID)
MCP_METHOD_ROW("tasks/list", TASKS_LIST, LEGACY, NOTHING)
MCP_METHOD_ROW("ping", RELAY, LEGACY, NOTHING)
MCP_METHOD_ROW("initialize", INITIALIZE, LEGACY, NOTHING)
MCP_METHOD_ROW("resources/list", RESOURCES_LIST, BOTH, NOTHING)
MCP_METHOD_ROW("resources/templates/list", RESOURCES_TEMPLATES_LIST, BOTH, NOTHING)
MCP_METHOD_ROW("resources/read", GATED_URI, BOTH, URI)
MCP_METHOD_ROW("resources/subscribe", GATED_URI, LEGACY, NOTHING)
MCP_METHOD_ROW("resources/unsubscribe", RESOURCES_UNSUBSCRIBE, LEGACY, NOTHING)
MCP_METHOD_ROW("prompts/list", PROMPTS_LIST, BOTH, NOTHING)
MCP_METHOD_ROW("prompts/get", GATED_NAME, BOTH, NAME)
MCP_METHOD_ROW("logging/setLevel", RELAY, LEGACY, NOTHING)
MCP_METHOD_ROW("completion/complete", GATED_REFERENCE, BOTH, NOTHING)
MCP_METHOD_ROW("server/discover", SERVER_DISCOVER, BOTH, NOTHING)
MCP_METHOD_ROW("subscriptions/listen", LISTEN, MODERN, NOTHING)
MCP_METHOD_ROW(MCP_INITIALIZED, RELAY, LEGACY, NOTHING)
MCP_METHOD_ROW(MCP_CANCELLED, RELAY, LEGACY, NOTHING)
MCP_METHOD_ROW(MCP_PROGRESS, RELAY, LEGACY, NOTHING)
MCP_METHOD_ROW(MCP_ROOTS_CHANGED, RELAY, LEGACY, NOTHING)
MCP_METHOD_ROW(MCP_TASK_STATUS, RELAY, LEGACY, NOTHING)
#endif
/* clang-format on */
