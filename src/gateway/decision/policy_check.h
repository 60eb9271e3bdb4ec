/*
 * Gate 3: Cedar policies decide if a rule leaves the decision to them.
 */
#pragma once

#include "call/call.h"

/* Replaces ACTION_POLICY by the policies' decision, counts and logs it; does nothing for any other
 * action. */
void policy_check(const struct snapshot *snapshot, const struct policy_request *request,
                  const struct policy_facts *facts, struct policy_decision *decision);
