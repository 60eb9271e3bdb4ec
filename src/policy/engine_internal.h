/* Shared by the two files of the engine. */
#pragma once

#include "engine.h"

struct engine {
    const struct config *config;
    struct cedar_policies *policies;
};

/* The workflow that a policy names, or NULL. */
const struct config_workflow *engine_workflow_of(const struct engine *engine,
                                                 const struct cedar_policy *policy);
/* Whether a rule with `policy_id` (NULL: the default action) asks the policy: those without an
 * @id are asked by every rule, the others by the rules that name them. */
bool engine_asks(const struct cedar_policy *policy, const char *policy_id);
