/*
 * The judgement of one `tools/call`, for the handlers of both eras: the gates that need no look at
 * how the client wants to be answered (seed 002 F-004, F-005; reference §2.1).
 */
#pragma once

#include "call/call.h"
#include "taskgate/policy/gate.h"
#include "taskgate/policy/policy.h"

/* The call as it is decided, with all that is known of it. */
struct tool_judgement {
    struct policy_request request;
    struct policy_decision decision; /* of the rules; then of the policies */
    bool is_hidden;                  /* `expose` does not show the tool: no rule counts */
    struct catalog_tool tool;
    struct policy_facts facts;
};

/* Whether name and arguments have the right types. False when the call is answered. */
bool tool_judgement_is_well_formed(struct call *call);
/* Fills in what is known of the tool and of who asks, and what the rules of `snapshot` say of it.
 * After call_with_facts(). */
void tool_judgement_begin(struct call *call, const struct snapshot *snapshot,
                          struct tool_judgement *judgement);
/* The owner was not told of the tool yet, or it may have changed, and what upstream says of it to
 * this owner counts: that it runs as a task only, and what policies are to know. True when the
 * call goes on with `next` once the list is there. */
bool tool_judgement_waits_for_list(struct call *call, const struct tool_judgement *judgement,
                                   call_step next);
/* `expose`, then the rules. False when the call is answered. */
bool tool_judgement_passes_gates(struct call *call, const struct tool_judgement *judgement);
/* Takes the agent's reason out of the call, so that judgement and call have the arguments of the
 * server alone; then looks for arguments that two readers could see differently. After
 * tool_judgement_passes_gates(). False when the call is answered. */
bool tool_judgement_passes_arguments(struct call *call, struct tool_judgement *judgement);
/* Whether the message has nothing that approvers are not shown. False when the call is answered. */
bool tool_judgement_is_shown_whole(struct call *call);
/* The record of the decision. */
void tool_judgement_record(struct call *call, const struct tool_judgement *judgement,
                           bool becomes_task);
void tool_judgement_count(enum config_action action);
/* Answers with the error of a gate. */
void tool_judgement_refuse(struct call *call, enum jsonrpc_error error, enum policy_gate gate);
/* Whether the rules have changed, and do not send the call up any more. Then it is answered. */
bool tool_judgement_forbids(struct call *call);
/* Whether its rule alone sends the call up: it is shown, nobody must be asked, and the tool need
 * not be called as a task. Costs no look at the client. */
bool tool_judgement_is_plain(const struct call *call, struct policy_request *request,
                             struct policy_decision *decision);
