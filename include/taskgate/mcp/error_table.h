/*
 * The table of JSON-RPC errors that the gateway itself answers. Included many times; no guard on
 * purpose. Behaviour 3.10 fixes the messages of -32009 and -32010; -32020 to -32022 are MCP
 * 2026-07-28, basic "Error Codes".
 *
 * ERROR_ROW(symbol, code, error_type, message, when).
 * MODERN_ERROR_ROW(symbol, stands_in, status): where a modern request gets an error otherwise than
 *     a legacy one: which row stands in for it (that revision forbids -32002), and the HTTP status.
 *     Without a row it is the error itself, with HTTP 200.
 */
/* clang-format off */
#ifdef ERROR_ROW
ERROR_ROW(PARSE_ERROR, -32700, "parse_error", "Parse error", "The body is not strict JSON.")
ERROR_ROW(INVALID_REQUEST, -32600, "invalid_request", "Invalid request", "The message is no JSON-RPC 2.0 message, is a batch, or has duplicate or case-variant keys; or a call that becomes a task has members beside `jsonrpc`, `id`, `method`, `params`.")
ERROR_ROW(TOO_LARGE, -32600, "request_too_large", "Request too large", "The body is larger than `limits.body_bytes`; with HTTP 413.")
ERROR_ROW(METHOD_NOT_FOUND, -32601, "method_not_found", "Method not found", "The table of methods does not have the method.")
ERROR_ROW(INVALID_PARAMS, -32602, "invalid_params", "Invalid params", "The params, the task field or the cursor are malformed.")
ERROR_ROW(INCOMPLETE_ENVELOPE, -32602, "incomplete_envelope", "The request lacks a part of its envelope", "A modern request (2026-07-28) lacks a required key of `params._meta`, or a key has a wrong type or value. With HTTP 400.")
ERROR_ROW(REASON_REQUIRED, -32602, "reason_required", "The call lacks its reason", "The rule asks for `taskgate_reason` in the arguments, and it is missing, no text, or has other than 10 to 500 characters.")
ERROR_ROW(TASK_NOT_FOUND, -32602, "task_not_found", "Task not found", "The task does not exist, or belongs to another owner.")
ERROR_ROW(TASK_TERMINAL, -32602, "invalid_params", "Task has already ended", "`tasks/cancel` names a task that has ended.")
ERROR_ROW(INTERNAL, -32603, "internal", "Internal error", "The gateway has a fault.")
ERROR_ROW(UPSTREAM_UNREADABLE, -32603, "upstream_error", "Upstream error", "The reply of the server to a modern request could not be read.")
ERROR_ROW(OUTCOME_UNKNOWN, -32603, "outcome_unknown", "The outcome of the call is unknown", "The process died while the call was under way. The call may have run.")
ERROR_ROW(UPSTREAM_FAILED, -32000, "upstream_connection_failed", "Upstream connection failed", "The server refused the connection or closed it.")
ERROR_ROW(UPSTREAM_TIMEOUT, -32001, "upstream_timeout", "UpstreamTimeout", "The server was silent for longer than the limit.")
ERROR_ROW(UPSTREAM_ERROR, -32002, "upstream_error", "Upstream error", "The reply of the server is not the response to the request, or could not be read.")
ERROR_ROW(RESOURCE_NOT_FOUND, -32002, "resource_not_found", "Resource not found", "`resources/read` names a resource that is not the gateway's, and the server has no resources.")
ERROR_ROW(RESOURCE_UNKNOWN, -32602, "resource_not_found", "Resource not found", "The same of a modern request; or `expose` hides the URI of an extension's method, or a file of the skill that it names.")
ERROR_ROW(DIGEST_MISMATCH, -32602, "digest_mismatch", "The content is not that of the skill's digest", "Under `pin.skills: approve`: the content of a skill's file has another digest or size than the accepted skill says, or is larger than 16 MiB.")
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
ERROR_ROW(TOO_MANY_WAITING, -32013, "rate_limited", "Too many requests or pending tasks", "Too many calls wait for a decision: a limit of `limits`. `retry_after` says after how many seconds to try again.")
ERROR_ROW(RULE_DENIED, -32014, "governance_rule_denied", "Denied by a governance rule", "A rule says deny, or says approve for a request that cannot wait.")
ERROR_ROW(CALLER_BLOCKED, -32014, "caller_blocked", "This caller is blocked", "An operator has blocked the caller for a while. `reason` says why.")
ERROR_ROW(NOT_EXPOSED, -32015, "tool_not_exposed", "Not exposed", "`expose` or `enabled` hides it.")
ERROR_ROW(HEADER_MISMATCH, -32020, "header_mismatch", "A header does not say what the body says", "`MCP-Protocol-Version`, `Mcp-Method`, `Mcp-Name` or an `Mcp-Param-*` header of a modern request is missing, is there twice, cannot be decoded, or differs from the body. With HTTP 400.")
ERROR_ROW(MISSING_CAPABILITY, -32021, "missing_client_capability", "The request does not declare a capability that it needs", "A modern request needs what `data.requiredCapabilities` names. With HTTP 400.")
ERROR_ROW(UNSUPPORTED_VERSION, -32022, "unsupported_protocol_version", "Protocol version not supported", "A modern request names a version in which this source is not served. `data.supported` lists the versions that are. With HTTP 400.")
#endif

#ifdef MODERN_ERROR_ROW
MODERN_ERROR_ROW(PARSE_ERROR, PARSE_ERROR, 400)
MODERN_ERROR_ROW(INVALID_REQUEST, INVALID_REQUEST, 400)
MODERN_ERROR_ROW(METHOD_NOT_FOUND, METHOD_NOT_FOUND, 404)
MODERN_ERROR_ROW(INCOMPLETE_ENVELOPE, INCOMPLETE_ENVELOPE, 400)
MODERN_ERROR_ROW(UPSTREAM_ERROR, UPSTREAM_UNREADABLE, 200)
MODERN_ERROR_ROW(RESOURCE_NOT_FOUND, RESOURCE_UNKNOWN, 200)
MODERN_ERROR_ROW(HEADER_MISMATCH, HEADER_MISMATCH, 400)
MODERN_ERROR_ROW(MISSING_CAPABILITY, MISSING_CAPABILITY, 400)
MODERN_ERROR_ROW(UNSUPPORTED_VERSION, UNSUPPORTED_VERSION, 400)
#endif
/* clang-format on */
