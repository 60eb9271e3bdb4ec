/* Shared by the tests of the policy. */
#pragma once

#include "taskgate/policy/policy.h"

/* The policy of a configuration file, which must load. Destroy the policy; that releases
 * the configuration, too. */
struct policy *policy_of(const char *text, const struct config **config);
/* The same with Cedar policies, which the environment brings. */
struct policy *policy_with(const char *text, const char *cedar, const struct config **config);
/* Whether both load; their messages are appended to `said`. */
bool load_policy(const char *text, const char *cedar, struct buffer *said);
struct policy_decision decide(const struct policy *policy, const struct config *config,
                              const char *source, const char *name);
