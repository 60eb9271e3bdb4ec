/*
 * A verified identity as the policy knows it. Any thread.
 */
#pragma once

#include "taskgate/identity/identity.h"
#include "taskgate/policy/policy.h"

/* Fills `verified`, whose texts stay the identity's, and returns it; NULL for NULL. */
const struct policy_verified *verified_from(const struct identity *identity,
                                            struct policy_verified *verified);
