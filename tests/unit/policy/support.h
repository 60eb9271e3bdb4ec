/* What the tests of the policy share. */
#pragma once

#include "taskgate/policy/policy.h"

/* The policy of a configuration file, which must load. Destroy the policy; that releases
 * the configuration, too. */
struct policy *policy_of(const char *text, const struct config **config);
struct policy_decision decide(const struct policy *policy, const struct config *config,
                              const char *source, const char *name);
