/* Grants in the transactions of other operations. */
#pragma once

#include "operation.h"

/* A new task, stored and pending. If a grant covers it, it is approved by that, and *is_granted is
 * set; observers are not told. Grants that its tool or rule have drifted from end. false: the
 * database failed. */
bool grants_apply(struct batch *batch, struct task *task, bool *is_granted);
/* The votes on a task that `vote` has just approved: if they ask for a grant with one voice, it is
 * made, and the task says so. */
bool grants_give(struct batch *batch, struct task *task, const struct ballot *ballot,
                 const struct store_vote *vote);
/* The callers of its grants are blocked: they end, in the name of the person. */
bool grants_end_blocked(struct batch *batch, const struct store_block *block);
/* Whether a call of this kind can have a grant at all. */
bool grants_fit(const struct task *task);
/* Ends those whose time is over, and forgets those that ended long ago. */
bool grants_sweep(struct batch *batch);
/* When the next one ends by time; INT64_MAX: none. */
bool grants_next_end(struct batch *batch, int64_t *at_ms);
