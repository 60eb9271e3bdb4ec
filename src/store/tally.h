/* The counts of what became of calls, by tool and caller. */
#pragma once

#include "operation.h"
#include "taskgate/store/tally.h"

/* Counts a move that has just been made. */
bool tally_note_moved(struct batch *batch, const struct task *task, enum task_state from);
/* The outcomes of the others of its source and tool; NULL: the database has failed. */
struct store_tally *tally_read(struct batch *batch, const struct task *task);
void tally_destroy(struct store_tally *tally); /* NULL is allowed */
