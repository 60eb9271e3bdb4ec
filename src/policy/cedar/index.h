/*
 * Finds the policies that can apply to a request, by the action and resource in their scopes.
 */
#pragma once

#include "ast.h"
#include "entities.h"

/* In the policies' arena. */
struct policy_index *policy_index_build(struct cedar_policies *policies);

/* Sets the bit of every policy that can apply, and perhaps of some that cannot. `chosen` has
 * (count + 63) / 64 words, all 0. */
void policy_index_choose(const struct cedar_policies *policies,
                         const struct cedar_entities *entities, const struct cedar_request *request,
                         uint64_t *chosen);
