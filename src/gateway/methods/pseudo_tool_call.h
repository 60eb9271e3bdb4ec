/* A call of one of the gateway's own tools (tools/tools.h). */
#pragma once

#include "tools/tools.h"

/* Answers the call, once upstream has accepted its session and token; after call_with_facts(). */
void pseudo_tool_run(struct call *call, const struct pseudo_tool *tool);

/* execute_tool calls a tool of upstream's as a client would, so its handler is here. */
void pseudo_tool_execute_tool(struct call *call, struct str arguments);
