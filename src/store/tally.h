/* The counts of what became of calls, by tool and caller. */
#pragma once

#include "operation.h"
#include "taskgate/store/tally.h"

/* Counts a move that has just been made. */
bool tally_note_moved(struct batch *batch, const struct task *task, enum task_state from);
/* Gives what a task of the source was counted for to the owner `heir`. */
bool tally_hand_over(struct batch *batch, const char *source, const char *owner, const char *heir,
                     const struct ended_task *task);
/* The outcomes of the others of its source and tool, which the caller owns, also when it fails. */
bool tally_read(struct batch *batch, const struct task *task, struct store_tally **read);
