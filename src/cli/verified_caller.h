/*
 * A caller whose token was verified, as JSON says it: `subject`, `issuer`, `groups`, `scopes`.
 */
#pragma once

#include "taskgate/policy/policy.h"

struct verified_caller {
    struct policy_verified words; /* the caller as the policy sees it: the members below */
    char *issuer, *subject;
};

/* From an object that json_check() has accepted. NULL when it has no `subject`: nobody was
 * verified. Members of other types count as absent. verified_caller_finish() in any case. */
const struct policy_verified *verified_caller_read(struct verified_caller *caller,
                                                   struct str object);
void verified_caller_finish(struct verified_caller *caller);
