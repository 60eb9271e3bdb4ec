/* Shared by the operations on tasks. */
#pragma once

#include "audit.h"
#include "operation.h"
#include "taskgate/store/tally.h"

/* Reads a task and applies a deadline that has passed. */
enum row_result task_operations_load(struct batch *batch, struct str id, struct task **task);
/* Moves a task that was just read: row, audit entry, counts, event. The task is changed in
 * place. ROW_ABSENT: the table does not allow it, `error` says why. */
enum row_result task_operations_move(struct batch *batch, struct task *task,
                                     const struct task_change *change, struct audit_actor actor,
                                     struct error *error);
/* The same for a task that was created in this very transaction; observers hear of the creation
 * alone. false: the database has failed. */
bool task_operations_decide_new(struct batch *batch, struct task *task,
                                const struct task_change *change, struct audit_actor actor);
/* Expires some of what is due, so that nobody waits behind it for long. `*has_more`: others may be
 * due. */
bool task_operations_expire(struct batch *batch, bool *has_more);
/* A change that is not queued yet, for one that is queued right behind another operation. */
struct operation *task_operations_change(struct str id, const struct task_change *change,
                                         const struct store_actor *actor, struct store_call call);

/* ---- the counts of what became of calls, by tool and caller ---- */

/* Counts a move that has just been made. */
bool tally_note_moved(struct batch *batch, const struct task *task, enum task_state from);
/* Gives what a task of the source was counted for to the owner `heir`. */
bool tally_hand_over(struct batch *batch, const char *source, const char *owner, const char *heir,
                     const struct ended_task *task);
/* The outcomes of the others of its source and tool, which the caller owns, also when it fails. */
bool tally_read(struct batch *batch, const struct task *task, struct store_tally **read);
