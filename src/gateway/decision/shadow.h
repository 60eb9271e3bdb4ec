/*
 * The shadow: a second configuration is asked about each call, and decides nothing. Calls that need
 * rules alone are compared at once. Calls that need Cedar policies are compared on a thread of its
 * own, so that no call waits for it. Differences are counted and logged, never with arguments. Any
 * thread.
 */
#pragma once

#include "taskgate/gateway/snapshot.h"
#include "taskgate/policy/verdict.h"

struct shadow;

/* A call and its decision. Pointers are borrowed, except the snapshot's own. */
struct shadow_call {
    struct snapshot *snapshot; /* under which the call was decided; its shadow judges it */
    struct policy_request request;
    struct policy_facts facts;
    struct identity *identity; /* the owner of the words in request.verified; or NULL */
    enum verdict_outcome outcome;
    struct policy_decision decision;
};

struct shadow *shadow_create(void);
/* Drops the calls that still wait. NULL is allowed. */
void shadow_destroy(struct shadow *shadow);
/* Compares by rules alone; false when policies must be asked, which need the facts. */
bool shadow_compare_rules(struct shadow *shadow, const struct shadow_call *call);
/* Copies the call and compares later. Past the bound of the queue the call is counted as
 * skipped. */
void shadow_compare_later(struct shadow *shadow, const struct shadow_call *call);
