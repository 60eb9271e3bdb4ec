/* Writes, in the transaction of a change, a delivery for each target that wants it. */
#pragma once

#include "operation.h"

bool outbox_note_created(struct batch *batch, const struct task *task);
/* `task` has left `from`. */
/* Its votes have changed, and it waits on. */
bool outbox_note_voted(struct batch *batch, const struct task *task);
bool outbox_note_moved(struct batch *batch, const struct task *task, enum task_state from);
/* `task` was approved by one person alone: every target is told of the decision, whatever it
 * wants. Those that want decisions are told by outbox_note_moved() already. */
bool outbox_note_emergency(struct batch *batch, const struct task *task);
/* `task` still waits, for as long as NOTIFY_REMINDED or NOTIFY_ESCALATED says. */
bool outbox_note_waiting(struct batch *batch, const struct task *task, unsigned event);
/* Gives up some deliveries of notices that are this old, whether they were tried or not.
 * `*has_more`: set where there may be others. */
bool outbox_give_up_overdue(struct batch *batch, int64_t age_ms, size_t limit, bool *has_more);
/* An anchor (JSON text) was made. */
bool outbox_note_anchor(struct batch *batch, const char *anchor);
