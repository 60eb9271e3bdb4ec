/* The rules of the engine's tests, in front of more members of the configuration. */
#pragma once

#define FORWARD "action == ThoughtGate::Action::\"Forward\""

#define RULES_BEGIN                                                                                \
    "schema: 1\n"                                                                                  \
    "sources: [{id: up, kind: mcp, url: 'http://a/'}]\n"                                           \
    "governance:\n"                                                                                \
    "  defaults: {action: policy}\n"                                                               \
    "  rules:\n"                                                                                   \
    "    - {match: 'ops_*', action: policy, policy_id: p, approval: ops}\n"                        \
    "    - {match: 'p_*', action: policy, policy_id: p}\n"                                         \
    "    - {match: 'q_*', action: policy, policy_id: q}\n"                                         \
    "    - {match: 'plain', action: forward}\n"                                                    \
    "approval: {default: {}, ops: {}, finance: {}}\n"
