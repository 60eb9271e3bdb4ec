/*
 * The attributes of spans: ATTRIBUTE_ROW(symbol, name). Included many times; no guard on purpose.
 * docs/telemetry.md explains each of them. Names: OpenTelemetry's semantic conventions for MCP,
 * behaviour 18.1.
 */
#ifndef ATTRIBUTE_ROW
#error "define ATTRIBUTE_ROW before including this table"
#endif
ATTRIBUTE_ROW(METHOD, "mcp.method.name")
ATTRIBUTE_ROW(TOOL, "mcp.tool.name")
ATTRIBUTE_ROW(GEN_AI_TOOL, "gen_ai.tool.name")
ATTRIBUTE_ROW(GEN_AI_OPERATION, "gen_ai.operation.name")
ATTRIBUTE_ROW(PROMPT, "gen_ai.prompt.name")
ATTRIBUTE_ROW(SESSION, "mcp.session.id")
ATTRIBUTE_ROW(PROTOCOL_VERSION, "mcp.protocol.version")
ATTRIBUTE_ROW(REQUEST_ID, "jsonrpc.request.id")
ATTRIBUTE_ROW(TRANSPORT, "network.transport")
ATTRIBUTE_ROW(SERVER_ADDRESS, "server.address")
ATTRIBUTE_ROW(SERVER_PORT, "server.port")
ATTRIBUTE_ROW(HTTP_STATUS, "http.response.status_code")
ATTRIBUTE_ROW(RPC_STATUS, "rpc.response.status_code")
ATTRIBUTE_ROW(ERROR_TYPE, "error.type")
ATTRIBUTE_ROW(SOURCE, "thoughtgate.source")
ATTRIBUTE_ROW(DECISION, "thoughtgate.decision")
ATTRIBUTE_ROW(RULE, "thoughtgate.rule")
ATTRIBUTE_ROW(TASK, "thoughtgate.task.id")
ATTRIBUTE_ROW(WORKFLOW, "thoughtgate.workflow")
ATTRIBUTE_ROW(OUTCOME, "thoughtgate.outcome")
