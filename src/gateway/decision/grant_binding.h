/*
 * The parts of a call that a grant binds, beside those that each task keeps (store/grants.h): the
 * rule as it is written, and the request without what may vary.
 */
#pragma once

#include "taskgate/policy/policy.h"
#include "taskgate/task/task.h"

/* Sets the digests of a task that has its request and its workflow. Nothing where the workflow
 * offers no grants. */
void grant_binding_set(struct task *task, const struct policy_decision *decision);
