/*
 * The table of JSON-RPC errors that the gateway itself answers:
 * ERROR_ROW(symbol, code, error_type, message, when). Included many times; no guard on
 * purpose. Source: reference §3, contract "Proxy"; the messages of -32009 and -32010 are
 * seed 002 §6.8, literally.
 */
/* clang-format off */
#ifndef ERROR_ROW
#error "define ERROR_ROW before including this table"
#endif
ERROR_ROW(PARSE_ERROR, -32700, "parse_error", "Parse error", "The body is not strict JSON.")
ERROR_ROW(INVALID_REQUEST, -32600, "invalid_request", "Invalid request", "The message is no JSON-RPC 2.0 message, is a batch, or has duplicate or case-variant keys; or a call that becomes a task has members beside `jsonrpc`, `id`, `method`, `params`.")
ERROR_ROW(TOO_LARGE, -32600, "request_too_large", "Request too large", "The body is larger than `limits.body_bytes`; with HTTP 413.")
ERROR_ROW(METHOD_NOT_FOUND, -32601, "method_not_found", "Method not found", "The table of methods does not have the method.")
ERROR_ROW(INVALID_PARAMS, -32602, "invalid_params", "Invalid params", "The params, the task field or the cursor are malformed.")
ERROR_ROW(TASK_NOT_FOUND, -32602, "task_not_found", "Task not found", "The task does not exist, or belongs to another owner.")
ERROR_ROW(TASK_TERMINAL, -32602, "invalid_params", "Task has already ended", "`tasks/cancel` names a task that has ended.")
ERROR_ROW(INTERNAL, -32603, "internal", "Internal error", "The gateway has a fault.")
ERROR_ROW(OUTCOME_UNKNOWN, -32603, "outcome_unknown", "The outcome of the call is unknown", "The process died while the call was under way. The call may have run.")
ERROR_ROW(UPSTREAM_FAILED, -32000, "upstream_connection_failed", "Upstream connection failed", "The server refused the connection or closed it.")
ERROR_ROW(UPSTREAM_TIMEOUT, -32001, "upstream_timeout", "UpstreamTimeout", "The server was silent for longer than the limit.")
ERROR_ROW(UPSTREAM_ERROR, -32002, "upstream_error", "Upstream error", "The reply of the server could not be read.")
ERROR_ROW(RESOURCE_NOT_FOUND, -32002, "resource_not_found", "Resource not found", "`resources/read` names a resource that is not the gateway's, and the server has no resources.")
ERROR_ROW(POLICY_DENIED, -32003, "policy_denied", "Policy denied", "The policy engine rejected the call.")
ERROR_ROW(TASK_EXPIRED, -32005, "task_expired", "Task expired", "The call was approved, but not run in time.")
ERROR_ROW(TASK_CANCELLED, -32006, "task_cancelled", "Task cancelled", "`tasks/result` names a cancelled task.")
ERROR_ROW(APPROVAL_REJECTED, -32007, "approval_rejected", "Approval rejected", "A human said no.")
ERROR_ROW(APPROVAL_TIMEOUT, -32008, "approval_timeout", "Approval timeout", "No human decided in time.")
ERROR_ROW(TASK_REQUIRED, -32009, "task_required", "TaskRequired", "The tool must be called as a task.")
ERROR_ROW(TASK_FORBIDDEN, -32010, "task_forbidden", "TaskForbidden", "The tool must not be called as a task.")
ERROR_ROW(POLICY_DRIFT, -32011, "policy_drift", "Policy changed since the approval", "The policy was evaluated again before execution and decided otherwise.")
ERROR_ROW(TRANSFORM_DRIFT, -32012, "transform_drift", "Tool definition changed since the approval", "The tool is not the one that was approved.")
ERROR_ROW(UNAVAILABLE, -32013, "service_unavailable", "Service unavailable", "The store is down, or the gateway is shutting down.")
ERROR_ROW(RATE_LIMITED, -32013, "rate_limited", "Too many requests or pending tasks", "A limit was reached. `retry_after` says after how many seconds to try again.")
ERROR_ROW(RULE_DENIED, -32014, "governance_rule_denied", "Denied by a governance rule", "A rule says deny, or says approve for a request that cannot wait.")
ERROR_ROW(NOT_EXPOSED, -32015, "tool_not_exposed", "Not exposed", "`expose` or `enabled` hides it.")
/* clang-format on */
