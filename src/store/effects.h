/* The parts of a transaction that several operations have: counts, blocks, grants, reminders, and
 * notices. false: the database has failed. */
#pragma once

#include "operation.h"

/*
 * How many tasks are undecided or run without a decision, per owner and in all, and the bytes of
 * their requests per owner, for the limits. The counts are rows, changed in the transaction of each
 * change: a create counts what every process has committed, and counting ten thousand tasks would
 * be the slowest part of it.
 */

/* A task has come into being, or left `from`; its request is still there. */
bool pending_note_created(struct batch *batch, const struct task *task);
bool pending_note_left(struct batch *batch, const struct task *task); /* its owner */
bool pending_note_moved(struct batch *batch, const struct task *task, enum task_state from);
/* Its request was as long before. */
bool pending_note_edited(struct batch *batch, const struct task *task, size_t bytes_before);
/* Those of an owner and of all, with what this batch has changed. */
bool pending_count(struct batch *batch, const char *owner, struct limited_counts *counts);
/* Writes the counts of all, once, before the commit: the row would else be written by each
 * operation. */
bool pending_write(struct batch *batch);

/* ---- blocks ---- */

/* A new task, stored: a call that was judged before its caller was blocked. It is rejected, or
 * cancelled where it was accelerated, by the block; *is_blocked says so. */
bool blocks_apply(struct batch *batch, struct task *task, bool *is_blocked);
/* Ends those whose time is over; *next_ms: when the next one ends, INT64_MAX without one. */
bool blocks_sweep(struct batch *batch, int64_t *next_ms);

/* ---- grants ---- */

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

/* ---- the times at which people are told again of a task that waits. Each is a row, which goes in
 * the transaction that notes the notice: it is neither lost nor told twice. ---- */

/* Notes the times of a task that was just inserted. */
bool reminders_note_created(struct batch *batch, const struct task *task);
/* Notes what is due for the outbox, up to `limit` of each kind, and plans the next sweep. After the
 * deadlines have been applied. */
bool reminders_send(struct batch *batch, size_t limit);

/* ---- a delivery for each target that wants it ---- */

bool outbox_note_created(struct batch *batch, const struct task *task);
/* Its votes have changed, and it waits on. */
bool outbox_note_voted(struct batch *batch, const struct task *task);
/* `task` has left `from`. */
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
