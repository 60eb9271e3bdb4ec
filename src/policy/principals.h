/*
 * The rules that are for some callers alone (`governance.rules[].principals`). Immutable once made,
 * any thread.
 */
#pragma once

#include "taskgate/policy/policy.h"

struct principals;

/* NULL with an error when a glob is wrong. */
struct principals *principals_create(const struct config *config, struct error *error);
void principals_destroy(struct principals *principals); /* NULL is allowed */
/* Whether the rule is for this caller; NULL is one that nobody has verified. */
bool principals_fit(const struct principals *principals, size_t rule,
                    const struct policy_verified *verified);
/* policy_principal_bits() */
bool principals_bits(const struct principals *principals, const struct policy_verified *verified,
                     uint64_t *bits);
