/*
 * The reason that a rule asks the agent for (`governance.rules[].reason`): it is in the schema of
 * the tools that the rule holds, and is taken out of a call before anything but the rules' match
 * looks at its arguments. Any thread.
 */
#pragma once

#include "state/tool_catalog.h"
#include "taskgate/config/config.h"
#include "taskgate/core/error.h"
#include "taskgate/json/envelope.h"
#include "taskgate/policy/policy.h"

/* As the rule of the decision has it; off for a rule that holds no call. */
enum config_agent_reason agent_reason_asked(const struct policy_decision *decision);

/* Writes the inputSchema of a tool with the property. False, and nothing is written, where none is
 * asked for, or the schema cannot have it; the latter is logged, once. */
bool agent_reason_write_schema(struct buffer *out, enum config_agent_reason asked,
                               const char *source, const struct mcp_tool *tool);

/* A call that is judged; all borrowed. */
struct agent_reason_call {
    struct catalog *catalog;
    const char *source, *owner; /* of the list in which the caller was told of the tool */
    const struct catalog_tool *tool;
    const struct policy_decision *decision;
    const struct envelope *envelope;
};
enum agent_reason {
    AGENT_REASON_NONE,    /* the call stays as it is */
    AGENT_REASON_TAKEN,   /* `body` has the message without it, `reason` the text */
    AGENT_REASON_REFUSED, /* `error` says what is to be given */
};
enum agent_reason agent_reason_take(const struct agent_reason_call *call, struct buffer *body,
                                    struct buffer *reason, struct error *error);
