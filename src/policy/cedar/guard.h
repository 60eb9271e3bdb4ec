/*
 * Policies that begin with a comparison, as `when { context.policy_id == "a" && … }`: where it
 * does not hold, nothing else of the policy is looked at. That is seen here for all of them at
 * once, from one look at the attribute that they ask for.
 */
#pragma once

#include "evaluate.h"

/* Attributes that are looked at; policies that ask for further ones have no guard. */
#define GUARD_ATTRIBUTES 8

struct guards;

/* In the policies' arena. */
struct guards *guards_build(struct cedar_policies *policies);

/* The values of one request for the attributes. */
struct guard_answers {
    struct guard_answer {
        enum { GUARD_ASKS, GUARD_COMPARES, GUARD_REFUSES } kind;
        uint64_t hash; /* of the text to be compared */
    } attributes[GUARD_ATTRIBUTES];
};
void guards_answer(const struct guards *guards, const struct evaluation *evaluation,
                   struct guard_answers *answers);
/* Whether the policy can be passed over: its condition would be false, and no error. */
bool guards_pass_over(const struct guards *guards, const struct guard_answers *answers,
                      size_t policy);
