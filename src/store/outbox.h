/* Writes, in the transaction of a change, a delivery for each target that wants it. */
#pragma once

#include "operation.h"

/* The columns of a notice, in the order that outbox_operations.c takes them. */
#define NOTICE_COLUMNS                                                                             \
    "outbox_notice.at_ms, outbox_notice.task_id, state, source, tool, workflow, principal,"        \
    " arguments_digest, decided_by, reason, status_message, arguments, created_ms, decide_by_ms,"  \
    " decided_ms"

bool outbox_note_created(struct batch *batch, const struct task *task);
/* `task` has left `from`. */
bool outbox_note_moved(struct batch *batch, const struct task *task, enum task_state from);
/* `task` was approved by one person alone: every target is told of the decision, whatever it
 * wants. Those that want decisions are told by outbox_note_moved() already. */
bool outbox_note_emergency(struct batch *batch, const struct task *task);
